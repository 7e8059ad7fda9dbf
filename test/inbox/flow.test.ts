import { describe, expect, it } from "vitest";
import { Flow, type FlowLimits } from "../../src/inbox/flow.ts";
import { sleep } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";
import { type Bench, openBench, rounds } from "./bench.ts";
import { slowHandlers } from "./slow-handlers.ts";

const noLimit: FlowLimits = { rate: null, concurrency: null };
const perSecond = (rate: number, per: NonNullable<FlowLimits["rate"]>["per"] = "inbox"): FlowLimits => ({
  ...noLimit,
  rate: { perSecond: rate, per },
});
/** The customer is the part of the message's id before the dash. */
const customerOf = (event: object): string => String((event as { messageId: string }).messageId).split("-")[0] ?? "";

interface Start {
  readonly at: number;
  readonly lane: string | null;
  readonly sequence: number;
}

/** A bench that notes when each handler started. */
async function starting(flow: FlowLimits, worker = {}, { handlerMs = 0, clock = createFakeClock() } = {}) {
  const starts: Start[] = [];
  const bench: Bench = await openBench({
    clock,
    register: (on) =>
      on.onAny((_, ctx) => {
        const { lane, sequence } = ctx.meta;
        starts.push({ at: bench.clock.monotonic(), lane, sequence });
        return handlerMs > 0 ? sleep(clock, handlerMs) : undefined;
      }),
    worker: { flow, ...worker },
    store: memoryStore({ volatile: true, maxEvents: 100_000 }),
  });
  return { bench, starts };
}

const within = (starts: readonly Start[], from: number, to: number) =>
  starts.filter(({ at }) => at >= from && at < to).length;

describe("a rate", () => {
  it("starts handlers at even distances, from all that waits, and parks none with one key for all", async () => {
    const { bench, starts } = await starting(perSecond(10));
    bench.worker.start();
    await bench.acceptMany(100);
    await bench.clock.advance(9_850);
    expect(starts.length).toBe(99);
    const steps = starts.slice(1).map(({ at }, index) => at - (starts[index]?.at ?? 0));
    expect(Math.min(...steps)).toBeGreaterThanOrEqual(99);
    expect(Math.max(...steps)).toBeLessThanOrEqual(101);
    await bench.clock.advance(1_000);
    expect(starts.length).toBe(100);
    expect(bench.recorder.turns.flatMap(({ settles }) => settles).filter(({ kind }) => kind === "release")).toEqual([]);
    await bench.expectNothingLeaked();
  });

  it("holds for each key, and none waits behind the backlog of another", async () => {
    const { bench, starts } = await starting(perSecond(10, customerOf));
    for (let index = 0; index < 400; index++) await bench.accept(`loud-${index}`);
    for (let index = 0; index < 5; index++) await bench.accept(`quiet-${index}`);
    bench.worker.start();
    await bench.clock.advance(1_000);
    expect(starts.filter(({ lane }) => lane?.startsWith("quiet")).length).toBe(5);
    await bench.clock.advance(29_000);
    const loud = starts.filter(({ lane }) => lane?.startsWith("loud"));
    for (let second = 1; second < 30; second++)
      expect(Math.abs(within(loud, second * 1_000, (second + 1) * 1_000) - 10)).toBeLessThanOrEqual(1);
    await bench.clock.advance(12_000);
    expect(starts.length).toBe(405);
    expect(new Set(await bench.states())).toEqual(new Set(["handled"]));
    await bench.expectNothingLeaked();
  });

  it("lets a burst of fresh events of a key pass a backlog that is parked", async () => {
    const { bench, starts } = await starting(perSecond(10, "source"));
    for (let batch = 0; batch < 4; batch++) await bench.acceptMany(250, `old${batch}-`);
    await bench.clock.advance(120_000);
    bench.worker.start();
    await bench.clock.advance(5_000);
    const before = starts.length;
    await bench.acceptMany(40, "new-");
    await bench.clock.advance(12_000);
    const during = starts.slice(before);
    const fresh = during.filter(({ lane }) => lane?.startsWith("new")).length;
    expect(fresh).toBe(40);
    expect(during.length).toBeGreaterThanOrEqual(115);
    await bench.clock.advance(90_000);
    expect(starts.length).toBe(1_040);
    await bench.expectNothingLeaked();
  });

  it("returns what waits at once when it is stopped", async () => {
    const { bench, starts } = await starting(perSecond(1, customerOf));
    bench.worker.start();
    for (let index = 0; index < 50; index++) await bench.accept(`a-${index}`);
    await bench.clock.advance(1_500);
    const stopped = bench.worker.stop(10_000);
    await rounds();
    await stopped;
    expect(bench.recorder.outstanding.size).toBe(0);
    expect(starts.length).toBe(2);
  });

  it("counts an event for its source if its key cannot be computed, and logs that", async () => {
    const flow = perSecond(10, () => {
      throw new Error("no customer");
    });
    const { bench, starts } = await starting(flow);
    bench.worker.start();
    await bench.acceptMany(5);
    await bench.clock.advance(1_000);
    expect(starts.length).toBe(5);
    expect(bench.lines.map(({ fields }) => fields.code)).toContain("flow_key_failed");
  });

  it("keeps what it holds when a handler of the same key ends late", async () => {
    const slow = slowHandlers();
    const bench = await openBench({
      register: (on) => on.onAny(slow.handler),
      worker: { flow: perSecond(10), concurrency: 8 },
    });
    bench.worker.start();
    await bench.acceptMany(2, "first");
    await bench.clock.advance(500);
    slow.endOne();
    await bench.clock.advance(0);
    await bench.acceptMany(2, "second");
    slow.endOne();
    for (let step = 0; step < 10; step++) {
      await bench.clock.advance(100);
      slow.endAll();
    }
    await bench.expectAllHandled(4);
  });

  it("goes on when starts have expired while every handler was busy", async () => {
    const slow = slowHandlers();
    let quick = true;
    const bench = await openBench({
      register: (on) => on.onAny(() => (quick ? undefined : slow.handler())),
      worker: { flow: perSecond(10), concurrency: 1 },
    });
    bench.worker.start();
    // Quick handlers make it take leases ahead.
    await bench.accept("quick");
    await bench.clock.advance(1_000);
    quick = false;
    await bench.acceptMany(3);
    for (let round = 0; round < 4; round++) {
      await bench.clock.advance(5_000);
      slow.endOne();
    }
    await bench.clock.advance(1_000);
    expect(await bench.states()).toEqual(Array(4).fill("handled"));
  });

  it("goes on when the clock is set back", async () => {
    const { bench, starts } = await starting(perSecond(10, customerOf));
    bench.worker.start();
    for (let index = 0; index < 40; index++) await bench.accept(`a-${index}`);
    // Its key has a timeline too, which is now an hour ahead.
    await bench.accept("b-before");
    await bench.clock.advance(1_000);
    bench.clock.set(bench.clock.now() - 3_600_000);
    for (let index = 0; index < 10; index++) await bench.accept(`b-${index}`);
    await bench.clock.advance(3_000);
    expect(starts.filter(({ lane }) => lane?.startsWith("b")).length).toBe(11);
  });

  it("goes on after the store could not be asked", async () => {
    const { bench, starts } = await starting(perSecond(10, customerOf));
    let failures = 3;
    const { changeNotes } = bench.recorder.store;
    (bench.recorder.store as { changeNotes: typeof changeNotes }).changeNotes = async (...asked) => {
      if (failures-- > 0) throw new Error("the disk is on fire");
      return changeNotes(...asked);
    };
    bench.worker.start();
    for (let index = 0; index < 30; index++) await bench.accept(`a-${index}`);
    await bench.clock.advance(12_000);
    expect(starts.length).toBe(30);
    await bench.expectNothingLeaked();
  });

  it("handles all that waits in one drain, also what it parks meanwhile", async () => {
    const { bench, starts } = await starting(perSecond(10, "source"), { concurrency: 8 });
    await bench.acceptMany(100);
    const drained = bench.worker.drain({});
    await bench.clock.advance(30_000);
    expect(await drained).toEqual({ claimed: 100, complete: true });
    expect(starts.length).toBe(100);
    await bench.expectNothingLeaked();
  });

  it("ends a drain that waits for parked events by its budget, or by a pause", async () => {
    const { bench, starts } = await starting(perSecond(1, "source"));
    await bench.acceptMany(100);
    const drained = bench.worker.drain({ budgetMs: 10_500 });
    await bench.clock.advance(11_000);
    expect(await drained).toEqual({ claimed: starts.length, complete: false });
    expect(Math.abs(starts.length - 11)).toBeLessThanOrEqual(1);
    const paused = bench.worker.drain({});
    await bench.clock.advance(5_000);
    bench.worker.pause();
    await bench.clock.advance(1_000);
    expect((await paused).complete).toBe(false);
    await bench.expectNothingLeaked();
  });

  it("does not count parked events as started by a drain with a limit", async () => {
    const { bench, starts } = await starting(perSecond(1, "source"));
    await bench.acceptMany(50);
    const drained = bench.worker.drain({ limit: 8 });
    await bench.clock.advance(60_000);
    expect(await drained).toEqual({ claimed: starts.length, complete: false });
  });

  it("keeps the process while a drain waits for a start", async () => {
    const { clock, keeping } = watchedTimers(createFakeClock());
    const { bench } = await starting(perSecond(1), {}, { clock });
    await bench.acceptMany(3);
    const drained = bench.worker.drain({});
    await bench.clock.advance(100);
    expect(keeping()).toBe(1);
    await bench.clock.advance(5_000);
    await drained;
    expect(keeping()).toBe(0);
  });

  it("uses no starts for a key that has as many handlers as it may", async () => {
    const slow = slowHandlers();
    const flow: FlowLimits = { ...perSecond(10, customerOf), concurrency: { each: 1, per: customerOf } };
    const bench = await openBench({ register: (on) => on.onAny(slow.handler), worker: { flow } });
    let asked = 0;
    const { changeNotes } = bench.recorder.store;
    (bench.recorder.store as { changeNotes: typeof changeNotes }).changeNotes = (...args) => {
      asked++;
      return changeNotes(...args);
    };
    bench.worker.start();
    for (let index = 0; index < 3; index++) await bench.accept(`a-${index}`);
    await bench.clock.advance(500);
    asked = 0;
    await bench.clock.advance(10_000);
    expect(asked).toBe(0);
    for (let round = 0; round < 3; round++) {
      slow.endAll();
      await bench.clock.advance(1_000);
    }
    expect(await bench.states()).toEqual(Array(3).fill("handled"));
  });

  it("does not end the process if the key's function returns a promise that rejects", async () => {
    const rejected: unknown[] = [];
    const note = (reason: unknown) => void rejected.push(reason);
    process.on("unhandledRejection", note);
    const per = (() => Promise.reject(new Error("no customer"))) as unknown as () => string;
    const { bench, starts } = await starting(perSecond(10, per));
    bench.worker.start();
    await bench.acceptMany(3);
    await bench.clock.advance(1_000);
    process.off("unhandledRejection", note);
    expect(starts.length).toBe(3);
    expect(rejected).toEqual([]);
  });
});

describe("what a rate parks", () => {
  /** A flow by itself, one start a second for a source, that is given `count` fresh leases at once. */
  async function parkedOf(count: number): Promise<readonly number[]> {
    const bench = await openBench();
    await bench.acceptMany(count);
    const { leases } = await bench.recorder.store.step({
      ...{ settles: [], accepts: [], quarantines: [], quarantineQuota: { maxRows: 1, maxBytes: 1 } },
      claim: {
        limit: count,
        leaseMs: 30_000,
        maxAttempts: 5,
        onDead: "continue",
        mode: "ordinary",
        takes: () => true,
      },
    });
    const parkedFor: number[] = [];
    const worker = { wake() {}, park: (_lease: object, delayMs: number) => void parkedFor.push(delayMs) };
    const options = { clock: bench.clock, logger: silentLogger, limits: perSecond(1, "source") };
    const flow = new Flow(bench.recorder.store, bench, options, worker);
    for (const lease of leases) flow.add({ lease, parsed: null });
    await rounds();
    return parkedFor;
  }

  it("has places among the fresh ones of the next minute, and those for whom it is full among the others", async () => {
    const parkedFor = await parkedOf(100);
    expect(parkedFor.length).toBe(99);
    expect(Math.max(...parkedFor)).toBeGreaterThan(58_000);
    expect(Math.max(...parkedFor)).toBeLessThanOrEqual(61_000);
  });
});

describe("a concurrency of each key", () => {
  it("brings a burst of quick handlers back soon, however long the process has run", async () => {
    const flow: FlowLimits = { ...noLimit, concurrency: { each: 2, per: "source" } };
    const { bench, starts } = await starting(flow, { concurrency: 32 }, { handlerMs: 10 });
    bench.worker.start();
    await bench.clock.advance(600_000);
    await bench.acceptMany(30);
    await bench.clock.advance(5_000);
    expect(starts.length).toBe(30);
  });

  it("bounds a key, and leaves the other handlers to others", async () => {
    const slow = slowHandlers();
    const flow: FlowLimits = { ...noLimit, concurrency: { each: 2, per: customerOf } };
    const bench = await openBench({
      register: (on) => on.onAny(slow.handler),
      worker: { flow, concurrency: 8 },
      handlerTimeoutMs: 3_600_000,
    });
    for (let index = 0; index < 40; index++) await bench.accept(`loud-${index}`);
    for (let index = 0; index < 3; index++) await bench.accept(`quiet-${index}`);
    bench.worker.start();
    for (let step = 0; step < 20; step++) await bench.clock.advance(100);
    expect(slow.running()).toBe(4);
    const turns = bench.recorder.turns.length;
    for (let step = 0; step < 60; step++) await bench.clock.advance(1_000);
    // Parked lanes come back ever more rarely while no handler ends.
    expect(bench.recorder.turns.length - turns).toBeLessThan(250);
    await slow.endEach(150, () => bench.clock.advance(500));
    expect(slow.most()).toBe(4);
    expect(new Set(await bench.states())).toEqual(new Set(["handled"]));
    await bench.expectNothingLeaked();
  });
});
