/** What commands of `oncehook inbox` print for people, and what they say where there is nothing to print. */

import { hash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../../../src/inbox/record.ts";
import type { Lease, Settle } from "../../../../src/inbox/store.ts";
import { inboxCommand } from "../../../../src/tools/cli/inbox/command.ts";
import { turn } from "../../../stores/sqlite-turns.ts";
import { rowsOf, runHere } from "../here.ts";
import { filledInbox, inbox, inStore, newInbox, printed } from "../inbox-own.ts";
import { dead, handle, handled, NUMBER, outboundEvent } from "../inbox-place.ts";

const { folder, filled, copy } = filledInbox();

/** `msg_3` again: its gap was given up, and `queued`, which was missing, came late. */
async function withLateEvent(path: string, handling: "takes late ones" | "takes none" = "takes none"): Promise<void> {
  await inbox(path, "release", "--id", "msg_3");
  await inStore(path, async (store) => {
    await handle(store, [], handled);
    const claim = handling === "takes none" ? { limit: 1, takes: () => false } : {};
    await store.step(turn<never>({ accepts: [outboundEvent("queued", "msg_3")], claim }));
  });
}

describe("oncehook inbox show", () => {
  it("prints a time that no calendar has as the number it is", async () => {
    const path = copy();
    const event = { ...outboundEvent("queued", "msg_far"), occurredAt: 8.64e15 + 1 };
    await inStore(path, (store) => store.step(turn<never>({ accepts: [event] })));
    const { id }: { readonly id: number } = JSON.parse(await printed(path, "ls", "--lane", "msg_far", "--json"));
    expect(await printed(path, "show", `${id}`)).toMatch(/^occurred +8640000000000001$/m);
  });

  it("tells a lane of which nothing went wrong, and one whose gap was given up", async () => {
    const path = copy();
    expect(await printed(path, "show", "--id", "msg_2", "--tenant", "apc_1")).not.toMatch(/failed try|gap/);
    await withLateEvent(path);
    const story = await printed(path, "show", "--id", "msg_3");
    expect(story).toMatch(/\ngap from +to +given up +came after all\n1 +1 +20\S+ \S+Z +20\S+ \S+Z\n/);
  });

  it("finds a message by its id, whether that names its lane or its event, and a lane by its name alone", async () => {
    expect(await printed(filled, "show", "--id", "msg_1")).toMatch(
      /^lane +1\nname +msg_1\nsource +service\ntenant +apc_1\n/,
    );
    expect(await printed(filled, "show", "--id", "msg_in")).toMatch(/\n4 .* service +msg_in +0 +message\.inbound /);
    expect(await printed(filled, "show", "--lane", "msg_1")).toMatch(/^name +msg_1$/m);
    for (const flags of [
      ["--lane", "msg_in"],
      ["--id", "msg_1", "--tenant", "apc_2"],
    ])
      expect((await inbox(filled, "show", ...flags)).code).toBe(3);
  });

  it("tells of an event how it failed, whether it is late, and that it was replayed", async () => {
    const path = copy();
    expect(await printed(path, "show", "2")).toMatch(/\nlate +no\n[\s\S]*\nevent +failed try[\s\S]*No order 17\n/);
    await withLateEvent(path, "takes late ones");
    expect(await printed(path, "show", "9")).toMatch(/\nlate +yes\nreplayed +no\nconflict +no\n/);
    expect(await printed(path, "ls", "--lane", "msg_3")).toMatch(/^9 .* pending, late +0$/m);
    await inbox(path, "replay", "8");
    expect(await printed(path, "show", "8")).toMatch(/\nlate +no\nreplayed +yes\nconflict +no\n/);
  });

  it("says that a body is gone, and gives one that is no text in Base64, with the kinds that its secret covers", async () => {
    const path = copy();
    await printed(path, "prune", "--handled-bodies", "0s", "--other-bodies", "30d", "--dead", "90d", "--yes");
    expect(await printed(path, "show", "1")).toMatch(/\nThe body was pruned or erased\.\n$/);
    const raw = Buffer.from("fffe", "hex");
    const origin = {
      source: "service",
      tenant: null,
      slot: "current",
      signer: "s",
      kinds: ["delivery", "inbound"],
      signedAt: Date.now(),
      trace: null,
    };
    const kept = { ...origin, reason: "invalid_utf8", digest: hash("sha256", raw, "buffer"), raw };
    await inStore(path, (store) => store.step(turn<never>({ quarantines: [kept] })));
    expect(await printed(path, "quarantine", "show", "2", "--reveal")).toMatch(
      /\nkinds +delivery, inbound\n.*\n\/\/4=\n$/s,
    );
    expect(await printed(path, "quarantine", "show", "1")).toMatch(/\nkinds +all\n/);
  });

  it("says what is not there", async () => {
    const [message, body] = [
      await inbox(filled, "show", "--id", "msg_9"),
      await inbox(filled, "quarantine", "show", "99"),
    ];
    expect([message.code, message.errors]).toEqual([3, "error: The inbox has no such lane or id, or no longer.\n"]);
    expect([body.code, body.errors]).toEqual([3, "error: There is no quarantined body 99.\n"]);
  });
});

describe("oncehook inbox ls", () => {
  it("marks an event of which a repeat said something else", async () => {
    const path = copy();
    const raw = Buffer.from('{"other":"content"}');
    const conflicting = outboundEvent("queued", "msg_2", { raw, digest: hash("sha256", raw, "buffer") });
    await inStore(path, (store) => handle(store, [conflicting], handled));
    expect(await printed(path, "ls", "--conflict")).toMatch(/\n5 .* done, conflict +1\n$/);
  });

  it("groups dead letters in a table, and counts them beside it", async () => {
    const { output, errors } = await inbox(filled, "ls", "--group-by", "error");
    expect(output).toMatch(/^count +code .*\n2 +permanent_failure +20\S+ \S+Z +20\S+ \S+Z +7 +No order #\n$/);
    expect(errors).toBe("2 dead letters, 1 kind of error.\n");
  });

  it("refuses a state that there is not", async () => {
    const { code, errors } = await inbox(filled, "ls", "--state", "broken");
    expect([code, errors]).toEqual([2, expect.stringContaining("Allowed are pending, done, dead, late, discarded.")]);
  });
});

describe("oncehook inbox incomplete", () => {
  it("lists messages of one client, with a dash where nothing was handled and no number where there is none", async () => {
    const path = copy();
    await inStore(path, (store) => handle(store, [outboundEvent("queued", "msg_6", { peer: null })], handled));
    const table = await printed(path, "incomplete", "--older-than", "0s", "--tenant", "apc_1");
    expect(table).toMatch(/\n\d+ +service +msg_6 +idle +1 +message\.queued +20\S+ \S+Z\n/);
    expect(table).toMatch(/\n\d+ +service +msg_3 +gap +- +message\.sent +20\S+ \S+Z +…02\n/);
  });
});

describe("oncehook inbox, to act", () => {
  it("lets lanes go on that are named by their numbers, and says when there is none", async () => {
    const path = copy();
    expect(await printed(path, "unblock", "5")).toBe("lane 5: unblocked\n");
    const none = await inbox(path, "unblock", "--all", "--yes");
    expect(none).toEqual({ code: 0, output: "", errors: "There is nothing to unblock.\n" });
  });

  it("ends with 3 where the body of one of many is gone", async () => {
    const path = copy();
    await inbox(path, "erase", "--id", "msg_4", "--yes");
    const { code, output } = await inbox(path, "replay", "--all", "--yes", "--rate", "1000/s");
    expect([code, output]).toEqual([3, "Replayed 1 event. Left as they are: 1 body_pruned.\n"]);
    expect(await inbox(path, "replay", "7")).toMatchObject({ code: 3, output: expect.stringContaining("was pruned") });
  });

  it("stops between two events when it is told to, and says what was done", async () => {
    const before = process.listenerCount("SIGINT");
    const replaying = inbox(copy(), "replay", "--all", "--yes", "--rate", "0.01/s");
    await expect.poll(() => process.listenerCount("SIGINT"), { interval: 1 }).toBeGreaterThan(before);
    process.emit("SIGINT", "SIGINT");
    const { code, output, errors } = await replaying;
    expect([code, errors]).toEqual([130, "error: Stopped. Give the same command again for the rest.\n"]);
    expect(output).toMatch(/^Replayed [01] events?\.\n$/);
    expect(process.listenerCount("SIGINT")).toBe(before);
  });

  it("gives out and erases a message, but not while an event of it is handled", async () => {
    const path = copy();
    const exported = await inbox(path, "export", "--id", "msg_1");
    expect(exported.output).toContain("msg_1");
    await inStore(path, async (store) => {
      const accepts = [outboundEvent("queued", "msg_7")];
      await store.step(turn<never>({ accepts, claim: { limit: 1 } }));
      const busy = await inbox(path, "erase", "--id", "msg_7", "--yes");
      expect([busy.code, busy.errors]).toEqual([3, expect.stringMatching(/^error: A receiver is handling one of its/)]);
    });
    expect(await inbox(path, "erase", "--id", "msg_1", "--yes")).toMatchObject({
      ...{ code: 0, output: "Erased what 3 rows held.\n" },
      errors: "Backups, logs and what was forwarded keep their copies.\n",
    });
  });

  it("erases a quarantined body, of which the size is told until then", async () => {
    const path = copy();
    expect(await printed(path, "quarantine", "ls")).toMatch(/\n1 .* invalid_json +current +held +\d+\n$/);
    await inbox(path, "erase", "--number", NUMBER, "--yes");
    expect(await printed(path, "quarantine", "ls")).toMatch(/\n1 .* invalid_json +current +discarded +-\n$/);
  });
});

/** Lanes 1 and 2 of `apc_1`, 3 of `apc_2`: each blocked behind a dead letter, or waiting for what is missing before it. */
function inboxOfTwo(status: "blocked" | "gap"): Promise<string> {
  const kind = status === "gap" ? "sent" : "queued";
  const eventOf = (tenant: string, messageId: string): NewEvent => {
    const lane = { source: "service", tenant, name: messageId, order: "sequence" } as const;
    return outboundEvent(kind, messageId, { lane, gapWaitMs: 80_000_000 });
  };
  const accepts = [eventOf("apc_1", "msg_1"), eventOf("apc_1", "msg_2"), eventOf("apc_2", "msg_3")];
  const blocked = (lease: Lease) => ({ ...dead(lease), onDead: "block" }) as Settle<never>;
  return newInbox((store) => handle(store, accepts, status === "gap" ? handled : blocked));
}

describe.each([
  ["unblock", "blocked"],
  ["release", "gap"],
] as const)("oncehook inbox %s --tenant", (verb, status) => {
  it("lists the lanes of that tenant only, and acts on them only", async () => {
    const path = await inboxOfTwo(status);
    const listed = async (...args: string[]) =>
      rowsOf(await inbox(path, verb, "--list", "--json", ...args)).map(({ lane }) => lane);
    expect(await listed("--tenant", "apc_2")).toEqual(["msg_3"]);
    const acted = await inbox(path, verb, "--all", "--tenant", "apc_1", "--yes", "--json");
    expect(rowsOf(acted).map(({ laneId }) => laneId)).toEqual([2, 1]);
    expect(await listed()).toEqual(["msg_3"]);
  });
});

describe("oncehook inbox, where there are more rows than it lists,", () => {
  const queued = (...ids: string[]) => ids.map((id) => outboundEvent("queued", id));
  /** Each for a reason of its own. */
  const failing = (lease: Lease): Settle<never> => {
    return { ...dead(lease), failure: { code: `E${lease.event}`, message: "", durationMs: 1 } } as Settle<never>;
  };

  it.each([
    ["ls", 2],
    ["incomplete --older-than 0s", 2],
  ])("%s says where to go on beside JSON, unless it is to be quiet", async (command, next) => {
    const path = await newInbox((store) => handle(store, queued("msg_1", "msg_2", "msg_3"), handled));
    const list = (...flags: string[]) => inbox(path, ...command.split(" "), "--limit", "2", ...flags);
    const cut = await list("--json");
    expect([cut.code, rowsOf(cut).length, cut.errors]).toEqual([0, 2, `There are more: --after ${next}\n`]);
    expect((await list("--json", "--quiet")).errors).toBe("");
    const rest = await list("--json", "--after", String(next));
    expect([rowsOf(rest).length, rest.errors]).toEqual([1, ""]);
  });

  it("release --list, which has no next page, too", async () => {
    const ids = Array.from({ length: 1_001 }, (_, n) => `msg_${n}`);
    const accepts = ids.map((id) => outboundEvent("sent", id, { gapWaitMs: 80_000_000 }));
    const path = await newInbox(async (store) => void (await store.step(turn<never>({ accepts }))));
    const cut = await inbox(path, "release", "--list", "--json");
    expect([rowsOf(cut).length, cut.errors]).toEqual([1_000, "There are more: these are the newest 1000.\n"]);
  });

  it("ls --group-by error and audit, which have none either", async () => {
    const path = await newInbox((store) => handle(store, queued("msg_1", "msg_2"), failing));
    const groups = await inbox(path, "ls", "--group-by", "error", "--limit", "1", "--json");
    expect([rowsOf(groups).length, groups.errors]).toEqual([1, "There are more: these are the largest 1.\n"]);
    await inbox(path, "replay", "1", "2");
    const audit = await inbox(path, "audit", "--limit", "1", "--json");
    expect([rowsOf(audit).length, audit.errors]).toEqual([1, "There may be more: these are the newest 1.\n"]);
    expect((await inbox(path, "audit", "--limit", "3", "--json")).errors).toBe("");
  });
});

describe("oncehook inbox, the whole of it", () => {
  it("tells in its statistics what waits, and that the service signs retries anew", async () => {
    const path = copy();
    expect(await printed(path, "stats")).toMatch(/\noldest pending waits for +\d+ s\n[\s\S]*signed anew +not seen\n/);
    await withLateEvent(path);
    const signedAt = Date.now() + 60_000;
    await inStore(path, (store) => handle(store, [outboundEvent("queued", "msg_2", { signedAt })], dead));
    expect(await printed(path, "stats")).toMatch(/\noldest pending waits for +-\n[\s\S]*signed anew +yes\n/);
  });

  it("is copied, and needs no migration", async () => {
    const path = copy();
    const to = join(folder, "copied.db");
    expect(await printed(path, "copy", "--to", to)).toMatch(
      /^8 events of 6 lanes, and 1 in quarantine, are in sqlite:.*copied\.db, the same as in .*\. Copied, not moved: sqlite:.*\.db opens as before\..* the same command with --move\.\n$/,
    );
    expect(await printed(path, "copy", "--to", to, "--move")).toMatch(
      /are in sqlite:.*\. Moved: sqlite:.*\.db does not open any more\. Start the receivers with sqlite:.*copied\.db\.\n$/,
    );
    expect(await printed(path, "reopen", "--yes")).toMatch(
      /^It opens again\. Let no receiver use sqlite:.*copied\.db\.\n$/,
    );
    expect(await printed(path, "reopen", "--yes")).toBe("It was not moved, and opens as it is.\n");
    expect(await printed(to, "migrate")).toBe(`sqlite:${to} needs no migration.\n`);
  });

  it.each([
    [["stats"], "Say which inbox: --store inbox.db, or ONCEHOOK_STORE"],
    [["stats", "--store", "inbox.db", "--schema", "x"], "--schema goes with a postgres:// address."],
    [["copy", "--from", "a.db", "--from-schema", "x", "--to", "b.db"], "--schema goes with a postgres:// address."],
    [["copy", "--from", "a.db", "--to", "b.db", "--to-schema", "x"], "--schema goes with a postgres:// address."],
  ])("is not opened where %j does not say which it is", async (args, says) => {
    const { code, output, errors } = await runHere(inboxCommand(), args);
    expect([code, output, errors]).toEqual([2, "", expect.stringContaining(says)]);
  });
});
