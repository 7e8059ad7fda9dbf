/** Repeats: answered from the cache of committed identities, counted, and judged by the store when their bytes differ. */
import { describe, expect, it } from "vitest";
import { type ConflictNotice, StoreError } from "../../src/index.ts";
import { CommittedIdentities } from "../../src/receiver/duplicates.ts";
import { deferred, idleTurns, memoryBench, sqliteBench, until } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();
/** The same event with its keys in another order and other white space. */
const reserialised = JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(body)).reverse()), null, 2);
const conflicting = inbound({ text: "No, thank you" });

describe("duplicates", () => {
  it("are answered without a write, and counted with the next turn (RCV-6)", async () => {
    const { deliver, store, clock, receiver } = sqliteBench();
    await deliver(body);
    const before = store.faults.turns.length;
    for (let index = 0; index < 1_000; index++) {
      expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
    }
    expect(store.faults.turns).toHaveLength(before);
    await clock.advance(1_000);
    expect(store.faults.turns).toHaveLength(before + 1);
    expect(store.faults.turns.at(-1)).toMatchObject({ accepts: [], repeats: [{ count: 1_000 }] });
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, duplicates: 1_000 });
  });

  it("are counted at stop at the latest, and nothing goes on after it", async () => {
    const { deliver, store, clock, receiver, log } = sqliteBench();
    await deliver(body);
    await deliver(body);
    await receiver.stop();
    expect(store.faults.turns.at(-1)).toMatchObject({ repeats: [{ count: 1 }] });
    const turns = store.faults.turns.length;
    await clock.advance(600_000);
    expect(store.faults.turns).toHaveLength(turns);
    expect(log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("that arrive while the first is being stored wait for it: one event (RCV-3, RCV-6)", async () => {
    const { deliver, store, receiver } = sqliteBench();
    const gate = deferred();
    store.faults.gate = gate.promise;
    const answers = Promise.all(Array.from({ length: 10 }, () => deliver(body)));
    await until(() => store.faults.turns.length === 1);
    await idleTurns();
    gate.resolve();
    const outcomes = (await answers).map((answer) => answer.body);
    expect(outcomes.filter((text) => text.includes("accepted"))).toHaveLength(1);
    expect(outcomes.filter((text) => text.includes("duplicate"))).toHaveLength(9);
    expect((await receiver.inbox.stats()).counters.accepted).toBe(1);
  });

  it("are never answered from what is not committed: a failed commit, then a retry, is stored (RCV-3)", async () => {
    const { deliver, store, receiver } = sqliteBench();
    store.faults.step = new StoreError("store_unavailable", "down");
    expect((await deliver(body)).status).toBe(503);
    expect((await deliver(body)).status).toBe(503);
    store.faults.step = null;
    expect((await deliver(body)).body).toBe('{"outcome":"accepted"}');
    expect((await receiver.inbox.find()).items).toHaveLength(1);
  });

  it("are known when the commit came through although it looked failed (RCV-6)", async () => {
    const { deliver, store, receiver } = sqliteBench();
    store.faults.afterStep = new Error("The answer was lost.");
    expect((await deliver(body)).status).toBe(503);
    expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
    expect((await receiver.inbox.stats()).counters.accepted).toBe(1);
  });

  it("come from the store again after an operator acted", async () => {
    const { deliver, store, receiver } = sqliteBench();
    await deliver(body);
    const [event] = (await receiver.inbox.find()).items;
    expect(await receiver.inbox.discard(event?.id ?? 0)).toMatchObject({ ok: true });
    const writes = store.faults.writes();
    expect((await deliver(body)).body).toBe('{"outcome":"duplicate"}');
    expect(store.faults.writes()).toBe(writes + 1);
  });
});

describe("conflicts", () => {
  it("keep the first content, tell onConflict, and run no handler (RCV-6)", async () => {
    const { deliver, receiver, codes, log } = sqliteBench();
    const notices: ConflictNotice[] = [];
    const texts: string[] = [];
    receiver.onConflict((notice) => notices.push(notice));
    receiver.on("message.inbound", (event) => texts.push(event.data.body));
    await receiver.start();
    await deliver(body);
    expect(await deliver(conflicting)).toMatchObject({ status: 200, body: '{"outcome":"duplicate"}' });
    await until(() => notices.length === 1 && texts.length === 1);
    expect(notices[0]).toEqual({
      eventId: 1,
      eventType: "message.inbound",
      lane: { apiClientId: "apc_1", messageId: "msg_in_1", tag: "inbound" },
      sequence: 0,
    });
    expect(texts).toEqual(["Yes please"]);
    expect((await receiver.inbox.find({ conflict: true })).items).toHaveLength(1);
    expect((await receiver.inbox.stats()).counters.conflicts).toBe(1);
    expect(log.map(({ message }) => message).join()).toContain("other content");
    expect(codes()).not.toContain("quarantined");
  });

  it("are not what was serialised again (DLV-8)", async () => {
    const { deliver, receiver } = sqliteBench();
    const conflicts: unknown[] = [];
    receiver.onConflict((notice) => conflicts.push(notice));
    await deliver(body);
    expect(await deliver(reserialised)).toMatchObject({ status: 200, body: '{"outcome":"duplicate"}' });
    await idleTurns();
    expect(conflicts).toEqual([]);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, conflicts: 0, duplicates: 1 });
  });

  it("are told to hooks that may throw or reject without harm", async () => {
    const { deliver, receiver, log } = memoryBench();
    receiver.onConflict(() => {
      throw new Error("hook");
    });
    receiver.onConflict(() => Promise.reject(new Error("hook")));
    receiver.onAny(() => {});
    await deliver(body);
    expect((await deliver(conflicting)).body).toBe('{"outcome":"duplicate"}');
    await until(() => log.filter(({ message }) => message === "A hook threw.").length === 2);
  });

  it("are of one type and sequence: two types of one sequence are two events (EVT-12)", async () => {
    const { deliver } = sqliteBench();
    await deliver(outbound("sent", { extra: { sequence: 3 } }));
    expect((await deliver(outbound("delivery"))).body).toBe('{"outcome":"accepted"}');
    expect((await deliver(outbound("delivery", { apiClientId: "apc_2" }))).body).toBe('{"outcome":"accepted"}');
  });
});

describe("CommittedIdentities", () => {
  const digest = Buffer.alloc(32, 1);

  it("remembers 10,000 and forgets the oldest", () => {
    const known = new CommittedIdentities();
    for (let event = 0; event <= 10_000; event++) known.remember(`key ${event}`, { event, lane: 1, digest });
    expect(known.find("key 0", digest)).toBeNull();
    expect(known.find("key 1", digest)?.event).toBe(1);
    expect(known.find("key 10000", digest)?.event).toBe(10_000);
  });

  it("answers only for the same bytes, and nothing once cleared", () => {
    const known = new CommittedIdentities();
    known.remember("key", { event: 1, lane: 1, digest });
    expect(known.find("key", Buffer.alloc(32, 2))).toBeNull();
    known.clear();
    expect(known.find("key", digest)).toBeNull();
  });
});
