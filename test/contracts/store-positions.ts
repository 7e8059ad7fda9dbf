/** The store contract on lanes with several events of another source: by position and by arrival. */
import type { LaneOrder, NewEvent } from "../../src/inbox/record.ts";
import type { EventQuery, Lease, Takes } from "../../src/inbox/store.ts";
import { type Bench, bytes, type ContractCase, DAY, it, POLICY } from "./store-bench.ts";

type Order = Exclude<LaneOrder, "sequence">;

const LANE = { source: "billing", tenant: null, name: "sub_1" } as const;

/** An event of the lane `sub_1` of the source `billing`. */
function event(bench: Bench, order: Order, ownId: string, position = 0, wish: Partial<NewEvent> = {}): NewEvent {
  const raw = bytes(JSON.stringify({ ownId, position }));
  return bench.event(position, { gapWaitMs: 0, ...wish, lane: { ...LANE, order }, ownId, raw });
}

const byPosition = (bench: Bench, ownId: string, position: number, wish?: Partial<NewEvent>) =>
  event(bench, "position", ownId, position, wish);
const NOISE = { eventType: "noise" };
const byArrival = (bench: Bench, ownId: string) => event(bench, "arrival", ownId);

/** Claims and completes until nothing is due: the identities of the events, those that came late in brackets. */
async function handled(bench: Bench): Promise<string[]> {
  const order: string[] = [];
  for (;;) {
    const [lease] = await bench.claim();
    if (lease === undefined) return order;
    order.push(lease.late ? `(${lease.ownId})` : `${lease.ownId}`);
    bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
  }
}

/** A source of numbers that are the same in each run. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Accepts, claims, ends and loses leases in a random order, until all have ended. Returns what was passed to a handler, in order. */
async function churn(bench: Bench, seed: number): Promise<readonly Lease[]> {
  const random = seeded(seed);
  const passed: Lease[] = [];
  let held: Lease[] = [];
  let events = 0;
  const accept = (): NewEvent => {
    const wish = {
      lane: { ...LANE, order: "position", name: `sub_${random(3)}` },
      gapWaitMs: random(2) * 500,
    } as const;
    return { ...byPosition(bench, `${seed} ${++events}`, random(8)), ...wish };
  };
  const settle = (lease: Lease) => {
    const ways = [
      bench.complete(lease),
      bench.complete(lease),
      bench.retry(lease, random(900)),
      bench.release(lease, 0, true),
    ];
    return ways[random(ways.length)] ?? bench.complete(lease);
  };
  for (let turn = 0; turn < 150 || held.length > 0 || (await bench.store.nextDue()) !== null; turn++) {
    const isEnding = turn >= 150;
    const ended = held.splice(0, isEnding ? held.length : random(held.length + 1));
    const accepts = isEnding ? [] : Array.from({ length: random(4) }, accept);
    const mode = random(4) === 0 ? "recover" : "ordinary";
    const claim = { limit: random(3), leaseMs: 2_000, maxAttempts: 1_000, mode } as const;
    const settles = ended.map((lease) => (isEnding ? bench.complete(lease) : settle(lease)));
    const { leases } = await bench.step({ accepts, settles, claim });
    passed.push(...leases);
    held.push(...leases);
    // Now and then all leases of a process that hangs run out.
    const isLong = random(20) === 0;
    if (isLong) held = [];
    await bench.clock.advance(isLong ? 2_001 : random(700));
  }
  return passed;
}

const found = async (bench: Bench) => (await bench.find()).map(({ ownId, sequence }) => [ownId, sequence]);

export const positionCases: readonly ContractCase[] = [
  it("passes the lowest position first, waits for nothing between two, and takes equal ones as they came", async (bench) => {
    await bench.accept(byPosition(bench, "a", 7), byPosition(bench, "b", 3), byPosition(bench, "c", 7));
    await bench.accept(byPosition(bench, "d", 100), byPosition(bench, "e", 3));
    bench.expect(await handled(bench)).toEqual(["b", "e", "a", "c", "d"]);
    bench.expect(await found(bench)).toEqual([
      ["a", 7_000],
      ["b", 3_000],
      ["c", 7_001],
      ["d", 100_000],
      ["e", 3_001],
    ]);
  }),
  it("passes an older position only as late, and an equal one in its turn", async (bench) => {
    await bench.handle(byPosition(bench, "a", 5));
    await bench.accept(byPosition(bench, "b", 4), byPosition(bench, "c", 5));
    bench.expect(await handled(bench)).toEqual(["c", "(b)"]);
    bench.expect((await bench.store.stats()).counters.late).toBe(1);
  }),
  it("makes no event late by one that no handler takes", async (bench) => {
    await bench.accept(byPosition(bench, "b", 5, NOISE));
    const takes: Takes = (_lane, type) => type !== "noise";
    const { untaken, leases } = await bench.step({ claim: { limit: 1, takes } });
    bench.expect(leases).toEqual([]);
    bench.expect(untaken).toMatchObject([{ eventType: "noise", state: "done", late: false, sequence: 5_000 }]);
    await bench.accept(byPosition(bench, "a", 4));
    bench.expect(await bench.claimOne({ takes })).toMatchObject({ ownId: "a", late: false, cursorBefore: null });
    const { counters, gauges } = await bench.store.stats();
    bench.expect([counters.unhandled, counters.late, gauges.pending]).toEqual([1, 0, 1]);
    bench.expect((await bench.find({ late: true })).length).toBe(0);
  }),
  it("makes no event late by one whose lease returned before it began; one that a handler may have got does", async (bench) => {
    for (const [ran, late] of [
      [false, false],
      [true, true],
    ] as const) {
      const lane = { ...LANE, order: "position", name: `ran ${ran}` } as const;
      await bench.accept({ ...byPosition(bench, `b ${ran}`, 5), lane });
      const lease = await bench.claimOne();
      await bench.settle(bench.release(lease, 60_000, ran));
      await bench.accept({ ...byPosition(bench, `a ${ran}`, 4), lane });
      await bench.clock.advance(60_000);
      const [first] = await bench.claim();
      bench.expect([first?.ownId, first?.late]).toEqual([late ? `b ${ran}` : `a ${ran}`, false]);
      if (first !== undefined) await bench.settle(bench.complete(first));
      const second = await bench.claimOne();
      bench.expect([second.ownId, second.late]).toEqual([late ? `a ${ran}` : `b ${ran}`, late]);
      await bench.settle(bench.complete(second));
      bench.expect((await bench.find({ late: true })).map(({ ownId }) => ownId)).toEqual(late ? [`a ${ran}`] : []);
    }
  }),
  it("ends events that no handler takes in bounded numbers, and leases the next one behind them", async (bench) => {
    const noise = Array.from({ length: 300 }, (_, index) => byPosition(bench, `n${index}`, index + 1, NOISE));
    await bench.accept(...noise, byPosition(bench, "last", 1_000));
    const takes: Takes = (_lane, type) => type !== "noise";
    const first = await bench.step({ claim: { limit: 1, takes } });
    bench.expect([first.untaken.length, first.leases.length]).toEqual([256, 0]);
    const second = await bench.step({ claim: { limit: 1, takes } });
    bench.expect([second.untaken.length, second.leases[0]?.ownId]).toEqual([44, "last"]);
  }),
  it("passes no event after one of a higher position, while that one is handled, retried, or its lease has expired", async (bench) => {
    await bench.accept(byPosition(bench, "a", 5));
    const first = await bench.claimOne();
    await bench.accept(byPosition(bench, "b", 4), byPosition(bench, "c", 6));
    bench.expect(await bench.claim()).toEqual([]);
    await bench.settle(bench.retry(first, 1_000));
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(1_000);
    const again = await bench.claimOne();
    bench.expect([again.ownId, again.attempt]).toEqual(["a", 2]);
    await bench.clock.advance(31_000);
    const recovered = await bench.claimOne({ mode: "recover" });
    bench.expect([recovered.ownId, await bench.settle(bench.complete(again))]).toEqual(["a", ["lost"]]);
    await bench.settle(bench.complete(recovered));
    bench.expect(await handled(bench)).toEqual(["c", "(b)"]);
  }),
  it("leases an event with the batch that accepts it, under the sequence that it got", async (bench) => {
    const accepting = (ownId: string, position: number) =>
      bench.step({ accepts: [byPosition(bench, ownId, position)], claim: { limit: 1 } });
    const { leases } = await accepting("a", 5);
    bench.expect(leases).toMatchObject([{ ownId: "a", sequence: 5_000, late: false, acceptIndex: 0 }]);
    await bench.settle(bench.complete(bench.only(leases)));
    bench.expect((await accepting("b", 4)).leases).toMatchObject([{ ownId: "b", sequence: 4_000, late: true }]);
  }),
  it("knows an event again by its own id, whatever type and position a repeat has", async (bench) => {
    await bench.accept(byPosition(bench, "a", 5), byPosition(bench, "a", 6));
    const { accepted } = await bench.accept(byPosition(bench, "a", 5, { eventType: "an.invented.type" }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate", conflict: false }]);
    bench.expect(await found(bench)).toEqual([["a", 5_000]]);
    bench.expect((await bench.find())[0]).toMatchObject({ duplicates: 2, conflict: true, eventType: "message.sent" });
    bench.expect(await handled(bench)).toEqual(["a"]);
    bench.expect((await bench.accept(byPosition(bench, "a", 5))).accepted).toMatchObject([{ outcome: "duplicate" }]);
  }),
  it("finds the events of a lane by its name, and one event by its own id", async (bench) => {
    const sub2 = { ...byPosition(bench, "c", 5), lane: { ...LANE, order: "position", name: "sub_2" } } as const;
    await bench.accept(byPosition(bench, "a", 5), byPosition(bench, "b", 6), sub2, bench.of("b", 1), {
      ...byArrival(bench, "b"),
      lane: { ...LANE, tenant: "x", order: "arrival" },
    });
    const foundBy = async (query: Partial<EventQuery>) =>
      (await bench.find(query)).map(({ lane, ownId }) => [lane.order, lane.name, ownId]);
    bench.expect(await foundBy({ lane: "sub_2" })).toEqual([["position", "sub_2", "c"]]);
    bench.expect(await foundBy({ id: "c" })).toEqual([["position", "sub_2", "c"]]);
    bench.expect(await foundBy({ lane: "b" })).toEqual([["sequence", "b", null]]);
    bench.expect(await foundBy({ id: "b" })).toEqual([
      ["position", "sub_1", "b"],
      ["arrival", "sub_1", "b"],
    ]);
    bench.expect(await foundBy({ id: "b", tenant: "x" })).toEqual([["arrival", "sub_1", "b"]]);
    bench.expect((await foundBy({ lane: "sub_1", source: "billing" })).length).toBe(3);
    bench.expect(await foundBy({ id: "d" })).toEqual([]);
  }),
  it("keeps lanes of one name apart by their order, source and tenant", async (bench) => {
    const others = [
      { ...byPosition(bench, "c", 5), lane: { ...LANE, order: "position", source: "code" } },
      { ...byPosition(bench, "d", 5), lane: { ...LANE, order: "position", tenant: "a" } },
    ] as const;
    const { accepted } = await bench.accept(byPosition(bench, "a", 5), byArrival(bench, "b"), ...others);
    bench.expect(accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "accepted", "accepted", "accepted"]);
    bench.expect((await bench.find({ source: "billing" })).length).toBe(3);
    const lanes = async (query: object) => (await bench.store.findLanes({ ...query, limit: 9 })).items.length;
    bench.expect([await lanes({}), await lanes({ source: "billing", order: "arrival" })]).toEqual([4, 1]);
    bench.expect([await lanes({ tenant: "a" }), await lanes({ tenant: null })]).toEqual([1, 3]);
  }),
  it("passes events in the order of arrival, one at a time, and none as late", async (bench) => {
    await bench.accept(byArrival(bench, "a"), byArrival(bench, "b"));
    const first = await bench.claimOne();
    await bench.accept(byArrival(bench, "c"));
    bench.expect([first.ownId, await bench.claim()]).toEqual(["a", []]);
    await bench.settle(bench.complete(first));
    bench.expect(await handled(bench)).toEqual(["b", "c"]);
    await bench.accept(byArrival(bench, "d"), byArrival(bench, "b"));
    bench.expect(await handled(bench)).toEqual(["d"]);
  }),
  it("holds events back until any of them has waited so long, then passes the lowest first", async (bench) => {
    const wish = { gapWaitMs: 2_000 };
    await bench.accept(byPosition(bench, "a", 9, wish));
    await bench.clock.advance(1_500);
    await bench.accept(byPosition(bench, "b", 5, wish));
    bench.expect(await bench.claim()).toEqual([]);
    bench.expect(await bench.lane("sub_1", { ...LANE, order: "position" })).toMatchObject({ status: "gap" });
    await bench.clock.advance(499);
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(1);
    bench.expect(await handled(bench)).toEqual(["b", "a"]);
    await bench.accept(byPosition(bench, "c", 10, wish));
    bench.expect([await bench.claim(), await bench.store.nextDue()]).toEqual([[], 2_000]);
  }),
  it("passes a late event while others are held back", async (bench) => {
    await bench.handle(byPosition(bench, "a", 5));
    await bench.accept(byPosition(bench, "b", 9, { gapWaitMs: 2_000 }), byPosition(bench, "c", 4));
    bench.expect(await handled(bench)).toEqual(["(c)"]);
    await bench.clock.advance(2_000);
    bench.expect(await handled(bench)).toEqual(["b"]);
  }),
  it("replays, discards and releases in such a lane", async (bench) => {
    await bench.accept(byPosition(bench, "a", 5), byPosition(bench, "b", 6));
    await bench.settle(bench.dead(await bench.claimOne()));
    bench.expect(await handled(bench)).toEqual(["b"]);
    const [first] = await bench.find();
    bench.expect(await bench.act({ kind: "replay", event: first?.id ?? 0 })).toMatchObject({ ok: true });
    const replay = await bench.claimOne();
    bench.expect(replay).toMatchObject({ ownId: "a", forced: true, outOfOrder: true, late: false });
    await bench.settle(bench.complete(replay));
    await bench.accept(
      byPosition(bench, "c", 7, { gapWaitMs: 2_000 }),
      byPosition(bench, "d", 8, { gapWaitMs: 2_000 }),
    );
    const lane = await bench.lane("sub_1", { ...LANE, order: "position" });
    const waiting = (await bench.find()).find(({ ownId }) => ownId === "c");
    await bench.act({ kind: "discard", event: waiting?.id ?? 0 });
    bench.expect(await bench.lane("sub_1", { ...LANE, order: "position" })).toMatchObject({ cursor: 6_000 });
    bench.expect(await bench.act({ kind: "release_gap", lane: lane.id })).toMatchObject({ ok: true });
    bench.expect(await handled(bench)).toEqual(["d"]);
    bench.expect(lane.gaps).toEqual([]);
  }),
  it("erases the events of a lane that name somebody, and leaves the others as they are", async (bench) => {
    const about = (ownId: string, position: number, name: string) => ({
      ...byPosition(bench, ownId, position),
      raw: bytes(JSON.stringify({ name })),
    });
    await bench.accept(about("a", 1, "somebody"), about("b", 2, "another"), about("c", 3, "somebody"));
    bench.expect(await handled(bench)).toEqual(["a", "b", "c"]);
    await bench.accept(about("d", 4, "another"), about("e", 5, "somebody"), about("f", 6, "another"));
    await bench.settle(bench.retry(await bench.claimOne(), 60_000));
    bench.expect(await bench.act({ kind: "erase", subject: { id: "sub_1" } })).toEqual({ ok: true, count: 0 });
    const count = { ok: true, count: 3 };
    bench.expect(await bench.act({ kind: "erase", subject: { id: "somebody" } })).toEqual(count);
    bench.expect((await bench.find()).map(({ ownId, state, raw }) => [ownId, state, raw === null])).toEqual([
      ["a", "done", true],
      ["b", "done", false],
      ["c", "done", true],
      ["d", "pending", false],
      ["e", "discarded", true],
      ["f", "pending", false],
    ]);
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(60_000);
    bench.expect(await handled(bench)).toEqual(["d", "f"]);
    const { gauges, counters } = await bench.store.stats();
    bench.expect([gauges.pending, counters.discarded]).toEqual([0, 1]);
  }),
  it("keeps the cursor of a lane until its last event is pruned", async (bench) => {
    await bench.handle(byPosition(bench, "a", 5));
    await bench.clock.advance(20 * DAY);
    await bench.handle(byPosition(bench, "b", 6));
    await bench.clock.advance(11 * DAY);
    await bench.accept(bench.of("witness", 1));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 0 });
    await bench.accept(byPosition(bench, "c", 4));
    bench.expect((await handled(bench)).filter((name) => name !== "null")).toEqual(["(c)"]);
  }),
  // A case for each seed, so that each has its time on a slow server.
  ...[1, 2, 3].map((seed) =>
    it(`passes no event to a handler after one of a higher position, and each to its end, whatever happens when (seed ${seed})`, async (bench: Bench) => {
      const highest = new Map<number, number>();
      const passed = await churn(bench, seed);
      for (const { lane, sequence, late, outOfOrder } of passed) {
        const before = highest.get(lane) ?? 0;
        bench.expect([late, outOfOrder]).toEqual([sequence < before, sequence < before]);
        highest.set(lane, Math.max(before, sequence));
      }
      bench.expect(passed.some(({ late }) => late)).toBe(true);
      bench.expect(passed.some(({ attempt }) => attempt > 1)).toBe(true);
      const events = await bench.find({ limit: 5_000 });
      bench.expect(events.filter(({ state }) => state !== "done")).toEqual([]);
      bench.expect(new Set(passed.map(({ event }) => event)).size).toBe(events.length);
    }),
  ),
  it("goes on behind 1,000 events of one position", async (bench) => {
    const many = Array.from({ length: 1_003 }, (_, index) => byPosition(bench, `e${index}`, 5));
    await bench.accept(...many.slice(0, 500));
    await bench.accept(...many.slice(500), byPosition(bench, "next", 6));
    const order = (await bench.find({ limit: 2_000 })).toSorted((a, b) => a.sequence - b.sequence);
    bench.expect(order.map(({ ownId }) => ownId)).toEqual([...many.map(({ ownId }) => ownId), "next"]);
    bench.expect((await bench.claimOne()).ownId).toBe("e0");
  }),
];
