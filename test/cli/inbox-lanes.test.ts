/** Which messages the flags of `oncehook inbox` mean, where API clients share an inbox. */
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { Settle } from "../../src/inbox/store.ts";
import { inbox, newInbox, rowsOf } from "./inbox-own.ts";
import { dead, handle, handled, outboundEvent } from "./inbox-place.ts";

/** Lanes 1 and 2 of `apc_1`, 3 of `apc_2`: each blocked behind a dead letter, or waiting for what is missing before it. */
function inboxOfTwo(status: "blocked" | "gap"): Promise<string> {
  const isGap = status === "gap";
  return newInbox((store) =>
    handle(
      store,
      [
        ["apc_1", "msg_1"],
        ["apc_1", "msg_2"],
        ["apc_2", "msg_3"],
      ].map(([apiClientId = "", messageId = ""]): NewEvent => {
        const lane = { apiClientId, tag: "outbound", messageId } as const;
        return outboundEvent(isGap ? "sent" : "queued", messageId, { lane, gapWaitMs: 80_000_000 });
      }),
      (lease) => (isGap ? handled(lease) : ({ ...dead(lease), onDead: "block" } as Settle<never>)),
    ),
  );
}

describe.each([
  ["unblock", "blocked"],
  ["release", "gap"],
] as const)("oncehook inbox %s --client", (verb, status) => {
  it("lists the messages of that API client only", async () => {
    const path = await inboxOfTwo(status);
    const listed = await inbox(path, verb, "--list", "--client", "apc_2", "--json");
    expect(rowsOf(listed).map(({ messageId }) => messageId)).toEqual(["msg_3"]);
  });

  it("acts on the messages of that API client only", async () => {
    const path = await inboxOfTwo(status);
    const acted = await inbox(path, verb, "--all", "--client", "apc_1", "--yes", "--json");
    expect(rowsOf(acted).map(({ lane }) => lane)).toEqual([2, 1]);
    const left = await inbox(path, verb, "--list", "--json");
    expect(rowsOf(left).map(({ messageId }) => messageId)).toEqual(["msg_3"]);
  });
});
