/** Replays or discards many events: in lane and sequence order. */
import { isHeld, isPrunedBehind } from "../../inbox/lanes/state.ts";
import type { EventRecord, EventState, LaneId, LaneRecord } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import type { Clock } from "../../internal/clock.ts";
import { booleanOption, refuseUnknownOptions } from "../../internal/options.ts";
import { BULK_OPTIONS, type BulkOptions, type BulkRefusal, onAll, type Plan, planOf, REFUSALS } from "./each.ts";
import { type BulkQuery, type Finder, matching } from "./matching.ts";

export type { BulkOptions, BulkProgress, BulkRefusal } from "./each.ts";

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
