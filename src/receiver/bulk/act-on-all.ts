/** Replays or discards many events, one after the other: in lane and sequence order, at a set rate. */
import type { EventRecord, EventState, LaneId, LaneRecord } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { isAbortSignal } from "../../internal/abort-signal.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import {
  booleanOption,
  functionOption,
  invalidOption,
  numberOption,
  refuseUnknownOptions,
} from "../../internal/options.ts";
import { type BulkQuery, type Finder, matching } from "./matching.ts";

export interface BulkOptions<Counts> {
  /** Acts a second at most, seen over more than 10 ms; 0.01 to 100,000. Default: as fast as the store takes them. */
  readonly ratePerSecond?: number;
  /** Changes nothing, and counts what would be done. Default false. */
  readonly dryRun?: boolean;
  /** Called after each event. What it throws ends the work, which can be called again for the rest. */
  readonly onProgress?: (progress: BulkProgress<Counts>) => void;
  /** Ends the work between two events, with the signal's reason; it can be called again for the rest. */
  readonly signal?: AbortSignal;
  /** Who acts, for the audit; a name or an id, never more. Default `"application"`. */
  readonly by?: string;
}

export interface ReplayAllOptions extends BulkOptions<ReplayCounts> {
  /** Leaves out an event of a message of which one with a higher sequence was handled: it would tell old news. Default false. */
  readonly skipSuperseded?: boolean;
}

export type DiscardAllOptions = BulkOptions<DiscardCounts>;

export interface BulkProgress<Counts> {
  /** Events that matched at the start. */
  readonly total: number;
  readonly done: number;
  readonly counts: Counts;
}

/** Why an event was left as it is: what the single act would answer. */
export type BulkRefusal = Extract<ActResult, { ok: false }>["reason"];

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

const REFUSALS = { in_progress: 0, body_pruned: 0, not_found: 0, wrong_state: 0 } as const;
const OPTIONS = [
  "ratePerSecond",
  "dryRun",
  "onProgress",
  "signal",
  "by",
] as const satisfies readonly (keyof BulkOptions<never>)[];

const REPLAYABLE: readonly EventState[] = ["done", "dead", "late", "discarded"];
const DISCARDABLE: readonly EventState[] = ["pending", "dead"];

/** @throws SetupError for an unknown filter or option, or one out of bounds; the signal's reason when it aborts */
export async function replayAll(inbox: Actor, query: BulkQuery, options: ReplayAllOptions): Promise<ReplayCounts> {
  refuseUnknownOptions("inbox.replayAll()", options, [...OPTIONS, "skipSuperseded"]);
  const plan = planOf(options);
  const skips = booleanOption("skipSuperseded", options.skipSuperseded, false);
  const counts = { replayed: 0, superseded: 0, ...REFUSALS };
  return onAll(inbox, await targetsOf(inbox, query, REPLAYABLE), plan, {
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
  refuseUnknownOptions("inbox.discardAll()", options, OPTIONS);
  const plan = planOf(options);
  const counts = { discarded: 0, ...REFUSALS };
  return onAll(inbox, await targetsOf(inbox, query, DISCARDABLE), plan, {
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

interface Plan<Counts> {
  readonly intervalMs: number;
  readonly dryRun: boolean;
  readonly onProgress: ((progress: BulkProgress<Counts>) => void) | undefined;
  readonly signal: AbortSignal | undefined;
  readonly who: { readonly by?: string };
}

function planOf<Counts>({ ratePerSecond, dryRun, onProgress, signal, by }: BulkOptions<Counts>): Plan<Counts> {
  if (signal !== undefined && !isAbortSignal(signal)) throw invalidOption("signal", "must be an AbortSignal", signal);
  const bounds = { min: 0.01, max: 100_000, unit: "a second", integer: false };
  return {
    intervalMs: 1_000 / numberOption("ratePerSecond", ratePerSecond, Number.POSITIVE_INFINITY, bounds),
    dryRun: booleanOption("dryRun", dryRun, false),
    onProgress: functionOption("onProgress", onProgress),
    who: by === undefined ? {} : { by },
    signal,
  };
}

/** What matches now, in lane and sequence order: what comes to match meanwhile is left to the next call. */
async function targetsOf(inbox: Finder, query: BulkQuery, allowed: readonly EventState[]): Promise<readonly Target[]> {
  const targets: Target[] = [];
  for await (const { id, laneId, sequence, state, finishedAt, attempts, raw } of matching(inbox, query, allowed))
    targets.push({ id, laneId, sequence, state, finishedAt, attempts, hasBody: raw !== null });
  return targets.sort((a, b) => a.laneId - b.laneId || a.sequence - b.sequence || a.id - b.id);
}

interface Work<End extends string> {
  readonly counts: Record<End, number>;
  handle(target: Target, pace: Pace): Promise<End>;
}

async function onAll<End extends string>(
  { clock }: Actor,
  targets: readonly Target[],
  { intervalMs, signal, onProgress }: Plan<Record<End, number>>,
  { counts, handle }: Work<End>,
): Promise<Record<End, number>> {
  const pace = createPace(clock, intervalMs, signal);
  let done = 0;
  signal?.throwIfAborted();
  for (const target of targets) {
    counts[await handle(target, pace)] += 1;
    done += 1;
    onProgress?.({ total: targets.length, done, counts: { ...counts } });
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

interface Pace {
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

/** Only as it was found: somebody else may have replayed it since, and its handlers have succeeded. */
function actOn(kind: "replay" | "discard", { id, state, finishedAt }: Target): Act {
  return { kind, event: id, from: state, finishedAt };
}

async function isSuperseded(inbox: Actor, { laneId, sequence }: Target): Promise<boolean> {
  const lane = await inbox.lane(laneId);
  return lane?.events.some((event) => event.sequence > sequence && event.outcome === "handled") ?? false;
}

/** A worker holds the first of those that it began with: another one's turn comes only when this one has ended. */
async function isInProgress(inbox: Actor, { id, laneId, state, attempts }: Target): Promise<boolean> {
  if (state !== "pending" || attempts === 0) return false;
  const lane = await inbox.lane(laneId);
  if (lane?.status !== "leased") return false;
  const begun = lane.events.filter((event) => event.state === "pending" && event.attempts > 0);
  return (begun.find(({ late }) => !late) ?? begun[0])?.id === id;
}
