/** Runs one batch on the store and on the reference model, and compares them. */
import type { LaneOrder } from "../../src/inbox/record.ts";
import type { Acceptance, Lease, Settle, Takes, TurnResult, Untaken } from "../../src/inbox/store.ts";
import type { Bench } from "./store-bench.ts";
import * as model from "./store-model.ts";

const MAX_ATTEMPTS = 3;

/** The lanes of the commands; few, so that commands meet on the same lane. Of two tenants, and two kinds, under one id. */
export const LANES: readonly (readonly [order: LaneOrder | null, name: string, tenant: string])[] = [
  ["sequence", "a", "client"],
  ["sequence", "b", "client"],
  ["sequence", "a", "other"],
  [null, "a", "client"],
  [null, "a", "other"],
];

export interface AcceptCommand {
  readonly lane: number;
  readonly sequence: number;
  readonly type: string;
  readonly note: string;
  readonly filtered: boolean;
  readonly gapWaitMs: number;
  readonly occurredAgoMs: number;
}

export interface SettleCommand {
  /** Which of the latest leases, counted back from the newest. */
  readonly pick: number;
  readonly kind: Settle<unknown>["kind"];
  readonly delayMs: number;
  readonly outcome: "handled" | "unhandled";
  readonly onDead: "continue" | "block";
}

export interface TurnCommand {
  readonly settles: readonly SettleCommand[];
  readonly accepts: readonly AcceptCommand[];
  /** The types that the process has handlers for, and whether it has one for late events. */
  readonly types: readonly string[];
  readonly takesLate: boolean;
  readonly limit: number;
  readonly mode: "ordinary" | "recover";
  readonly onDead: "continue" | "block";
  /** Claim this lane alone, if it exists. */
  readonly only: number | null;
}

interface Handed {
  readonly lease: Lease;
  readonly opening: number;
}

/** The model's side of a run. */
export class Mirror {
  readonly lanes = new Map<number, model.ModelLane>();
  readonly handed: Handed[] = [];
  /** Lanes that the current command touched. */
  readonly touched = new Set<model.ModelLane>();
  /** The highest sequence leased on time, per lane. */
  readonly reached = new Map<number, number>();
  /** Events that the batch ended without a handler, and that the model has not ended yet. */
  readonly untaken = new Map<number, Untaken>();
  takes: Takes = () => true;
  opening = 0;
  commands = 0;

  lane(index: number): model.ModelLane {
    const known = this.lanes.get(index);
    if (known !== undefined) return known;
    const lane = model.newModelLane(LANES[index]?.[0] === "sequence");
    this.lanes.set(index, lane);
    return lane;
  }

  byId(id: number): model.ModelLane | undefined {
    return [...this.lanes.values()].find((lane) => lane.id === id);
  }

  /** One of the latest leases, counted back from the newest. */
  pick(back: number): Handed | undefined {
    return this.handed.at(-1 - (back % Math.min(8, Math.max(1, this.handed.length))));
  }

  /** The lane, if this lease is still its current one. */
  heldBy(handed: Handed): model.ModelLane | undefined {
    const lane = this.byId(handed.lease.lane);
    const held = lane?.leased?.id === handed.lease.event && lane.token === handed.lease.token;
    return held && lane.holder === handed.opening && this.opening === handed.opening ? lane : undefined;
  }
}

/** Expects both to be equal. Compares as text first, which is much faster than `expect`. */
export function agree(bench: Bench, actual: unknown, expected: unknown): void {
  if (JSON.stringify(actual) !== JSON.stringify(expected)) bench.expect(actual).toEqual(expected);
}

/** Runs one batch on both and compares all answers. */
export async function takeTurn(mirror: Mirror, bench: Bench, command: TurnCommand): Promise<void> {
  const now = bench.clock.now();
  mirror.takes = (_lane, type, late) => (late ? command.takesLate : command.types.includes(type));
  const picked = command.settles.flatMap((wish) => {
    const handed = mirror.pick(wish.pick);
    return handed === undefined ? [] : [{ handed, settle: toSettle(bench, wish, handed.lease) }];
  });
  const accepts = command.accepts.map((wish) => toEvent(bench, wish));
  const only = command.only === null ? undefined : mirror.lanes.get(command.only)?.id || undefined;
  const { limit, mode, onDead } = command;
  const claim = {
    limit,
    mode,
    onDead,
    takes: mirror.takes,
    maxAttempts: MAX_ATTEMPTS,
    leaseMs: 30_000,
    ...(only !== undefined && { lane: only }),
  };
  const result = await bench.step({ settles: picked.map((one) => one.settle), accepts, claim });
  for (const one of result.untaken) {
    agree(bench, [mirror.takes(one.key, one.eventType, one.late), mirror.untaken.has(one.event)], [false, false]);
    mirror.untaken.set(one.event, one);
  }

  const settled = picked.map((one) => settleModel(mirror, one, now));
  agree(
    bench,
    result.settled.map((one) => one.status),
    settled,
  );
  if (only === undefined) passOverDue(mirror, bench, (lane) => isClaimable(bench, command, lane));
  // An accept can also make a lane due, for a late event in backoff or one that waited: then the leased event is not an accepted one.
  const due = new Set(
    [...mirror.lanes.values()].filter((lane) => model.isDueInModel(lane, now)).map((lane) => lane.id),
  );
  const scanned = result.leases.filter((lease) => lease.acceptIndex === null && due.has(lease.lane));
  const atAccept = result.leases.filter((lease) => !scanned.includes(lease));
  if (only === undefined) await checkScan(mirror, bench, command, { result, leases: scanned });
  const free = only === undefined ? limit - scanned.length : 0;
  const leased = acceptAll(mirror, bench, command, { result, atAccept, free });
  if (only === undefined) agree(bench, result.leases.length - scanned.length, leased);
  else await checkScan(mirror, bench, command, { result, leases: result.leases, only });
  agree(bench, [...mirror.untaken.keys()], []);
  // With a limit of 0, the store need not look for expired leases.
  if (limit > 0) agree(bench, result.recoveryDue, recoveryDue(mirror, now));
}

function toSettle(bench: Bench, wish: SettleCommand, lease: Lease): Settle<unknown> {
  switch (wish.kind) {
    case "complete":
      return bench.complete(lease, wish.outcome);
    case "retry":
      return bench.retry(lease, wish.delayMs);
    case "dead":
      return bench.dead(lease, wish.onDead);
    case "release":
      return bench.release(lease, wish.delayMs);
    default:
      return wish.kind satisfies never;
  }
}

function toEvent(bench: Bench, wish: AcceptCommand) {
  const [order, name, tenant] = LANES[wish.lane] ?? ["sequence", "a", "client"];
  const sequence = order === "sequence" ? wish.sequence : 0;
  const { type: eventType, note, gapWaitMs } = wish;
  const filtered = wish.filtered || undefined;
  const occurredAt = bench.clock.now() - wish.occurredAgoMs;
  return bench.of(name, sequence, {
    eventType,
    note,
    gapWaitMs,
    occurredAt,
    filtered,
    lane: { order, tenant },
  });
}

function settleModel(
  mirror: Mirror,
  { handed, settle }: { handed: Handed; settle: Settle<unknown> },
  now: number,
): string {
  const lane = mirror.heldBy(handed);
  if (lane?.leased === undefined || lane.leased === null) return "lost";
  model.settleInModel(lane, lane.leased, settle, now);
  mirror.touched.add(lane);
  return "settled";
}

function recoveryDue(mirror: Mirror, now: number): boolean {
  return [...mirror.lanes.values()].some((lane) => lane.status === "leased" && model.isDueInModel(lane, now));
}

interface Scan {
  readonly result: TurnResult;
  readonly leases: readonly Lease[];
  readonly only?: number;
}

/** Checks that every lane a scan retired or leased was due, and that no due lane was left while slots were free. */
async function checkScan(mirror: Mirror, bench: Bench, command: TurnCommand, scan: Scan): Promise<void> {
  const now = bench.clock.now();
  const recovering = command.mode === "recover";
  const claimable = (lane: model.ModelLane) => isClaimable(bench, command, lane) && (scan.only ?? lane.id) === lane.id;
  passOverDue(mirror, bench, claimable);
  for (const record of scan.result.retired) {
    const lane = mirror.byId(record.laneId);
    if (lane === undefined || !claimable(lane))
      throw new Error(`Event ${record.id} was retired although its lane was not due.`);
    const event = lane.leased ?? model.turnOf(lane, now).event;
    bench
      .expect([event?.id, event?.attempts, record.errorCode])
      .toEqual([record.id, MAX_ATTEMPTS, "attempts_exhausted"]);
    if (event !== undefined) model.die(lane, event, command.onDead, now);
    mirror.touched.add(lane);
    while (claimable(lane) && passOverNext(mirror, bench, lane));
  }
  for (const lease of scan.leases) {
    const lane = mirror.byId(lease.lane);
    if (lane === undefined || !claimable(lane))
      throw new Error(`Lane ${lease.lane} was leased although it was not due.`);
    checkLease(mirror, bench, lane, lease);
  }
  const limit = recovering ? Math.min(1, command.limit) : command.limit;
  agree(bench, scan.leases.length <= limit, true);
  const cameToAll = scan.leases.length < limit;
  for (const lane of [...mirror.lanes.values()].filter(claimable)) {
    // A backoff can end behind a gap, and then the lane waits for it. Only the store knows whether a full scan reached this lane.
    const cameHere = cameToAll || (await bench.store.lane(lane.id))?.status === "gap";
    if (cameHere && lane.leased === null && model.turnOf(lane, now).event === undefined) model.rearmInModel(lane, now);
  }
  if (cameToAll) agree(bench, [...mirror.lanes.values()].filter(claimable).length, 0);
}

function isClaimable(bench: Bench, { mode }: TurnCommand, lane: model.ModelLane): boolean {
  return model.isDueInModel(lane, bench.clock.now()) && (lane.status === "leased") === (mode === "recover");
}

/** Ends what the store ended without a handler at the head of each lane that `claimable` takes. */
function passOverDue(mirror: Mirror, bench: Bench, claimable: (lane: model.ModelLane) => boolean): void {
  for (const lane of mirror.lanes.values()) while (claimable(lane) && passOverNext(mirror, bench, lane));
}

/** Ends the lane's next event if the store ended it without a handler. @returns whether it did */
function passOverNext(mirror: Mirror, bench: Bench, lane: model.ModelLane): boolean {
  const now = bench.clock.now();
  const turn = lane.leased === null ? model.turnOf(lane, now) : { event: lane.leased };
  const ended = mirror.untaken.get(turn.event?.id ?? -1);
  if (turn.event === undefined || ended === undefined) return false;
  mirror.untaken.delete(ended.event);
  agree(bench, [ended.lane, ended.late], [lane.id, turn.event.late]);
  model.passOver(lane, turn.event, turn.gaveUp === true, now);
  agree(bench, ended.state, turn.event.state);
  mirror.touched.add(lane);
  return true;
}

/** Checks that the leased event is next in its lane, and that every field of the lease is right. */
function checkLease(mirror: Mirror, bench: Bench, lane: model.ModelLane, lease: Lease): void {
  agree(bench, mirror.takes(lease.key, lease.eventType, lease.late), true);
  const now = bench.clock.now();
  const turn = lane.leased === null ? model.turnOf(lane, now) : { event: lane.leased };
  const { event } = turn;
  if (event === undefined) throw new Error(`Lane ${lease.lane} was leased although it waits.`);
  const cursorBefore = lane.cursor;
  model.lease(lane, event, now + 30_000, turn.gaveUp === true);
  const { id, sequence, attempts: attempt, late, forced } = event;
  const gap = lane.gaps.find((row) => row.to === sequence - 1);
  const missing = gap === undefined ? null : { from: gap.from, to: gap.to };
  const outOfOrder = (late || forced) && cursorBefore !== null && sequence < cursorBefore;
  const facts = [lease.event, lease.sequence, lease.attempt, lease.late, lease.forced, lease.outOfOrder, lease.missing];
  agree(bench, facts, [id, sequence, attempt, late, forced, outOfOrder, missing]);
  agree(bench, lease.cursorBefore, cursorBefore);
  agree(bench, [lease.token !== lane.token, attempt <= MAX_ATTEMPTS], [true, true]);
  lane.token = lease.token;
  lane.holder = mirror.opening;
  mirror.touched.add(lane);
  mirror.handed.push({ lease, opening: mirror.opening });
  if (late || forced) return;
  // I4, checked without the model: the sequences of a lane's events on time never go down.
  agree(bench, sequence >= (mirror.reached.get(lane.id) ?? sequence), true);
  mirror.reached.set(lane.id, sequence);
}

/** Accepts the events one by one, as the store must have. @returns how many of them were leased at once */
function acceptAll(
  mirror: Mirror,
  bench: Bench,
  command: TurnCommand,
  of: { result: TurnResult; atAccept: readonly Lease[]; free: number },
): number {
  const now = bench.clock.now();
  const mayLease = command.mode === "ordinary" && !recoveryDue(mirror, now);
  let leased = 0;
  for (const [index, wish] of command.accepts.entries()) {
    const acceptance = of.result.accepted[index];
    const lane = mirror.lane(wish.lane);
    mirror.touched.add(lane);
    const sequence = lane.ordered ? wish.sequence : 0;
    const isSame = (event: model.ModelEvent) => event.sequence === sequence && event.type === wish.type;
    const first = lane.ordered ? lane.events.find(isSame) : lane.events[0];
    if (first !== undefined) {
      const conflict = !first.filtered && first.note !== wish.note;
      first.duplicates++;
      first.conflict ||= conflict;
      checkDuplicate(bench, acceptance, { event: first.id, state: first.state, conflict });
      continue;
    }
    if (acceptance === undefined || acceptance.outcome === "failed")
      throw new Error(`Event ${index} was not accepted.`);
    lane.id = acceptance.lane;
    const late = model.acceptInModel(lane, newEvent(wish, acceptance.event, now), now);
    agree(bench, acceptance.outcome, wish.filtered ? "filtered" : late ? "late" : "accepted");
    if (!mayLease || leased >= of.free || lane.status === "leased" || !model.isDueInModel(lane, now)) continue;
    if (passOverNext(mirror, bench, lane)) continue;
    const lease = of.atAccept.find((one) => one.lane === lane.id && (one.acceptIndex ?? index) === index);
    if (lease === undefined) throw new Error(`Event ${index} was due and a slot free, but it was not leased.`);
    checkLease(mirror, bench, lane, lease);
    leased++;
  }
  return leased;
}

function checkDuplicate(bench: Bench, answer: Acceptance | undefined, expected: object): void {
  if (answer?.outcome !== "duplicate") throw new Error(`A duplicate was answered ${answer?.outcome}.`);
  const { event, state, conflict } = answer;
  agree(bench, { event, state, conflict }, expected);
}

function newEvent(wish: AcceptCommand, id: number, now: number): model.ModelEvent {
  const { sequence, type, note, filtered, gapWaitMs, lane } = wish;
  const at = { occurredAt: now - wish.occurredAgoMs, acceptedAt: now };
  const fresh = { outcome: null, late: false, forced: false, attempts: 0, duplicates: 0, conflict: false };
  const ordered = LANES[lane]?.[0] === "sequence";
  return { id, sequence: ordered ? sequence : 0, type, note, filtered, gapWaitMs, ...at, state: "pending", ...fresh };
}
