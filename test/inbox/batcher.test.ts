import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { Turn } from "../../src/inbox/store.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type Bench, laneOf, openBench, outbound, quarantine, rounds, startBench } from "./bench.ts";

/** An event that is alone in its lane. */
const ALONE = { lane: { source: "service", tenant: "client", name: null, order: null }, sequence: 0 } as const;
const OTHER_CONTENT = { digest: new Uint8Array(32) };

/** How many events each turn accepted. */
const sizes = (bench: Bench) => bench.recorder.turns.map((turn) => turn.accepts.length);

describe("Batcher", () => {
  it("stores what comes within one tick in one turn", async () => {
    const bench = await openBench();
    const accepted = await bench.acceptMany(64);
    expect(accepted.map((acceptance) => acceptance.outcome)).toEqual(Array(64).fill("accepted"));
    expect(sizes(bench)).toEqual([64]);
  });

  it("waits while the queue grows over a round of the event loop", async () => {
    const bench = await openBench();
    const accepted = [bench.accept("a"), bench.accept("b")];
    for (const id of ["c", "d", "e"]) {
      await rounds(1);
      accepted.push(bench.accept(id));
    }
    await Promise.all(accepted);
    expect(sizes(bench)).toEqual([5]);
  });

  it.each([4, 5])("waits no longer once a turn for 4 is full with %i", async (count) => {
    const bench = await openBench({ batch: { maxEvents: 4 } });
    const accepted = bench.acceptMany(count);
    await rounds(1);
    expect(sizes(bench)).toEqual([4]);
    await accepted;
  });

  it("builds the next turn while one commits, and runs one at a time", async () => {
    const bench = await openBench();
    const letGo = bench.hold();
    const early = bench.acceptMany(3, "early");
    await rounds();
    const late = [bench.acceptMany(5, "a"), bench.acceptMany(7, "b")];
    await rounds();
    expect(sizes(bench)).toEqual([3]);
    letGo();
    await Promise.all([early, ...late]);
    expect(sizes(bench)).toEqual([3, 12]);
  });

  it("takes maxEvents at most, without waiting for more, and goes on with the rest", async () => {
    const bench = await openBench({ batch: { maxEvents: 4 } });
    await bench.acceptMany(10);
    expect(sizes(bench)).toEqual([4, 4, 2]);
  });

  it("hears who was just answered before the next claim, though the next turn is full already", async () => {
    const bench = await openBench({ batch: { maxEvents: 2 } });
    const turnsWhenAnswered = bench.accept("first").then(() => bench.recorder.turns.length);
    const others = bench.acceptMany(5);
    expect(await turnsWhenAnswered).toBe(1);
    await others;
  });

  it("takes maxBytes at most, but always one", async () => {
    const one = outbound((await openBench()).clock, "a", 1).raw.byteLength;
    const bench = await openBench({ batch: { maxBytes: 2 * one } });
    await Promise.all(["a", "b", "c", "d"].map((id) => bench.accept(id)));
    expect(sizes(bench)).toEqual([2, 2]);
    const small = await openBench({ batch: { maxBytes: 10 } });
    await small.acceptMany(2);
    expect(sizes(small)).toEqual([1, 1]);
  });

  it("bounds quarantined bodies alike", async () => {
    const bench = await openBench({ batch: { maxBytes: 25 } });
    const answers = ["a", "b", "c", "b"].map((text) => quarantine(bench, text, 10));
    expect(await Promise.all(answers)).toEqual(["held", "held", "held", "duplicate"]);
    expect(bench.recorder.turns.map((turn) => turn.quarantines.length)).toEqual([2, 2]);
  });

  it("refuses beyond maxQueued at once, events and quarantined bodies, and takes them again later", async () => {
    const bench = await openBench({ batch: { maxQueued: 2 } });
    const queued = [bench.accept("a"), quarantine(bench, "b")];
    await expect(bench.accept("c")).rejects.toMatchObject({
      ...{ code: "overloaded", message: expect.stringContaining("the service retries") },
    });
    await expect(quarantine(bench, "d")).rejects.toMatchObject({ code: "overloaded" });
    await Promise.all(queued);
    expect(await bench.accept("c")).toMatchObject({ outcome: "accepted" });
  });

  it("rejects every delivery of a turn that fails, with what was joined to it, and none is left hanging (I2, RCV-3)", async () => {
    const bench = await openBench();
    bench.recorder.failNextTurns = 1;
    const outcomes = await Promise.allSettled([...Array(20).keys()].map((n) => bench.accept(`m${n % 10}`)));
    const quarantined = await Promise.allSettled([quarantine(bench, "q")]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(Array(20).fill("rejected"));
    expect(quarantined[0]?.status).toBe("fulfilled");
    expect(await bench.events()).toEqual([]);
    expect(await bench.accept("m1")).toMatchObject({ outcome: "accepted" });
  });

  it("rejects quarantined bodies of a failed turn too, with a reason whatever was thrown", async () => {
    const bench = await openBench();
    bench.recorder.gate = Promise.reject("no error object");
    bench.recorder.gate.catch(() => {});
    await expect(quarantine(bench, "q")).rejects.toMatchObject({
      ...{ code: "store_unavailable", message: "The store failed.", cause: "no error object" },
    });
    bench.recorder.gate = null;
    expect(await quarantine(bench, "q")).toBe("held");
  });

  it("tries settles of a failed turn again until the store answers, once each (I3)", async () => {
    const bench = await startBench(() => {});
    await bench.acceptMany(3);
    bench.recorder.failNextTurns = 4;
    // 50, 100, 200 and 400 ms between the tries.
    await bench.clock.advance(749);
    expect(await bench.states()).toEqual(["pending", "pending", "pending"]);
    await bench.clock.advance(1);
    expect(await bench.states()).toEqual(["handled", "handled", "handled"]);
    expect(bench.endings).toHaveLength(3);
    await bench.expectNothingLeaked();
  });

  it("tries every 5 s at the longest, and quickly again after a success", async () => {
    const bench = await startBench(() => {});
    await bench.accept("a");
    bench.recorder.failNextTurns = 20;
    await bench.clock.advance(120_000);
    expect(bench.recorder.failNextTurns).toBe(0);
    expect(bench.recorder.turns.length).toBeLessThan(40);
    await bench.accept("b");
    bench.recorder.failNextTurns = 1;
    await bench.clock.advance(50);
    expect(await bench.states()).toEqual(["handled", "handled"]);
  });

  it("lets no delivery wait for the next try of a settle, and tries at once when the store answers again (RCV-5)", async () => {
    const bench = await startBench(() => {});
    await bench.accept("a");
    bench.recorder.failNextTurns = 1_000;
    await bench.clock.advance(10_000);
    await expect(bench.accept("b")).rejects.toThrow("on fire");
    bench.recorder.failNextTurns = 0;
    expect(await bench.accept("c")).toMatchObject({ outcome: "accepted" });
    await rounds();
    await bench.expectAllHandled(2);
  });

  it("takes a claim for lost whose settle the store leaves without an answer (I3)", async () => {
    const inner = memoryStore({ volatile: true });
    const step = async (turn: Turn<never>) => ({ ...(await inner.step(turn)), settled: [] });
    const bench = await openBench({ store: { ...inner, step } });
    const lease = { lane: 1, token: 1, event: 1, cursorBefore: null };
    const settled = await new Promise((resolve) => {
      bench.groupCommit.settle({ kind: "release", lease, delayMs: 0, ran: false }, resolve);
    });
    expect(settled).toEqual({ status: "lost" });
  });

  it("asks again for what is unfinished, every 50 ms, and holds up no delivery for it (I9)", async () => {
    const bench = await startBench(() => {});
    bench.recorder.unfinishedTurns = 3;
    await bench.accept("a");
    await rounds();
    expect(await bench.accept("b")).toMatchObject({ outcome: "accepted" });
    await bench.clock.advance(49);
    expect(await bench.states()).toEqual(["pending", "pending"]);
    await bench.clock.advance(100);
    expect(await bench.states()).toEqual(["handled", "handled"]);
    expect(bench.endings).toHaveLength(2);
    await bench.expectNothingLeaked();
  });

  it("joins identical deliveries that wait together, and counts them with the newest timestamp (RCV-6)", async () => {
    const bench = await openBench();
    const signedAt = bench.clock.now();
    const offsets = [0, 5, 9, 7];
    const answers = await Promise.all(offsets.map((offset) => bench.accept("a", 1, { signedAt: signedAt + offset })));
    expect(bench.recorder.turns.flatMap((turn) => turn.accepts)).toMatchObject([
      { signedAt, repeats: { count: 3, signedAt: signedAt + 9 } },
    ]);
    expect(answers.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate", "duplicate", "duplicate"]);
    expect(answers.slice(1)).toMatchObject(Array(3).fill({ event: 1, state: "pending", conflict: false, signedAt }));
    expect((await bench.events())[0]?.duplicates).toBe(3);
    expect((await bench.accept("a")).outcome).toBe("duplicate");
    expect(bench.recorder.turns).toHaveLength(2);
    expect((await bench.events())[0]?.duplicates).toBe(4);
  });

  it.each([
    ["lane's name", {}, { lane: laneOf("b") }],
    ["source", {}, { lane: { ...laneOf("a"), source: "other" } }],
    ["tenant", {}, { lane: { ...laneOf("a"), tenant: "other" } }],
    ["kind of lane", {}, { ...ALONE, ownId: "a" }],
    ["sequence", {}, { sequence: 2 }],
    ["type", {}, { eventType: "message.queued" }],
    ["content", {}, OTHER_CONTENT],
    ["own id", { ...ALONE, ownId: "evt_1" }, { ownId: "evt_2" }],
    ["own id's source", { ...ALONE, ownId: "evt_1" }, { lane: { ...ALONE.lane, source: "other" } }],
    ["own id's tenant", { ...ALONE, ownId: "evt_1" }, { lane: { ...ALONE.lane, tenant: "other" } }],
    ["content under one id", { ...ALONE, ownId: "evt_1" }, OTHER_CONTENT],
  ])("keeps deliveries apart that are equal in all but their %s", async (_, own, other) => {
    expect(await batchedWith(own, other)).toHaveLength(2);
  });

  it.each([
    ["the lane", { lane: { ...ALONE.lane, name: "sub_1", order: "position" } as const, sequence: 3_000 }],
    ["the type", { eventType: "message.queued" }],
  ])("joins deliveries of one event by its own id, whatever %s", async (_, other) => {
    expect(await batchedWith({ ...ALONE, ownId: "evt_1" }, other)).toMatchObject([{ repeats: { count: 1 } }]);
  });

  it("goes on after a callback that throws, and the error surfaces", async () => {
    const bench = await startBench(() => {});
    await rounds();
    const surfaced = nextUncaught();
    const event = outbound(bench.clock, "a", 1);
    bench.groupCommit.accept(event, { eventType: "message.sent" } as never, () => {
      throw new Error("the application's logger");
    });
    const other = bench.accept("b");
    expect(await surfaced).toMatchObject({ message: "the application's logger" });
    expect(await other).toMatchObject({ outcome: "accepted" });
    await rounds();
    await bench.expectAllHandled(2);
  });

  it("hands a lease taken at accept on with the event as it was parsed", async () => {
    const handled: unknown[] = [];
    const bench = await startBench((event) => void handled.push(event));
    await rounds();
    const parsed = { eventType: "message.sent" } as never;
    bench.groupCommit.accept(outbound(bench.clock, "a", 1), parsed, () => {});
    await rounds();
    expect(handled).toHaveLength(1);
    expect(handled[0]).toBe(parsed);
  });
});

/** What is stored of two deliveries of one batch that are equal but for `other`. */
async function batchedWith(own: Partial<NewEvent>, other: Partial<NewEvent>): Promise<readonly NewEvent[]> {
  const bench = await openBench();
  const event = { ...outbound(bench.clock, "a", 1), ...own };
  const accept = (one: NewEvent) =>
    new Promise((resolve) => bench.groupCommit.accept(one, {}, (_error, acceptance) => resolve(acceptance)));
  await Promise.all([accept(event), accept({ ...event, ...other })]);
  return bench.recorder.turns.flatMap((turn) => turn.accepts);
}

/** The next uncaught error, kept from failing the test run. */
function nextUncaught(): Promise<unknown> {
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  return new Promise((resolve) => {
    process.once("uncaughtException", (error) => {
      for (const listener of others) process.on("uncaughtException", listener);
      resolve(error);
    });
  });
}
