/** Arms lanes: reads a lane's heads, asks the ordering decision, and writes what changed. */
import { type Arming, arm, type Candidate, isDue, type LanePosition } from "../../inbox/gap.ts";
import type { OnDead } from "../../inbox/record.ts";
import { STATUS, TAG } from "../codes.ts";
import type { HeadRow, LaneRow } from "./statements.ts";
import type { Work } from "./work.ts";

/** A pending event as the ordering decision sees it. */
export interface Head extends Candidate {
  readonly id: number;
}

export interface Heads {
  readonly head: Head | null;
  readonly late: Head | null;
}

/** The lane's lowest pending event, and its lowest late one. Looks below the cursor only while something may be there. */
export function headsOf(work: Work, lane: LaneRow): Heads {
  const from = lane.below === 1 || lane.cursor === null ? Number.MIN_SAFE_INTEGER : lane.cursor;
  const head = toHead(work.sql.head.get(lane.id, from), false);
  const late = lane.below === 1 ? toHead(work.sql.lateHead.get(lane.id), true) : null;
  const under = late !== null || (head !== null && lane.cursor !== null && head.sequence < lane.cursor);
  lane.below = under ? 1 : 0;
  return { head, late };
}

export function armingOf(work: Work, lane: LaneRow, heads: Heads): Arming<Head> {
  return arm(positionOf(work, lane), heads.head, heads.late, work.now);
}

export function positionOf(work: Work, lane: Pick<LaneRow, "id" | "tag" | "cursor" | "gapSince">): LanePosition {
  const { cursor, gapSince } = lane;
  const isSettled = (sequence: number) => work.sql.settledAt.get(lane.id, sequence) !== undefined;
  return { ordered: lane.tag === TAG.outbound, cursor, gapSince, firstSequence: work.facts.firstSequence, isSettled };
}

/**
 * Decides anew what a lane does next, and stores it. A lane that was ready keeps its place among the ready ones.
 *
 * @returns whether it begins to wait for a missing sequence with that
 */
export function rearm(work: Work, lane: LaneRow): boolean {
  const beginsToWait = applyArming(work, lane, armingOf(work, lane, headsOf(work, lane)));
  writeLane(work, lane);
  return beginsToWait;
}

/** As `rearm`, for a lane of which nothing but a new event has changed: most stay as they are, and cost no write. @returns as `rearm` */
export function rearmAfterAccept(work: Work, lane: LaneRow, belowBefore: number): boolean {
  const { status, readyAt, gapSince } = lane;
  const beginsToWait = applyArming(work, lane, armingOf(work, lane, headsOf(work, lane)));
  const same = lane.status === status && lane.readyAt === readyAt && lane.gapSince === gapSince;
  if (!same || lane.below !== belowBefore) writeLane(work, lane);
  return beginsToWait;
}

/** Sets what `arming` says on the row, without storing it. @returns as `rearm` */
export function applyArming(work: Work, lane: LaneRow, arming: Arming<Head>): boolean {
  const beginsToWait = arming.status === "gap" && lane.gapSince === null;
  lane.gapSince = arming.gapSince;
  if (arming.status === "idle") schedule(work, lane, STATUS.idle, null);
  else if (arming.status === "gap") schedule(work, lane, STATUS.gap, arming.dueAt);
  else schedule(work, lane, STATUS.ready, lane.status === STATUS.ready ? lane.readyAt : work.now);
  return beginsToWait;
}

/** Sets a lane's status and due time on the row, without storing it. */
export function schedule(work: Work, lane: LaneRow, status: number, readyAt: number | null): void {
  if ((status === STATUS.blocked) !== (lane.status === STATUS.blocked)) {
    work.ledger.add("blocked", status === STATUS.blocked ? 1 : -1);
  }
  lane.status = status;
  lane.readyAt = readyAt;
  if (status === STATUS.leased) return;
  lane.holder = null;
  lane.leased = null;
}

/** Whether a worker has the lane's event: a lease that has expired holds nothing back. */
export function isHeld({ now }: Work, { status, readyAt }: Pick<LaneRow, "status" | "readyAt">): boolean {
  return status === STATUS.leased && readyAt !== null && !isDue(readyAt, now);
}

export function writeLane(work: Work, lane: LaneRow): void {
  const { status, readyAt, cursor, gapSince, epoch, holder, leased, below, id } = lane;
  work.sql.updateLane.run(status, readyAt, cursor, gapSince, epoch, holder, leased, below, id);
}

/** Moves the cursor up to `sequence`; a gap that it reaches is no longer waited for. */
export function moveCursor(lane: LaneRow, sequence: number): void {
  if (lane.cursor !== null && lane.cursor >= sequence) return;
  lane.cursor = sequence;
  lane.gapSince = null;
}

/** A dead letter behind which its lane goes on or is parked. @returns as `rearm` */
export function goOnAfterDead(work: Work, lane: LaneRow, onDead: OnDead): boolean {
  if (onDead === "continue") return rearm(work, lane);
  schedule(work, lane, STATUS.blocked, null);
  writeLane(work, lane);
  return false;
}

function toHead(row: HeadRow | undefined, late: boolean): Head | null {
  if (row === undefined) return null;
  const { id, sequence, gapWaitMs, occurredAt, acceptedAt } = row;
  return { id, sequence, gapWaitMs, occurredAt, acceptedAt, late, forced: row.forced === 1 };
}
