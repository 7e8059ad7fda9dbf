/** Goes through many targets, one after the other: at a set rate, as a dry run, and so that it can be stopped between two. */
import type { EventId } from "../../inbox/record.ts";
import type { ActResult } from "../../inbox/store.ts";
import { type Clock, sleep } from "../../internal/clock.ts";
import { booleanOption, functionOption, invalidOption, numberOption } from "../../internal/options.ts";
import { isAbortSignal } from "../../internal/type-guards.ts";

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
export const BULK_OPTIONS = [
  "ratePerSecond",
  "dryRun",
  "upTo",
  "onProgress",
  "signal",
  "by",
] as const satisfies readonly (keyof BulkOptions<never>)[];

const ANY_ID = { min: 0, max: Number.MAX_SAFE_INTEGER, unit: "(the id of an event)" };

/** Checked options. */
export interface Plan<Counts> {
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
export interface Work<Target, End extends string> {
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
