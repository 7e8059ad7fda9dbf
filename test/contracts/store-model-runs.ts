/** Runs random commands on a store and on the reference model. The only file that loads fast-check, and only when it runs. */
import { copyOpen } from "../../src/inbox/copy.ts";
import type { EventRecord } from "../../src/inbox/record.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { Bench, type ContractExpect, type StoreUnderTest } from "./store-bench.ts";
import * as model from "./store-model.ts";
import {
  type AcceptCommand,
  agree,
  LANES,
  Mirror,
  type SettleCommand,
  type TurnCommand,
  takeTurn,
} from "./store-model-turns.ts";

const TYPES = ["message.sent", "message.failed"];

/** The size of the model test. A failure prints its seed and its commands. */
export interface ModelRuns {
  /** Runs, each on a store of its own. Default 300. */
  readonly runs?: number;
  /** Commands in a run, on average. Default 120. */
  readonly commands?: number;
  /** The seed of a failure, to repeat it. Default: random. */
  readonly seed?: number;
}

interface ModelSubject<Tx> {
  readonly makeStore: () => Promise<StoreUnderTest<Tx>>;
  /** The `expect` of Vitest or Jest. */
  readonly expect: ContractExpect;
}

interface LaneEvents {
  readonly events: readonly Pick<EventRecord, Extract<keyof model.ModelEvent, keyof EventRecord>>[];
}

/** A command that fast-check combines, shrinks and prints. */
interface Command {
  check(): boolean;
  run(mirror: Mirror, bench: Bench): Promise<void>;
  toString(): string;
}

const MINUTE = 60_000;
/** In every fourth run the inbox is copied, and the copy is drained instead. */
const MOVE_EVERY = 4;
const WAITS_MS = [0, 10_000, 90_000];

/** Runs the commands. Rejects with the shortest sequence found on which store and model disagree. */
export async function checkAgainstModel<Tx>(subject: ModelSubject<Tx>, options: ModelRuns): Promise<void> {
  const { runs = 300, commands = 120, seed } = options;
  const fc = await loadFastCheck();
  let [done, rowsRun] = [0, 0];
  const rows = fc.commands(await commandArbitraries(), { maxCommands: 2 * commands, size: "max" });
  const property = fc.asyncProperty(rows, async (row) => {
    const place = await subject.makeStore();
    const bench = new Bench(place, subject.expect);
    const mirror = new Mirror();
    let moved: StoreUnderTest<Tx> | undefined;
    try {
      // As a process that is gone, so that another opening takes its leases over at once.
      await bench.open(place.store, {}, "gone");
      await fc.asyncModelRun(() => ({ model: mirror, real: bench }), row);
      if (++rowsRun % MOVE_EVERY === 0) moved = await move(mirror, bench, await subject.makeStore());
      await drain(mirror, bench);
    } finally {
      done += mirror.commands;
      await bench.dispose();
      await moved?.dispose();
    }
  });
  await fc.assert(property, { numRuns: runs, ...(seed !== undefined && { seed }) });
  // A model test also passes without commands, so check that it ran enough. Runs differ in length, so a few may be short.
  subject.expect(done >= ((runs - 10) * commands) / 2).toBe(true);
}

async function loadFastCheck() {
  return import("fast-check");
}

async function commandArbitraries() {
  const fc = await loadFastCheck();
  const accept = fc.record<AcceptCommand>({
    lane: fc.nat({ max: LANES.length - 1 }),
    sequence: fc.integer({ min: 0, max: 7 }),
    type: fc.constantFrom("message.sent", ...TYPES),
    note: fc.constantFrom("first", "first", "first", "other"),
    filtered: fc.constantFrom(false, false, false, false, true),
    gapWaitMs: fc.constantFrom(...WAITS_MS),
    occurredAgoMs: fc.constantFrom(0, 0, 84 * MINUTE, 90 * MINUTE),
  });
  const settle = fc.record<SettleCommand>({
    pick: fc.nat({ max: 7 }),
    kind: fc.constantFrom("complete", "complete", "retry", "dead", "release"),
    delayMs: fc.constantFrom(...WAITS_MS),
    outcome: fc.constantFrom("handled", "unhandled"),
    onDead: fc.constantFrom("continue", "block"),
  });
  const turn = fc.record<TurnCommand>({
    settles: fc.array(settle, { maxLength: 3 }),
    accepts: fc.array(accept, { maxLength: 4 }),
    types: fc.constantFrom(TYPES, TYPES, TYPES, ["message.sent"], []),
    takesLate: fc.boolean(),
    limit: fc.constantFrom(0, 1, 2, 50),
    mode: fc.constantFrom("ordinary", "ordinary", "recover"),
    onDead: fc.constantFrom("continue", "block"),
    only: fc.option(fc.nat({ max: LANES.length - 1 }), { freq: 8, nil: null }),
  });
  const act = fc.constantFrom("replay" as const, "discard" as const, "unblock" as const, "release_gap" as const);
  const extend = fc.record({ pick: fc.nat({ max: 7 }), leaseMs: fc.constantFrom(1, 30_000) });
  const turns = turn.map((wish) => command("turn", wish, (mirror, bench) => takeTurn(mirror, bench, wish)));
  const advance = fc
    .constantFrom(1, 10_000, 30_000, 90_000, 86 * MINUTE)
    .map((ms) => command("advance", ms, (_, bench) => pass(bench, ms)));
  const acts = fc
    .record({ kind: act, pick: fc.nat() })
    .map((wish) => command("act", wish, (mirror, bench) => operate(mirror, bench, wish)));
  const extensions = extend.map((wish) => command("extend", wish, (mirror, bench) => extendLease(mirror, bench, wish)));
  const reopening = fc.constant(command("reopen", null, reopen));
  // Weighted by repetition. Reopening a file takes the longest.
  const often = Array.from({ length: 4 }, () => [turns, turns, turns, advance]).flat();
  return [...often, acts, acts, acts, extensions, reopening];
}

function command(name: string, wish: unknown, run: (mirror: Mirror, bench: Bench) => Promise<void>): Command {
  return {
    check: () => true,
    async run(mirror, bench) {
      mirror.commands++;
      await run(mirror, bench);
      await compareLanes(mirror.touched, bench);
      mirror.touched.clear();
    },
    toString: () => `${name} ${JSON.stringify(wish)}`,
  };
}

async function pass(bench: Bench, ms: number): Promise<void> {
  bench.clock.set(bench.clock.now() + ms);
}

async function operate(
  mirror: Mirror,
  bench: Bench,
  wish: { kind: "replay" | "discard" | "unblock" | "release_gap"; pick: number },
) {
  const all = [...mirror.lanes.values()].flatMap((lane) => lane.events.map((event) => ({ lane, event })));
  const chosen = all[wish.pick % Math.max(1, all.length)];
  if (chosen === undefined) return;
  const { lane, event } = chosen;
  mirror.touched.add(lane);
  const { kind } = wish;
  const onEvent = kind === "replay" || kind === "discard";
  const result = await bench.act(onEvent ? { kind, event: event.id } : { kind, lane: lane.id });
  agree(bench, result.ok ? null : result.reason, model.actInModel(lane, event, kind, bench.clock.now()));
}

async function extendLease(mirror: Mirror, bench: Bench, wish: { pick: number; leaseMs: number }): Promise<void> {
  const handed = mirror.pick(wish.pick);
  if (handed === undefined) return;
  const lane = mirror.heldBy(handed);
  agree(bench, await bench.store.extend([handed.lease], wish.leaseMs), [lane !== undefined]);
  if (lane === undefined) return;
  lane.readyAt = bench.clock.now() + wish.leaseMs;
  mirror.touched.add(lane);
}

/** Simulates a crash: the process ends without closing the store, and another opens the same place. */
async function reopen(mirror: Mirror, bench: Bench): Promise<void> {
  if (!bench.store.capabilities.durable) return;
  bench.store = await bench.another("gone");
  mirror.opening++;
  for (const lane of mirror.lanes.values()) {
    if (lane.status === "leased") lane.readyAt = bench.clock.now();
    mirror.touched.add(lane);
  }
}

/** Continues with a copy, which is the same except that leases have ended and their events are ready. */
async function move<Tx>(mirror: Mirror, bench: Bench, to: StoreUnderTest<Tx>): Promise<StoreUnderTest<Tx>> {
  await bench.open(to.store);
  await copyOpen({ from: bench.store, to: to.store }, bench.clock);
  bench.store = to.store as InboxStore<unknown>;
  for (const lane of mirror.lanes.values()) {
    if (lane.status !== "leased") continue;
    lane.status = "ready";
    lane.readyAt = bench.clock.now();
    lane.leased = null;
  }
  await compareLanes(mirror.lanes.values(), bench);
  return to;
}

async function compareLanes(lanes: Iterable<model.ModelLane>, bench: Bench): Promise<void> {
  const now = bench.clock.now();
  for (const lane of lanes) {
    const record = lane.id === 0 ? null : await bench.store.lane(lane.id);
    if (record === null) continue;
    const gaps = record.gaps.map((gap) => ({ from: gap.from, to: gap.to, filled: gap.filledAt !== null }));
    const events = lane.events.toSorted((a, b) => a.sequence - b.sequence || a.id - b.id);
    agree(bench, laneView({ ...record, gaps }, now), laneView({ ...lane, events }, now));
  }
}

/** Stores may differ in since when a ready lane or an expired lease is due, but not in whether it is. */
function laneView(
  lane: Pick<model.ModelLane, "status" | "cursor" | "readyAt" | "gapSince" | "gaps"> & LaneEvents,
  now: number,
) {
  const { status, cursor, readyAt, gapSince, gaps } = lane;
  const due = (status === "ready" || status === "leased") && readyAt !== null && readyAt <= now;
  return {
    ...{ status, cursor, readyAt: due ? "due" : readyAt },
    ...{ gapSince: status === "gap" ? gapSince : null, gaps },
    events: lane.events.map(({ id, state, outcome, late, forced, attempts, duplicates, conflict }) => ({
      ...{ id, state, outcome, late, forced, attempts, duplicates, conflict },
    })),
  };
}

/** Unblocks lanes and advances the clock until nothing is due: no event may be stranded (I5, I10) or invented (I1). */
async function drain(mirror: Mirror, bench: Bench): Promise<void> {
  const turn = { settles: [], accepts: [], types: TYPES, takesLate: false, onDead: "continue", only: null } as const;
  for (const lane of mirror.lanes.values()) {
    if (lane.status === "blocked") await bench.act({ kind: "unblock", lane: lane.id });
    if (lane.status === "blocked") model.rearmInModel(lane, bench.clock.now());
  }
  while ((await bench.store.nextDue()) !== null) {
    await pass(bench, 86 * MINUTE);
    await takeTurn(mirror, bench, { ...turn, limit: 1, mode: "recover" });
    await takeTurn(mirror, bench, { ...turn, limit: 50, mode: "ordinary" });
    const settles = mirror.handed.slice(-50).map((handed) => bench.complete(handed.lease));
    const { settled } = await bench.step({ settles });
    for (const [index, handed] of mirror.handed.slice(-50).entries()) {
      const lane = settled[index]?.status === "settled" ? mirror.heldBy(handed) : undefined;
      const settle = settles[index];
      if (lane?.leased && settle !== undefined) model.settleInModel(lane, lane.leased, settle, bench.clock.now());
    }
  }
  await compareLanes(mirror.lanes.values(), bench);
  const all = [...mirror.lanes.values()].flatMap((lane) => lane.events);
  const stored = await bench.find();
  bench.expect(stored.map((event) => event.id)).toEqual(all.map((event) => event.id).toSorted((a, b) => a - b));
  bench.expect(stored.filter((event) => event.state === "pending").length).toBe(0);
  const { gauges, counters } = await bench.store.stats();
  const duplicates = all.reduce((sum, event) => sum + event.duplicates, 0);
  bench
    .expect(gauges)
    .toMatchObject({ pending: 0, blockedLanes: 0, dead: all.filter((e) => e.state === "dead").length });
  const gapsSkipped = [...mirror.lanes.values()].reduce((sum, lane) => sum + lane.gaps.length, 0);
  const filtered = all.filter((event) => event.filtered).length;
  bench.expect(counters).toMatchObject({ accepted: all.length, filtered, duplicates, gapsSkipped });
}
