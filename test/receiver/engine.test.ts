/** The open inbox at work: what repeats and failures of the store are answered, and who keeps the process. */
import { describe, expect, it } from "vitest";
import { type DeliveryReport, StoreError } from "../../src/index.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Bench, DAY, deferred, idleTurns, makeBench, memoryBench, newInboxFile, sqliteBench } from "./bench.ts";
import { inbound, outbound } from "./events.ts";

const body = inbound();
const down = () => new StoreError("store_unavailable", "The disk is gone.");
const DUPLICATE = { status: 200, body: '{"outcome":"duplicate"}' };

describe("a repeat of what is stored", () => {
  it("gets its answer from the store alone: none while the store is down (RCV-6)", async () => {
    const { deliver, store } = sqliteBench();
    expect((await deliver(body)).body).toBe('{"outcome":"accepted"}');
    expect(await deliver(body)).toMatchObject(DUPLICATE);
    store.faults.step = down();
    expect((await deliver(body)).status).toBe(503);
    store.faults.step = null;
    expect(await deliver(body)).toMatchObject(DUPLICATE);
  });

  it("is counted", async () => {
    const { deliver, receiver } = sqliteBench();
    for (let repeat = 0; repeat < 4; repeat++) await deliver(body);
    expect((await receiver.inbox.find()).items).toMatchObject([{ duplicates: 3 }]);
  });

  it("is told as a duplicate, not as a conflict", async () => {
    const { deliver, receiver } = sqliteBench();
    const outcomes: string[] = [];
    const ended = ({ outcome }: DeliveryReport) => void outcomes.push(outcome);
    receiver.instrument({ delivery: () => ({ ended }) });
    await deliver(body);
    await deliver(body);
    expect(outcomes).toEqual(["accepted", "duplicate"]);
  });

  it("is known after a restart (RCV-6)", async () => {
    const before = sqliteBench();
    await before.deliver(body);
    await before.receiver.stop();
    expect(await sqliteBench({}, before.file).deliver(body)).toMatchObject(DUPLICATE);
  });

  it.each([
    ["was handled", [body], {}],
    ["is recorded as late", [outbound("sent"), outbound("queued")], { gapWait: "eager" }],
  ] as const)('is a duplicate with ack: "handled", when its event %s', async (_, bodies, more) => {
    const { deliver, receiver } = memoryBench({ ack: "handled", ...more });
    receiver.onAny(() => {});
    for (const each of bodies) expect((await deliver(each)).status).toBe(200);
    const last = bodies.at(-1) ?? "";
    expect(await deliver(last)).toMatchObject(DUPLICATE);
  });

  it("leaves a conflict a conflict, however often it comes (RCV-6)", async () => {
    const { deliver, receiver } = sqliteBench();
    const conflicts: number[] = [];
    receiver.onConflict(({ eventId }) => conflicts.push(eventId));
    await deliver(body);
    await deliver(inbound({ text: "other" }));
    await deliver(inbound({ text: "other" }));
    await deliver(body);
    await idleTurns();
    expect(conflicts).toEqual([1, 1]);
  });
});

/** A store that says something wrong about what it was to take. */
function answeringBench(wrong: object): Bench<SqliteDatabase> {
  const real = sqliteStore(newInboxFile());
  return makeBench({ ...real, step: async (turn) => ({ ...(await real.step(turn)), ...wrong }) });
}

describe("a store that does not say what became of a delivery", () => {
  it.each([
    ["an event", body, { accepted: [] }],
    ["a quarantined body", "not json", { quarantined: [] }],
  ])("makes the answer of %s 503, with the reason in the log (RCV-4)", async (_, text, wrong) => {
    const { deliver, receiver, log } = answeringBench(wrong);
    expect((await deliver(text)).status).toBe(503);
    const { fields, message } = log.find(({ message }) => message.includes("503")) ?? {};
    expect(fields).toMatchObject({ code: "store_unavailable" });
    expect(message).toContain("did not answer for this delivery");
    expect((await receiver.health()).reasons).toContain("store_unavailable");
  });

  it("makes the answer of a quarantined body 503 that alone could not be kept (RCV-4)", async () => {
    const error = new StoreError("store_full", "The disk is full.");
    const { deliver, receiver, codes } = answeringBench({ quarantined: [{ outcome: "failed", error }] });
    expect((await deliver("not json")).status).toBe(503);
    expect(codes()).toContain("store_full");
    expect((await receiver.health()).reasons).toContain("store_unavailable");
  });
});

describe("a delivery that was not stored", () => {
  it("counts in health() for half a minute to the millisecond, whenever it came", async () => {
    const { receiver, deliver, store, clock } = sqliteBench();
    await clock.advance(40_000);
    store.faults.step = down();
    expect((await deliver(body)).status).toBe(503);
    store.faults.step = null;
    await clock.advance(29_999);
    expect((await receiver.health()).reasons).toContain("store_unavailable");
    await clock.advance(1);
    expect((await receiver.health()).reasons).not.toContain("store_unavailable");
  });
});

describe("late events", () => {
  it.each([
    ["recorded without onLate", false, { state: "late", outcome: null }],
    ["handed to onLate", true, { state: "done", outcome: "handled" }],
  ])("are %s (RCV-7)", async (_, takesLate, end) => {
    const { receiver, deliver } = sqliteBench({ gapWait: "eager" });
    receiver.onAny(() => {});
    if (takesLate) receiver.onLate(() => {});
    await deliver(outbound("sent"));
    await receiver.drain();
    await deliver(outbound("queued"));
    await receiver.drain();
    expect((await receiver.inbox.find()).items[0]).toMatchObject({ late: true, ...end });
  });
});

describe("start()", () => {
  it("keeps the process until stop(), however long and however often it was called", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const { receiver } = makeBench(memoryStore({ volatile: true }), { clock });
    receiver.onAny(() => {});
    await receiver.start();
    await receiver.start();
    expect(keeping()).toBe(1);
    await clock.advance(DAY + 1_000);
    expect(keeping()).toBe(1);
    await receiver.stop();
    expect(keeping()).toBe(0);
  });

  it("starts nothing once stop() was called, though the inbox opens and deliveries are still taken", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const { receiver, deliver } = makeBench(memoryStore({ volatile: true }), { clock });
    receiver.onAny(() => {});
    const starting = receiver.start();
    const closed = deferred();
    const stopping = receiver.stop({ until: closed.promise });
    await expect(starting).rejects.toMatchObject({ code: "closed" });
    await expect(receiver.start()).rejects.toMatchObject({ code: "closed" });
    expect([receiver.running, keeping()]).toEqual([false, 0]);
    expect((await deliver(body)).status).toBe(200);
    closed.resolve();
    await stopping;
  });

  it("says without any handler how one is registered", async () => {
    const { receiver } = memoryBench();
    await expect(receiver.start()).rejects.toMatchObject({
      code: "no_handlers",
      message: expect.stringContaining('receiver.on("message.inbound"'),
    });
  });

  it("says after stop() that another receiver is needed", async () => {
    const { receiver } = memoryBench();
    receiver.onAny(() => {});
    await receiver.stop();
    await expect(receiver.start()).rejects.toMatchObject({
      code: "closed",
      message: expect.stringContaining("Make a new one"),
    });
  });
});

describe("stop()", () => {
  it("leaves what remains of its time to a handler that a delivery started while the server closed", async () => {
    const { receiver, deliver, clock } = memoryBench();
    const work = deferred();
    receiver.onAny(() => work.promise);
    const closed = deferred();
    let stopped = false;
    const stopping = receiver.stop({ timeoutMs: 5_000, until: closed.promise }).then(() => {
      stopped = true;
    });
    await idleTurns();
    const answer = deliver(body);
    await idleTurns();
    closed.resolve();
    await clock.advance(4_999);
    expect(stopped).toBe(false);
    work.resolve();
    expect((await answer).body).toBe('{"outcome":"handled"}');
    await stopping;
  });
});
