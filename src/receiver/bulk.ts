/**
 * Work on many events: replays, discards or counts all that match, one after the other, in lane and sequence order, at a set rate. It can
 * be a dry run. It can be stopped between two events and called again for the rest.
 */
import { setImmediate } from "node:timers/promises";
import { allPages } from "../inbox/copy.ts";
import { isHeld } from "../inbox/lane-port.ts";
import { isPrunedBehind } from "../inbox/lane-state.ts";
import type { EventId, EventState, EventSummary, LaneId, LaneRecord } from "../inbox/record.ts";
import type { Act, ActResult, EventQuery, Page } from "../inbox/store.ts";
import { type Clock, sleep } from "../internal/clock.ts";
import {
  booleanOption,
  functionOption,
  invalidOption,
  isAbortSignal,
  numberOption,
  refuseUnknownOptions,
} from "../internal/options.ts";
import { checkEventFilter, type EventFilter } from "./queries.ts";

export interface BulkOptions<Counts> {
  /** The most acts a second, measured over more than 10 ms; 0.01 to 100,000. Default: as fast as the store takes them. */
  readonly ratePerSecond?: number;
  /** Only counts what would be done. Default false. */
  readonly dryRun?: boolean;
  /** Leaves out events with a higher id, which came later: `find({ limit: 1 })` returns the newest. Default: takes all. */
  readonly upTo?: EventId;
  /** Called after each event. If it throws, the work ends, and can be called again for the rest. */
  readonly onProgress?: (progress: BulkProgress<Counts>) => void;
  /** Ends the work between two events, with the signal's reason. It can be called again for the rest. */
  readonly signal?: AbortSignal;
  /** Who acts, for the audit: only a name or an id. Default `"application"`. */
  readonly by?: string;
}

/** How far a bulk act has come. */
export interface BulkProgress<Counts> {
  /** Events that matched at the start. */
  readonly total: number;
  readonly done: number;
  readonly counts: Counts;
  /** The last event, and the count that includes it. */
  readonly id: EventId;
  readonly end: string;
}

/** Why an event was left unchanged: the result of the single act. */
export type BulkRefusal = Extract<ActResult, { ok: false }>["reason"];

export const REFUSALS = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 } as const;
const BULK_OPTIONS = [
  "ratePerSecond",
  "dryRun",
  "upTo",
  "onProgress",
  "signal",
  "by",
] as const satisfies readonly (keyof BulkOptions<never>)[];

const ANY_ID = { min: 0, max: Number.MAX_SAFE_INTEGER, unit: "(the id of an event)" };

/** Checked options. */
interface Plan<Counts> {
  readonly intervalMs: number;
  readonly dryRun: boolean;
  readonly upTo: EventId;
  readonly onProgress: ((progress: BulkProgress<Counts>) => void) | undefined;
  readonly signal: AbortSignal | undefined;
  readonly who: { readonly by?: string };
}

/** @throws SetupError for an option out of bounds */
export function planOf<Counts>(options: BulkOptions<Counts>): Plan<Counts> {
  const { ratePerSecond, dryRun, upTo, onProgress, signal, by } = options;
  if (signal !== undefined && !isAbortSignal(signal)) throw invalidOption("signal", "must be an AbortSignal", signal);
  const bounds = { min: 0.01, max: 100_000, unit: "a second", integer: false };
  return {
    intervalMs: 1_000 / numberOption("ratePerSecond", ratePerSecond, Number.POSITIVE_INFINITY, bounds),
    dryRun: booleanOption("dryRun", dryRun, false),
    upTo: numberOption("upTo", upTo, Number.MAX_SAFE_INTEGER, ANY_ID),
    onProgress: functionOption("onProgress", onProgress),
    who: by === undefined ? {} : { by },
    signal,
  };
}

/**
 * Calls `handle` for each target. It returns the count that includes the target.
 *
 * @throws the reason of the signal when it aborts
 */
export async function onAll<Target extends { readonly id: number }, End extends string>(
  clock: Clock,
  targets: readonly Target[],
  { intervalMs, signal, onProgress }: Plan<Record<End, number>>,
  {
    counts,
    handle,
  }: { readonly counts: Record<End, number>; readonly handle: (target: Target, pace: BulkPace) => Promise<End> },
): Promise<Record<End, number>> {
  const pace = createPace(clock, intervalMs, signal);
  let done = 0;
  signal?.throwIfAborted();
  for (const target of targets) {
    const end = await handle(target, pace);
    counts[end] += 1;
    done += 1;
    onProgress?.({ total: targets.length, done, counts: { ...counts }, id: target.id, end });
    // An embedded store answers without yielding to the event loop.
    await setImmediate();
    signal?.throwIfAborted();
  }
  return counts;
}

/** No timer is shorter. */
const TICK_MS = 1;
/** Timers fire late: acts without a wait make up a lag of up to this. A longer lag, from a slow store, is not made up. */
const LONGEST_LAG_MS = 10;

export interface BulkPace {
  /** Resolves when the next act may be done. */
  turn(): Promise<void>;
  /** Called with each act. */
  acts(): void;
}

function createPace(clock: Clock, intervalMs: number, signal: AbortSignal | undefined): BulkPace {
  let nextAt = clock.monotonic();
  return {
    async turn() {
      const waitMs = nextAt - clock.monotonic();
      if (waitMs >= TICK_MS) await sleep(clock, waitMs, signal);
      signal?.throwIfAborted();
    },
    acts() {
      nextAt = Math.max(nextAt, clock.monotonic() - LONGEST_LAG_MS) + intervalMs;
    },
  };
}

const EVENTS_PER_PAGE = 100;

/** Which events; dead letters unless `states` says otherwise. All filters must match. */
export type BulkQuery = EventFilter;

interface Finder {
  find(query: Partial<EventQuery>): Promise<Page<EventSummary>>;
}

/** The newest event, for `upTo`; 0 while there is none. */
export async function newestEvent(inbox: Finder): Promise<EventId> {
  const [newest] = (await inbox.find({ limit: 1 })).items;
  return newest?.id ?? 0;
}

/**
 * The matching events in the order of their acceptance.
 *
 * @param allowed - the states that the work applies to
 * @throws SetupError for an unknown filter, or a state that is not allowed
 */
async function* matching(
  inbox: Finder,
  query: BulkQuery,
  allowed: readonly EventState[],
  upTo: EventId = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<EventSummary> {
  checkEventFilter(query);
  const { states = ["dead"], ...filters } = query;
  if (!Array.isArray(states) || !states.every((state) => allowed.includes(state)))
    throw invalidOption("states", `must be a list of ${allowed.map((state) => `"${state}"`).join(", ")}`, states);
  const asked = { ...filters, states, order: "oldest", limit: EVENTS_PER_PAGE } as const;
  for await (const event of allPages((page) => inbox.find({ ...asked, ...page }))) {
    if (event.id > upTo) return;
    yield event;
  }
}

export interface ReplayAllOptions extends BulkOptions<ReplayCounts> {
  /** Leaves out an event of a message of which one with a higher sequence was handled, or settled and pruned: the replay would report old news. Default false. */
  readonly skipSuperseded?: boolean;
}

export type DiscardAllOptions = BulkOptions<DiscardCounts>;

/** The number of events by outcome. */
export interface ReplayCounts extends Readonly<Record<BulkRefusal, number>> {
  readonly replayed: number;
  readonly superseded: number;
}

export interface DiscardCounts extends Readonly<Record<BulkRefusal, number>> {
  readonly discarded: number;
}

/** The methods of an inbox that `replayAll` and `discardAll` use. */
export interface Actor extends Finder {
  readonly clock: Clock;
  lane(id: LaneId): Promise<LaneRecord | null>;
  act(act: Act, options: { readonly by?: string }): Promise<ActResult>;
}

/** The facts that are kept of each event that matched. */
type Target = Pick<EventSummary, "id" | "laneId" | "sequence" | "state" | "finishedAt" | "attempts" | "hasBody">;

/** The states that the work applies to. */
export const REPLAYABLE: readonly EventState[] = ["done", "dead", "late", "discarded"];
export const DISCARDABLE: readonly EventState[] = ["pending", "dead"];

/** @throws SetupError for an unknown filter or option, or one out of bounds; the signal's reason when it aborts */
export async function replayAll(inbox: Actor, query: BulkQuery, options: ReplayAllOptions): Promise<ReplayCounts> {
  refuseUnknownOptions("inbox.replayAll()", options, [...BULK_OPTIONS, "skipSuperseded"]);
  const plan = planOf(options);
  const skips = booleanOption("skipSuperseded", options.skipSuperseded, false);
  const counts = { replayed: 0, superseded: 0, ...REFUSALS };
  return onAll(inbox.clock, await targetsOf(inbox, query, REPLAYABLE, plan), plan, {
    counts,
    async handle(target, pace) {
      // Checked after the wait: a later event may be handled during it.
      await pace.turn();
      if (skips && (await isSuperseded(inbox, target))) return "superseded";
      if (plan.dryRun) return target.hasBody ? "replayed" : "body_pruned";
      pace.acts();
      const result = await inbox.act(actOn("replay", target), plan.who);
      return result.ok ? "replayed" : result.reason;
    },
  });
}

/** @throws as `replayAll` */
export async function discardAll(inbox: Actor, query: BulkQuery, options: DiscardAllOptions): Promise<DiscardCounts> {
  refuseUnknownOptions("inbox.discardAll()", options, BULK_OPTIONS);
  const plan = planOf(options);
  const counts = { discarded: 0, ...REFUSALS };
  return onAll(inbox.clock, await targetsOf(inbox, query, DISCARDABLE, plan), plan, {
    counts,
    async handle(target, pace) {
      if (plan.dryRun) return (await isInProgress(inbox, target)) ? "in_progress" : "discarded";
      await pace.turn();
      pace.acts();
      const result = await inbox.act(actOn("discard", target), plan.who);
      return result.ok ? "discarded" : result.reason;
    },
  });
}

/** The events that match now, in lane and sequence order. Those that match later are left to the next call. */
async function targetsOf(
  inbox: Finder,
  query: BulkQuery,
  allowed: readonly EventState[],
  { upTo, signal }: Pick<Plan<never>, "upTo" | "signal">,
): Promise<readonly Target[]> {
  const targets: Target[] = [];
  const events = matching(inbox, query, allowed, upTo);
  for await (const { id, laneId, sequence, state, finishedAt, attempts, hasBody } of events) {
    // Finding a million takes half a minute.
    signal?.throwIfAborted();
    targets.push({ id, laneId, sequence, state, finishedAt, attempts, hasBody });
  }
  // Found in the order of their ids, which the sort keeps among those of one sequence.
  return targets.sort((a, b) => a.laneId - b.laneId || a.sequence - b.sequence);
}

/** Acts only on the event as it was found: someone else may have replayed it since, and its handlers may have succeeded. */
function actOn(kind: "replay" | "discard", { id, state, finishedAt }: Target): Act {
  return { kind, event: id, from: state, finishedAt };
}

async function isSuperseded(inbox: Actor, { laneId, sequence }: Target): Promise<boolean> {
  const lane = await inbox.lane(laneId);
  if (lane === null) return false;
  // Dead letters are kept for longer than the events that were handled after them.
  if (isPrunedBehind(lane, sequence)) return true;
  return lane.events.some((event) => event.sequence > sequence && event.outcome === "handled");
}

/** The worker holds the first event that it has begun: the next one waits until this one has ended. */
async function isInProgress(inbox: Actor, { id, laneId, state, attempts }: Target): Promise<boolean> {
  if (state !== "pending" || attempts === 0) return false;
  const lane = await inbox.lane(laneId);
  if (lane === null || !isHeld(lane, inbox.clock.now())) return false;
  const begun = lane.events.filter((event) => event.state === "pending" && event.attempts > 0);
  return (begun.find(({ late }) => !late) ?? begun[0])?.id === id;
}

/** Dead letters with the same error. */
export interface ErrorGroup {
  readonly errorCode: string | null;
  /** The masked text, with each number in it as `#`; null where it was erased. */
  readonly error: string | null;
  readonly count: number;
  /** When the first and the last of these events became a dead letter, epoch milliseconds. */
  readonly oldestAt: number;
  readonly newestAt: number;
  /** The event that was accepted last. */
  readonly exampleId: EventId;
}

/** The largest group first. */
export async function groupByError(inbox: Finder, query: BulkQuery): Promise<readonly ErrorGroup[]> {
  const groups = new Map<string, ErrorGroup>();
  for await (const event of matching(inbox, query, ["dead"])) {
    const one = groupOf(event);
    const key = JSON.stringify([one.errorCode, one.error]);
    groups.set(key, joined(groups.get(key), one));
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || b.newestAt - a.newestAt);
}

function groupOf({ id, errorCode, error, finishedAt, acceptedAt }: EventSummary): ErrorGroup {
  const at = finishedAt ?? acceptedAt;
  return { errorCode, error: error && shapeOf(error), count: 1, oldestAt: at, newestAt: at, exampleId: id };
}

function joined(group: ErrorGroup | undefined, one: ErrorGroup): ErrorGroup {
  if (group === undefined) return one;
  return {
    ...group,
    count: group.count + 1,
    oldestAt: Math.min(group.oldestAt, one.oldestAt),
    newestAt: Math.max(group.newestAt, one.newestAt),
    exampleId: one.exampleId,
  };
}

/** "No order 17" and "No order 18" are the same error, and so is "No order [number]". The last digits of a masked number would also split a group. */
function shapeOf(error: string): string {
  return error.replace(/\d+|\[number\]/g, "#");
}
