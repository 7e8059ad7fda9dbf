/** The gaps of a message: filled in time, given up, or still open. */
import { gapBefore } from "../../inbox/gap.ts";
import type { EventRecord, GapRecord, LaneRecord } from "../../inbox/record.ts";
import type { DrawnGap } from "../api.ts";
import { byTurn, isOrdered, isWaiting, type Scene, waitedUntil } from "./scene.ts";

/** A missing event that came while the one behind it still waited for it. */
export interface Filling {
  readonly event: EventRecord;
  /** When the first of those behind it had arrived. */
  readonly since: number;
}

/** What is known of the gaps, for those that waited because of them. */
export interface Gaps {
  readonly fillings: readonly Filling[];
  readonly skipped: readonly GapRecord[];
  readonly open: { readonly from: number; readonly to: number; readonly since: number } | null;
}

export function gapsOf(scene: Scene): Gaps {
  if (!isOrdered(scene.lane)) return { fillings: [], skipped: [], open: null };
  return { fillings: fillingsOf(scene), skipped: scene.lane.gaps, open: openGap(scene) };
}

/** Ascending. */
export function drawGaps(scene: Scene, { fillings, skipped, open }: Gaps): readonly DrawnGap[] {
  const drawn = [...drawFilled(fillings), ...skipped.map((gap) => drawSkipped(scene, gap))];
  if (open !== null) drawn.push({ ...open, until: null, skipped: false, filledAt: null });
  return drawn.sort((a, b) => a.from - b.from || a.since - b.since);
}

/** True while `event` waited for what `gap` gave up: as its head, or behind that. */
export function waitedThrough(event: EventRecord, { to, skippedAt }: GapRecord): boolean {
  const until = waitedUntil(event);
  if (event.sequence <= to || (until !== null && until < skippedAt)) return false;
  // The next gap can begin in the millisecond in which one is given up.
  return event.sequence === to + 1 ? event.acceptedAt <= skippedAt : event.acceptedAt < skippedAt;
}

/** True while `event` waited for `filling`. */
export function waitedFor(event: EventRecord, filling: EventRecord): boolean {
  if (event.sequence <= filling.sequence || event.id > filling.id) return false;
  const until = waitedUntil(event);
  return until === null || until >= filling.acceptedAt;
}

function fillingsOf({ arrivals, late }: Scene): readonly Filling[] {
  const known = new Set<number>();
  const waiting: EventRecord[] = [];
  const fillings: Filling[] = [];
  for (const event of arrivals) {
    if (late.has(event)) continue;
    const first = known.has(event.sequence) ? undefined : waiting.find((other) => waitedFor(other, event));
    if (first !== undefined) fillings.push({ event, since: first.acceptedAt });
    known.add(event.sequence);
    waiting.push(event);
  }
  return fillings.sort((a, b) => a.event.sequence - b.event.sequence);
}

/** One gap for each stretch without a hole. */
function drawFilled(fillings: readonly Filling[]): DrawnGap[] {
  const drawn: DrawnGap[] = [];
  for (const { event, since: waitedSince } of fillings) {
    const last = drawn.at(-1);
    const joined = last?.to === event.sequence - 1 ? drawn.pop() : undefined;
    const since = Math.min(waitedSince, joined?.since ?? waitedSince);
    const until = Math.max(event.acceptedAt, joined?.until ?? since, since);
    drawn.push({
      from: joined?.from ?? event.sequence,
      to: event.sequence,
      since,
      until,
      skipped: false,
      filledAt: null,
    });
  }
  return drawn;
}

function drawSkipped({ arrivals, late }: Scene, gap: GapRecord): DrawnGap {
  const { from, to, skippedAt, filledAt } = gap;
  const first = arrivals.find((event) => !late.has(event) && waitedThrough(event, gap));
  return { from, to, since: first?.acceptedAt ?? skippedAt, until: skippedAt, skipped: true, filledAt };
}

/** The store says that it waits by `gapSince`; what for, its rule tells. */
function openGap({ lane, late }: Scene): Gaps["open"] {
  if (lane.gapSince === null) return null;
  const behind = lane.events.filter((event) => isWaiting(event) && !event.forced && !late.has(event)).sort(byTurn);
  const [head] = behind;
  if (head === undefined) return null;
  const missing = gapBefore(positionOf(lane, head), head);
  return (
    missing && { ...missing, since: behind.reduce((at, event) => Math.min(at, event.acceptedAt), head.acceptedAt) }
  );
}

/** A receiver's `firstSequence` is not kept with its lanes: 1, unless what waits lies below. */
function positionOf(lane: LaneRecord, head: EventRecord) {
  const settled = new Set(lane.events.filter(({ state }) => state !== "pending").map(({ sequence }) => sequence));
  return {
    ordered: true,
    cursor: lane.cursor,
    firstSequence: Math.min(1, head.sequence - 1),
    isSettled: (sequence: number) => settled.has(sequence),
  };
}
