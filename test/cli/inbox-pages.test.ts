/** Where a list of `oncehook inbox` is not whole: it says so, to programs too. */
import { describe, expect, it } from "vitest";
import type { Lease, Settle } from "../../src/inbox/store.ts";
import { turn } from "../stores/sqlite-turns.ts";
import { inbox, newInbox, rowsOf } from "./inbox-own.ts";
import { handle, handled, outboundEvent } from "./inbox-place.ts";

describe("oncehook inbox, where there are more rows than it lists,", () => {
  it.each([
    ["ls", "ls", 2],
    ["incomplete", "incomplete --older-than 0s", 2],
  ])("%s says where to go on beside JSON, unless it is to be quiet", async (_, command, next) => {
    const accepts = ["msg_1", "msg_2", "msg_3"].map((id) => outboundEvent("queued", id));
    const path = await newInbox((store) => handle(store, accepts, handled));
    const list = (...flags: string[]) => inbox(path, ...command.split(" "), "--limit", "2", ...flags);
    const cut = await list("--json");
    expect(rowsOf(cut)).toHaveLength(2);
    expect([cut.code, cut.errors]).toEqual([0, `There are more: --after ${next}\n`]);
    expect((await list("--json", "--quiet")).errors).toBe("");
    const rest = await list("--json", "--after", String(next));
    expect([rowsOf(rest).length, rest.errors]).toEqual([1, ""]);
  });

  it("release --list, which has no next page, too", async () => {
    const accepts = Array.from({ length: 1_001 }, (_, n) =>
      outboundEvent("sent", `msg_${n}`, { gapWaitMs: 80_000_000 }),
    );
    const path = await newInbox(async (store) => void (await store.step(turn<never>({ accepts }))));
    const cut = await inbox(path, "release", "--list", "--json");
    expect([rowsOf(cut).length, cut.errors]).toEqual([1_000, "There are more: these are the newest 1000.\n"]);
  });

  it("ls --group-by error and audit, which have none either", async () => {
    const accepts = ["msg_1", "msg_2"].map((id) => outboundEvent("queued", id));
    const path = await newInbox((store) => handle(store, accepts, failing));
    const groups = await inbox(path, "ls", "--group-by", "error", "--limit", "1", "--json");
    expect([rowsOf(groups).length, groups.errors]).toEqual([1, "There are more: these are the largest 1.\n"]);
    await inbox(path, "replay", "1", "2");
    const audit = await inbox(path, "audit", "--limit", "1", "--json");
    expect([rowsOf(audit).length, audit.errors]).toEqual([1, "There may be more: these are the newest 1.\n"]);
    expect((await inbox(path, "audit", "--limit", "3", "--json")).errors).toBe("");
  });
});

/** Each for a reason of its own. */
function failing(lease: Lease): Settle<never> {
  return {
    kind: "dead",
    lease,
    failure: { code: `E${lease.event}`, message: "", durationMs: 1 },
    onDead: "continue",
  };
}
