/**
 * A call to the store fails, loses its answer, or meets a stop or a pause, at each await of the worker and its flow: every event is handled
 * once, no lease stays behind, and no place is given back twice or never.
 */
import { describe, expect, it } from "vitest";
import { Flow, type FlowLimits } from "../../src/inbox/flow.ts";
import type { HandlerContext } from "../../src/inbox/handlers.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { sleep } from "../../src/internal/clock.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { POLICY } from "../contracts/store-bench.ts";
import { Bench, deferred, openBench } from "./bench.ts";

const CONCURRENCY = 3;
/** Lanes of two customers, which name them, and the sequences of their events. */
const EVENTS = ["a-0 1", "b-0 1", "a-1 1", "b-1 1", "a-0 2", "b-0 2", "a-2 1", "a-3 1", "a-0 3", "b-2 1"];
const customerOf = (event: object) => String((event as { messageId: string }).messageId).slice(0, 1);
const rate = { perSecond: 4, per: customerOf };
const concurrency = { each: 1, per: customerOf };

const FLOWS: Readonly<Record<string, { readonly flow: FlowLimits | null; readonly atOnce: number }>> = {
  "no limit": { flow: null, atOnce: CONCURRENCY },
  "a rate of each customer": { flow: { rate, concurrency: null }, atOnce: CONCURRENCY },
  "a concurrency of each customer": { flow: { rate: null, concurrency }, atOnce: 2 },
  "both, with one rate for all": { flow: { rate: { perSecond: 8, per: "inbox" }, concurrency }, atOnce: 2 },
};

type Call = "step" | "changeNotes" | "nextDue" | "extend";

/** A store that passes one of its calls to `meet`. */
function watched(call: Call, nth: number, meet: (work: () => Promise<never>) => Promise<never>) {
  const inner: InboxStore<never> = memoryStore({ volatile: true });
  const work = inner[call] as (...given: readonly unknown[]) => Promise<never>;
  let calls = 0;
  const watching = (...given: readonly unknown[]) => (++calls === nth ? meet(() => work(...given)) : work(...given));
  /** No later call meets it. @returns whether one has */
  const end = () => {
    const isMet = calls >= nth;
    calls = nth;
    return isMet;
  };
  return { store: { ...inner, [call]: watching } as InboxStore<never>, end };
}

/** Workers on one store, one after the other, whose handlers take 20 ms. */
class Course {
  readonly clock = createFakeClock();
  readonly starts: { readonly id: string; readonly at: number }[] = [];
  readonly store: InboxStore<never>;
  readonly flow: FlowLimits | null;
  /** Handlers wait for it. */
  gate: Promise<void> | null = null;
  running = 0;
  most = 0;
  /** A stop or a drain was over before its handlers were. */
  isEarly = false;
  bench!: Bench;
  #isStopping = false;
  readonly #before: Bench[] = [];

  constructor(store: InboxStore<never>, flow: FlowLimits | null) {
    this.store = store;
    this.flow = flow;
  }

  async open(): Promise<this> {
    this.bench = await openBench(this.#options);
    return this;
  }

  /** Stops this process, and starts the next one. */
  handOver(): void {
    this.#isStopping = true;
    void this.bench.worker.stop(60_000).then(() => {
      this.isEarly ||= this.running > 0;
      this.#before.push(this.bench);
      this.bench = new Bench<never>(this.store, this.#options);
      this.bench.worker.start();
      this.#isStopping = false;
    });
  }

  get #options() {
    const { clock, store, flow } = this;
    const handler = async (_event: object, { meta: { lane, sequence } }: Pick<HandlerContext, "meta">) => {
      this.starts.push({ id: `${lane} ${sequence}`, at: clock.monotonic() });
      this.most = Math.max(this.most, ++this.running);
      await (this.gate ?? sleep(clock, 20));
      this.running--;
    };
    const worker = { flow, concurrency: CONCURRENCY, leaseMs: 3_000 };
    return { clock, store, worker, register: (on: Bench["registry"]) => void on.onAny(handler) };
  }

  /** As their sender: each again until it is answered. */
  async deliver(...ids: readonly string[]): Promise<void> {
    let left = ids.length;
    const one = async (id: string): Promise<void> => {
      const [messageId = "", sequence] = id.split(" ");
      const isStored = await this.bench.accept(messageId, Number(sequence)).then(
        () => true,
        () => false,
      );
      if (!isStored) return one(id);
      left -= 1;
    };
    for (const id of ids) void one(id);
    while (left > 0) await this.clock.advance(50);
  }

  /** Lets time pass until all events are handled. */
  async finish(count: number, isDriven: boolean): Promise<void> {
    let isDraining = false;
    for (let step = 0; step < 150; step++) {
      const states = await this.bench.states();
      if (states.length === count && states.every((state) => state === "handled")) break;
      if (isDriven && !isDraining && !this.#isStopping) {
        isDraining = true;
        const drained = this.bench.worker.drain({}).catch(() => null);
        void drained.then((result) => {
          // A worker that was started has others too, and so has one whose parked lanes are due meanwhile.
          const hasOthers = this.bench.worker.isStarted || this.flow !== null;
          this.isEarly ||= result?.complete === true && !hasOthers && this.running > 0;
          isDraining = false;
        });
      }
      await this.clock.advance(500);
    }
    // The next renewal, and the end of a drain.
    await this.clock.advance(2_000);
  }

  /** Each event was handled once, and each key has as many places as it had. */
  async check(atOnce: number): Promise<void> {
    const started = this.starts.map(({ id }) => id);
    expect(started.toSorted()).toEqual(EVENTS.toSorted());
    const inOrder = (lane: string) => started.filter((id) => id.startsWith(lane));
    expect([...inOrder("a-0"), ...inOrder("b-0")]).toEqual(["a-0 1", "a-0 2", "a-0 3", "b-0 1", "b-0 2"]);
    expect(this.most).toBeLessThanOrEqual(atOnce);
    expect(this.isEarly).toBe(false);
    await this.#expectNothingLeaked();
    this.bench.worker.start();
    const gate = deferred();
    this.gate = gate.promise;
    const more = ["a-6 1", "a-7 1", "a-8 1", "b-6 1", "b-7 1", "b-8 1"];
    await this.deliver(...more);
    await this.clock.advance(4_000);
    expect(this.running).toBe(atOnce);
    this.gate = null;
    gate.resolve();
    await this.finish(EVENTS.length + more.length, false);
    expect(this.starts).toHaveLength(EVENTS.length + more.length);
    await this.#expectNothingLeaked();
  }

  async #expectNothingLeaked(): Promise<void> {
    for (const bench of [...this.#before, this.bench]) await bench.expectNothingLeaked();
  }

  /** Starts of a customer in any second. Those that are up to half a second late may come at once. */
  mostInASecond(): number {
    const counts = this.starts.map(
      ({ id, at }) => this.starts.filter((one) => one.id[0] === id[0] && one.at >= at && one.at < at + 1_000).length,
    );
    return Math.max(...counts);
  }
}

/** What one call to the store meets. */
const FAULTS: Readonly<Record<string, (course: () => Course) => (work: () => Promise<never>) => Promise<never>>> = {
  fails: () => () => Promise.reject(new Error("the disk is on fire")),
  "loses its answer": () => async (work) => {
    await work();
    throw new Error("the answer was lost");
  },
  "is slow, and meets a stop": (course) => async (work) => {
    course().handOver();
    await sleep(course().clock, 700);
    return work();
  },
  "is done, and meets a stop": (course) => async (work) => {
    const done = await work();
    course().handOver();
    return done;
  },
  "meets a pause": (course) => async (work) => {
    const { bench, clock } = course();
    bench.worker.pause();
    void sleep(clock, 1_000).then(() => bench.worker.resume());
    return work();
  },
};

const CALLS: Readonly<Record<Call, readonly number[]>> = {
  step: [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20],
  changeNotes: [1, 2, 3, 4, 5, 7, 10],
  nextDue: [1, 2, 4],
  extend: [1, 2],
};
const places = Object.entries(FLOWS).flatMap(([limit, { flow, atOnce }]) =>
  (["started", "drained"] as const).flatMap((way) =>
    (Object.keys(CALLS) as Call[])
      .filter((call) => (call === "changeNotes" ? flow?.rate : call !== "nextDue" || way === "started"))
      .map((call) => ({ limit, flow, atOnce, way, call })),
  ),
);

describe.each(Object.entries(FAULTS))("a call to the store that %s", (_, fault) => {
  it.each(places)(
    "loses no event and no place of a worker that is $way with $limit: $call",
    async ({ call, ...scene }) => {
      const { flow, atOnce, way } = scene;
      let met = 0;
      for (const nth of CALLS[call]) {
        let course: Course;
        const { store, end } = watched(call, nth, (work) => fault(() => course)(work));
        course = await new Course(store, flow).open();
        if (way === "started") course.bench.worker.start();
        await course.deliver(...EVENTS.slice(0, 7));
        await course.clock.advance(100);
        await course.deliver(...EVENTS.slice(7));
        await course.finish(EVENTS.length, way === "drained");
        if (end()) met += 1;
        await course.check(atOnce);
        if (flow?.rate?.per === customerOf) expect(course.mostInASecond()).toBeLessThanOrEqual(7);
      }
      // Renewals are rare: a place is held for long with a rate alone.
      if (call !== "extend") expect(met).toBeGreaterThan(0);
    },
  );
});

describe("a store that fails while lanes are parked", () => {
  it.each(["changeNotes", "step"] as const)("gets them back, and is asked rarely: %s", async (call) => {
    const inner: InboxStore<never> = memoryStore({ volatile: true });
    let [isDown, asked] = [false, 0];
    const work = inner[call] as (...given: readonly unknown[]) => Promise<never>;
    const failing = async (...given: readonly unknown[]) => {
      if (!isDown) return work(...given);
      // A loop without a pause would not let the test end.
      if (++asked > 500) await new Promise(() => {});
      throw new Error("the disk is on fire");
    };
    const course = await new Course({ ...inner, [call]: failing }, { rate, concurrency: null }).open();
    const ids = Array.from({ length: 40 }, (_, index) => `${"ab"[index % 2]}-${index} 1`);
    await course.deliver(...ids);
    course.bench.worker.start();
    await course.clock.advance(100);
    isDown = true;
    for (let second = 0; second < 10; second++) {
      await course.clock.advance(1_000);
      // Two that may start soon and two others of each customer; all others are in their queues.
      if (call === "changeNotes") expect(course.bench.recorder.outstanding.size).toBeLessThanOrEqual(8 + CONCURRENCY);
    }
    expect(asked).toBeLessThanOrEqual(200);
    isDown = false;
    await course.finish(ids.length, false);
    expect(course.starts.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    expect(course.mostInASecond()).toBeLessThanOrEqual(7);
    await course.bench.expectNothingLeaked();
  });
});

describe("a lease that is lost before its handler may start", () => {
  it.each([0, 120_000])(
    "is given up at once, wherever it waits, and its event is handled once: %i ms old",
    async (ageMs) => {
      const ids = ["a-0 1", "a-1 1", "a-2 1"];
      const inner: InboxStore<never> = memoryStore({ volatile: true });
      const gate = deferred();
      const changeNotes: typeof inner.changeNotes = (...given) => gate.promise.then(() => inner.changeNotes(...given));
      const course = await new Course({ ...inner, changeNotes }, { rate, concurrency: null }).open();
      await course.deliver(...ids);
      await course.clock.advance(ageMs);
      // Two of a customer may start soon. The third is about to return to its queue.
      const { worker, recorder, endings } = course.bench;
      worker.start();
      await course.clock.advance(100);
      const held = [...recorder.outstanding.values()].map(({ event }) => event);
      expect(held).toHaveLength(ids.length);
      for (const event of held) recorder.losing.add(event);
      await course.clock.advance(1_000);
      expect(endings.map(([event, ending]) => `${event} ${ending}`).toSorted()).toEqual(
        held.map((event) => `${event} put_back`).toSorted(),
      );
      recorder.losing.clear();
      gate.resolve();
      await course.finish(ids.length, false);
      expect(course.starts.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    },
  );
});

it("takes no more of a rate than it uses: the next start is another process's", async () => {
  const clock = createFakeClock();
  const starts: number[] = [];
  const register = (on: Bench["registry"]) => void on.onAny(() => void starts.push(Math.round(clock.monotonic())));
  const worker = { flow: { rate: { perSecond: 10, per: "inbox" }, concurrency: null } } as const;
  const one = await openBench({ clock, register, worker });
  const other: Bench = new Bench(one.recorder.store, { clock, register, worker });
  one.worker.start();
  other.worker.start();
  // The second and the third wait for theirs.
  for (const id of ["a", "b", "c"]) {
    await one.accept(id);
    await clock.advance(10);
  }
  await clock.advance(220);
  await other.accept("d");
  await clock.advance(500);
  expect(starts).toEqual([0, 100, 200, 300]);
});

it("waits at a stop for a lane that was claimed anew before the end of its last lease was known", async () => {
  const gate = deferred();
  const register = (on: Bench["registry"]) =>
    void on.onAny((_event, { meta }) => (meta.sequence === 2 ? gate.promise : undefined));
  const bench = await openBench({ register });
  const { worker, recorder, clock } = bench;
  worker.start();
  await bench.accept("a", 1);
  recorder.failAfterCommit = 1;
  await clock.advance(0);
  await bench.accept("a", 2);
  await clock.advance(1_000);
  let isStopped = false;
  const stopped = worker.stop(60_000).then(() => {
    isStopped = true;
  });
  await clock.advance(1_000);
  expect([recorder.failAfterCommit, isStopped]).toEqual([0, false]);
  gate.resolve();
  await stopped;
  expect(await bench.states()).toEqual(["handled", "handled"]);
});

it("starts one event that is not fresh after three that are, while both wait", async () => {
  const bench = await openBench();
  const { clock } = bench;
  await bench.acceptMany(4, "old");
  await clock.advance(120_000);
  await bench.acceptMany(8, "new");
  const claim = {
    limit: 12,
    leaseMs: 30_000,
    maxAttempts: 5,
    onDead: "continue",
    mode: "ordinary",
    takes: () => true,
  } as const;
  const quarantineQuota = { maxRows: 1, maxBytes: 1 };
  const turn = { settles: [], accepts: [], quarantines: [], quarantineQuota, claim };
  const { leases } = await bench.recorder.store.step(turn);
  const limits = { rate: null, concurrency: { each: 100, per: "source" } } as const;
  const flow = new Flow(bench.recorder.store, bench, { clock, logger: silentLogger, limits }, { wake() {}, park() {} });
  for (const lease of leases) flow.add({ lease, parsed: null });
  const order = leases.map(() => flow.next()?.lease.key.name?.slice(0, 3));
  const turns = ["new", "new", "new", "old"];
  expect(order).toEqual([...turns, ...turns, "new", "new", "old", "old"]);
});

it("keeps its rate while the inbox is pruned, and writes no key, which may name a person", async () => {
  const notes: unknown[] = [];
  const inner: InboxStore<never> = memoryStore({ volatile: true });
  const changeNotes: typeof inner.changeNotes = (names, change) =>
    inner.changeNotes(names, (...given) => {
      const written = change(...given);
      notes.push(names, [...written]);
      return written;
    });
  const starts: number[] = [];
  const bench = await openBench({
    store: { ...inner, changeNotes },
    register: (on) => on.onAny(() => void starts.push(bench.clock.monotonic())),
    worker: { flow: { rate: { perSecond: 1, per: () => "+15550100009" }, concurrency: null } },
  });
  bench.worker.start();
  await bench.acceptMany(6);
  for (let step = 0; step < 30; step++) {
    await bench.clock.advance(100);
    await bench.recorder.store.prune(POLICY);
  }
  expect(starts.map(Math.round)).toEqual([0, 1_000, 2_000, 3_000]);
  expect(notes.length).toBeGreaterThan(0);
  expect(JSON.stringify(notes)).not.toContain("5550100009");
});

it("claims no more than it has handlers for while the ends of others are not stored", async () => {
  const starts: number[] = [];
  const bench = await openBench({
    register: (on) =>
      on.onAny((_event, { meta }) => {
        starts.push(meta.eventId);
        return sleep(bench.clock, 100);
      }),
    worker: { concurrency: 2 },
  });
  bench.worker.start();
  bench.recorder.unfinishedTurns = 1_000;
  for (const id of ["a", "b", "c", "d", "e", "f"]) {
    await bench.accept(id);
    await bench.clock.advance(1_000);
  }
  expect(starts).toHaveLength(2);
  bench.recorder.unfinishedTurns = 0;
  await bench.clock.advance(60_000);
  expect(starts).toHaveLength(6);
  expect(new Set(await bench.states())).toEqual(new Set(["handled"]));
});
