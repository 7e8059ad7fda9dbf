/** Work on many rows of an inbox: replay, discard, count by error. One after the other, at a set rate, as a dry run, and interruptible. */
import { isHeld, isPrunedBehind } from "../inbox/lanes/state.ts";
import type { EventId, EventRecord, EventState, LaneId, LaneRecord } from "../inbox/record.ts";
import type { Act, ActResult, EventQuery, Page } from "../inbox/store.ts";
import { type Clock, sleep } from "../internal/clock.ts";
import {
  booleanOption,
  functionOption,
  invalidOption,
  numberOption,
  refuseUnknownOptions,
} from "../internal/options.ts";
import { isAbortSignal } from "../internal/type-guards.ts";
import { checkEventFilter, type EventFilter } from "./queries.ts";

// Goes through many targets, one after the other: at a set rate, as a dry run, and so that it can be stopped between two.

export interface BulkOptions<Counts> {
  /** Acts a second at most, seen over more than 10 ms; 0.01 to 100,000. Default: as fast as the store takes them. */
  readonly ratePerSecond?: number;
  /** Changes nothing, and counts what would be done. Default false. */
  readonly dryRun?: boolean;
  /** Leaves out events with a higher id, which came later: `find({ limit: 1 })` tells the newest. Default: takes all. */
  readonly upTo?: EventId;
  /** Called after each event. What it throws ends the work, which can be called again for the rest. */
  readonly onProgress?: (progress: BulkProgress<Counts>) => void;
  /** Ends the work between two events, with the signal's reason; it can be called again for the rest. */
  readonly signal?: AbortSignal;
  /** Who acts, for the audit; a name or an id, never more. Default `"application"`. */
  readonly by?: string;
}

export interface BulkProgress<Counts> {
  /** Events that matched at the start. */
  readonly total: number;
  readonly done: number;
  readonly counts: Counts;
  /** The event that was looked at last, and the name of the count that it is in. */
  readonly id: EventId;
  readonly end: string;
}

/** Why an event was left as it is: what the single act would answer. */
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

/** What is done for each target, and how many came to which end. */
interface Work<Target, End extends string> {
  readonly counts: Record<End, number>;
  handle(target: Target, pace: Pace): Promise<End>;
}

/** @throws the reason of the signal when it aborts */
export async function onAll<Target extends { readonly id: number }, End extends string>(
  clock: Clock,
  targets: readonly Target[],
  { intervalMs, signal, onProgress }: Plan<Record<End, number>>,
  { counts, handle }: Work<Target, End>,
): Promise<Record<End, number>> {
  const pace = createPace(clock, intervalMs, signal);
  let done = 0;
  signal?.throwIfAborted();
  for (const target of targets) {
    const end = await handle(target, pace);
    counts[end] += 1;
    done += 1;
    onProgress?.({ total: targets.length, done, counts: { ...counts }, id: target.id, end });
    // An embedded store answers without giving up the thread.
    await new Promise<void>((resolve) => setImmediate(resolve));
    signal?.throwIfAborted();
  }
  return counts;
}

/** No timer is shorter. */
const TICK_MS = 1;
/** Made up for by acts without a wait, since timers are late; a store that was slow for longer is not hurried. */
const LONGEST_LAG_MS = 10;

export interface Pace {
  /** Resolves when the next act may be done. */
  turn(): Promise<void>;
  /** Called with each act. */
  acts(): void;
}

function createPace(clock: Clock, intervalMs: number, signal: AbortSignal | undefined): Pace {
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

// Goes through all events that match, page by page, for work on many of them.

/** Bodies are read with them, and each may have a megabyte. */
const PAGE = 100;

/** Which events; dead letters unless `states` says otherwise. All filters must match. */
export type BulkQuery = EventFilter;

/** What it needs of an inbox. */
interface Finder {
  find(query: Partial<EventQuery>): Promise<Page<EventRecord>>;
}

/** The newest event, for `upTo`; 0 while there is none. */
export async function newestEvent(inbox: Finder): Promise<EventId> {
  const [newest] = (await inbox.find({ limit: 1 })).items;
  return newest?.id ?? 0;
}

/** Which of those that match. */
interface Bounds {
  /** The states that the work is meant for. */
  readonly allowed: readonly EventState[];
  /** The last id that is taken. */
  readonly upTo?: EventId;
}

/**
 * The matching events in the order of their acceptance. The event loop gets its turn between two pages.
 *
 * @throws SetupError for an unknown filter, or a state that is not among them
 */
async function* matching(
  inbox: Finder,
  query: BulkQuery,
  { allowed, upTo = Number.MAX_SAFE_INTEGER }: Bounds,
): AsyncGenerator<EventRecord> {
  checkEventFilter(query);
  const { states = ["dead"], ...filters } = query;
  if (!Array.isArray(states) || !states.every((state) => allowed.includes(state)))
    throw invalidOption("states", `must be a list of ${allowed.map((state) => `"${state}"`).join(", ")}`, states);
  const asked = { ...filters, states, order: "oldest", limit: PAGE } as const;
  for (let after: number | null | undefined; after !== null; ) {
    const page: Page<EventRecord> = await inbox.find(after === undefined ? asked : { ...asked, after });
    for (const event of page.items) {
      if (event.id > upTo) return;
      yield event;
    }
    after = page.next;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

// Replays or discards many events: in lane and sequence order.

export interface ReplayAllOptions extends BulkOptions<ReplayCounts> {
  /** Leaves out an event of a message of which one with a higher sequence was handled, or settled and pruned: it would tell old news. Default false. */
  readonly skipSuperseded?: boolean;
}

export type DiscardAllOptions = BulkOptions<DiscardCounts>;

/** How many events came to which end. */
export interface ReplayCounts extends Readonly<Record<BulkRefusal, number>> {
  readonly replayed: number;
  readonly superseded: number;
}

export interface DiscardCounts extends Readonly<Record<BulkRefusal, number>> {
  readonly discarded: number;
}

/** What it needs of an inbox. */
export interface Actor extends Finder {
  readonly clock: Clock;
  lane(id: LaneId): Promise<LaneRecord | null>;
  act(act: Act, options: { readonly by?: string }): Promise<ActResult>;
}

/** What is remembered of each event that matched. */
interface Target extends Pick<EventRecord, "id" | "laneId" | "sequence" | "state" | "finishedAt" | "attempts"> {
  readonly hasBody: boolean;
}

/** The states that the work is meant for. */
export const REPLAYABLE: readonly EventState[] = ["done", "dead", "late", "discarded"];
export const DISCARDABLE: readonly EventState[] = ["pending", "dead"];

/** @throws SetupError for an unknown filter or option, or one out of bounds; the signal's reason when it aborts */
export async function replayAll(inbox: Actor, query: BulkQuery, options: ReplayAllOptions): Promise<ReplayCounts> {
  refuseUnknownOptions("inbox.replayAll()", options, [...BULK_OPTIONS, "skipSuperseded"]);
  const plan = planOf(options);
  const skips = booleanOption("skipSuperseded", options.skipSuperseded, false);
  const counts = { replayed: 0, superseded: 0, ...REFUSALS };
  return onAll(inbox.clock, await targetsOf(inbox, { query, allowed: REPLAYABLE }, plan), plan, {
    counts,
    async handle(target, pace) {
      // Only then: while it waits, a later event may be handled.
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
  return onAll(inbox.clock, await targetsOf(inbox, { query, allowed: DISCARDABLE }, plan), plan, {
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

/** What matches now, in lane and sequence order: what comes to match meanwhile is left to the next call. */
async function targetsOf(
  inbox: Finder,
  { query, allowed }: { readonly query: BulkQuery; readonly allowed: readonly EventState[] },
  { upTo, signal }: Pick<Plan<never>, "upTo" | "signal">,
): Promise<readonly Target[]> {
  const targets: Target[] = [];
  const events = matching(inbox, query, { allowed, upTo });
  for await (const { id, laneId, sequence, state, finishedAt, attempts, raw } of events) {
    // Finding a million takes half a minute.
    signal?.throwIfAborted();
    targets.push({ id, laneId, sequence, state, finishedAt, attempts, hasBody: raw !== null });
  }
  // Found in the order of their ids, which the sort keeps among those of one sequence.
  return targets.sort((a, b) => a.laneId - b.laneId || a.sequence - b.sequence);
}

/** Only as it was found: somebody else may have replayed it since, and its handlers have succeeded. */
function actOn(kind: "replay" | "discard", { id, state, finishedAt }: Target): Act {
  return { kind, event: id, from: state, finishedAt };
}

async function isSuperseded(inbox: Actor, { laneId, sequence }: Target): Promise<boolean> {
  const lane = await inbox.lane(laneId);
  if (lane === null) return false;
  // Dead letters are kept for longer than what was handled after them.
  if (isPrunedBehind(lane, sequence)) return true;
  return lane.events.some((event) => event.sequence > sequence && event.outcome === "handled");
}

/** A worker holds the first of those that it began with: another one's turn comes only when this one has ended. */
async function isInProgress(inbox: Actor, { id, laneId, state, attempts }: Target): Promise<boolean> {
  if (state !== "pending" || attempts === 0) return false;
  const lane = await inbox.lane(laneId);
  if (lane === null || !isHeld(lane, inbox.clock.now())) return false;
  const begun = lane.events.filter((event) => event.state === "pending" && event.attempts > 0);
  return (begun.find(({ late }) => !late) ?? begun[0])?.id === id;
}

// Dead letters by what went wrong: the first look after a bug.

/** Dead letters that failed alike. */
export interface ErrorGroup {
  readonly errorCode: string | null;
  /** The masked text, with each number in it as `#`; null where it was erased. */
  readonly error: string | null;
  readonly count: number;
  /** When the first and the last of them became a dead letter, epoch milliseconds. */
  readonly oldestAt: number;
  readonly newestAt: number;
  /** The one that was accepted last. */
  readonly exampleId: EventId;
}

/** The largest group first. */
export async function groupByError(inbox: Finder, query: BulkQuery): Promise<readonly ErrorGroup[]> {
  const groups = new Map<string, ErrorGroup>();
  for await (const event of matching(inbox, query, { allowed: ["dead"] })) {
    const one = groupOf(event);
    const key = JSON.stringify([one.errorCode, one.error]);
    groups.set(key, joined(groups.get(key), one));
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || b.newestAt - a.newestAt);
}

function groupOf({ id, errorCode, error, finishedAt, acceptedAt }: EventRecord): ErrorGroup {
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

/** "No order 17" and "No order 18" are one mistake, and the last digits that masking leaves of a number tell nothing here. */
function shapeOf(error: string): string {
  return error.replace(/\d+/g, "#");
}
