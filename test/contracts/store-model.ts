/** The reference model of an inbox: the lane rules a second time, written for clarity only. */
import type { EventState, LaneStatus, Outcome } from "../../src/inbox/record.ts";
import type { Act, Settle } from "../../src/inbox/store.ts";

const LAST_RETRY_MS = 85 * 60_000;

export interface ModelEvent {
  id: number;
  readonly sequence: number;
  readonly type: string;
  /** Stands for the content. */
  readonly note: string;
  /** The filter refused it: it has no body. */
  readonly filtered: boolean;
  readonly occurredAt: number;
  readonly acceptedAt: number;
  gapWaitMs: number;
  state: EventState;
  outcome: Outcome | null;
  late: boolean;
  forced: boolean;
  attempts: number;
  duplicates: number;
  conflict: boolean;
}

export interface ModelLane {
  readonly ordered: boolean;
  id: number;
  status: LaneStatus;
  /** Null when idle or blocked. */
  readyAt: number | null;
  cursor: number | null;
  gapSince: number | null;
  token: number;
  leased: ModelEvent | null;
  /** Counts the openings of the store: who holds the lease. */
  holder: number;
  readonly events: ModelEvent[];
  readonly gaps: { from: number; to: number; filled: boolean }[];
}

export function newModelLane(ordered: boolean): ModelLane {
  const nothing = { readyAt: null, cursor: null, gapSince: null, leased: null, events: [], gaps: [] };
  return { ordered, id: 0, status: "idle", token: 0, holder: 0, ...nothing };
}

/** Pending events in the order of handling: events on time first, then by sequence, then by arrival. */
function pendingOf(lane: ModelLane): ModelEvent[] {
  const pending = lane.events.filter((event) => event.state === "pending");
  return pending.sort((a, b) => Number(a.late) - Number(b.late) || a.sequence - b.sequence || a.id - b.id);
}

const expectedOf = (lane: ModelLane) => (lane.cursor ?? 0) + 1;

/** The lowest missing sequence before `sequence`. Replayed and discarded sequences are not missing. */
function missingBefore(lane: ModelLane, sequence: number): number | null {
  const finished = new Set(lane.events.filter((event) => event.state !== "pending").map((event) => event.sequence));
  for (let next = expectedOf(lane); next < sequence; next++) if (!finished.has(next)) return next;
  return null;
}

/** The event that is next, perhaps behind a gap that is skipped; or until when the lane waits; or neither. */
export function turnOf(lane: ModelLane, now: number): { event?: ModelEvent; gaveUp?: boolean; waitsUntil?: number } {
  const pending = pendingOf(lane);
  const [head] = pending;
  const waits = head !== undefined && lane.ordered && !head.late && missingBefore(lane, head.sequence) !== null;
  if (!waits && !head?.forced) lane.gapSince = null;
  if (head === undefined) return {};
  if (!waits || head.forced) return { event: head };
  lane.gapSince ??= now;
  const lastRetry = head.occurredAt + LAST_RETRY_MS;
  const waited = lane.gapSince + head.gapWaitMs;
  const waitsUntil = head.acceptedAt > lastRetry ? waited : Math.min(waited, lastRetry);
  if (waitsUntil <= now) return { event: head, gaveUp: true };
  const late = pending.find((event) => event.late);
  return late === undefined ? { waitsUntil } : { event: late };
}

export function rearmInModel(lane: ModelLane, now: number): void {
  const { event, waitsUntil } = turnOf(lane, now);
  lane.leased = null;
  lane.status = event !== undefined ? "ready" : waitsUntil !== undefined ? "gap" : "idle";
  lane.readyAt = event !== undefined ? now : (waitsUntil ?? null);
}

function park(lane: ModelLane, status: "backoff" | "blocked", readyAt: number | null): void {
  Object.assign(lane, { leased: null, status, readyAt });
}

function moveCursor(lane: ModelLane, sequence: number): void {
  if (lane.cursor !== null && lane.cursor >= sequence) return;
  lane.cursor = sequence;
  lane.gapSince = null;
}

export function isDueInModel(lane: ModelLane, now: number): boolean {
  return lane.readyAt !== null && lane.readyAt <= now;
}

/** Adds a new event to the lane. @returns true when it is late */
export function acceptInModel(lane: ModelLane, event: ModelEvent, now: number): boolean {
  event.late = lane.ordered && lane.cursor !== null && event.sequence < lane.cursor;
  lane.events.push(event);
  if (event.late) for (const gap of lane.gaps) gap.filled ||= gap.from <= event.sequence && event.sequence <= gap.to;
  if (event.filtered) endFiltered(lane, event, now);
  else if (lane.status === "idle" || lane.status === "ready" || lane.status === "gap") rearmInModel(lane, now);
  else if (lane.status === "backoff" && pendingOf(lane)[0] === event) rearmInModel(lane, now);
  return event.late;
}

function endFiltered(lane: ModelLane, event: ModelEvent, now: number): void {
  Object.assign(event, { state: "done", outcome: "filtered" });
  if (lane.ordered && event.sequence === expectedOf(lane)) moveCursor(lane, event.sequence);
  if (lane.status === "gap") rearmInModel(lane, now);
}

/** Leases `event`, which is next. */
export function lease(lane: ModelLane, event: ModelEvent, until: number, gaveUp: boolean): void {
  pass(lane, event, gaveUp);
  event.attempts++;
  Object.assign(lane, { leased: event, status: "leased", readyAt: until });
}

function pass(lane: ModelLane, event: ModelEvent, gaveUp: boolean): void {
  const from = gaveUp ? missingBefore(lane, event.sequence) : null;
  if (from !== null) lane.gaps.push({ from, to: event.sequence - 1, filled: false });
  const outOfPlace = event.late || (event.forced && lane.ordered);
  if (!outOfPlace) moveCursor(lane, event.sequence);
}

/** Ends `event`, which is next and which no handler takes. The cursor passes it, because the lanes of the model are by sequence. */
export function passOver(lane: ModelLane, event: ModelEvent, gaveUp: boolean, now: number): void {
  if (lane.ordered) pass(lane, event, gaveUp);
  Object.assign(event, event.late ? { state: "late" } : { state: "done", outcome: "unhandled" });
  rearmInModel(lane, now);
}

export function die(lane: ModelLane, event: ModelEvent, onDead: "continue" | "block", now: number): void {
  event.state = "dead";
  if (onDead === "block") park(lane, "blocked", null);
  else rearmInModel(lane, now);
}

/** Ends a lease that is still held. */
export function settleInModel(lane: ModelLane, event: ModelEvent, how: Settle<unknown>, now: number): void {
  if (how.kind === "dead") return die(lane, event, how.onDead, now);
  if (how.kind === "complete") Object.assign(event, { state: "done", outcome: how.outcome });
  if (how.kind === "release") event.attempts--;
  const delayMs = how.kind === "complete" ? 0 : how.delayMs;
  if (how.kind === "retry" || delayMs > 0) park(lane, "backoff", now + delayMs);
  else rearmInModel(lane, now);
}

type LaneAct = Extract<Act["kind"], "replay" | "discard" | "unblock" | "release_gap">;

/** Performs an operator's act on `event` or its lane. @returns the reason for a refusal, or null */
export function actInModel(lane: ModelLane, event: ModelEvent, kind: LaneAct, now: number): string | null {
  const [head] = pendingOf(lane);
  const [waiting, next] = pendingOf(lane).filter(({ late, forced }) => !late && !forced);
  const onEvent = kind === "replay" || kind === "discard";
  // An expired lease has no holder.
  const isHeld = lane.status === "leased" && !isDueInModel(lane, now);
  if (isHeld && (!onEvent || lane.leased === event)) return "in_progress";
  if (kind === "unblock" && lane.status !== "blocked") return "wrong_state";
  if (kind === "release_gap" && lane.status !== "gap") return "wrong_state";
  const waitsToGoOn = lane.status === "backoff" || lane.status === "blocked";
  if (kind === "replay" && event.state === "pending" && !waitsToGoOn) return "wrong_state";
  if (kind === "replay" && event.filtered) return "body_pruned";
  if (kind === "discard" && event.state !== "pending" && event.state !== "dead") return "wrong_state";

  if (kind === "replay")
    Object.assign(event, { state: "pending", outcome: null, forced: true, late: false, attempts: 0 });
  if (kind === "discard") event.state = "discarded";
  if (kind === "discard" && lane.ordered && event.sequence === expectedOf(lane)) moveCursor(lane, event.sequence);
  if (kind === "release_gap" && head !== undefined) head.gapWaitMs = 0;
  // This event was waiting for the gap. The next one has waited since its arrival at most.
  if (onEvent && event === waiting && lane.gapSince !== null)
    lane.gapSince = next === undefined ? null : Math.max(lane.gapSince, next.acceptedAt);

  const [headNow] = pendingOf(lane);
  const waitGoesOn = lane.status === "backoff" && headNow === head && !(kind === "replay" && headNow === event);
  const leaseGoesOn = lane.status === "leased" && lane.leased !== event;
  if (!leaseGoesOn && !waitGoesOn) rearmInModel(lane, now);
  return null;
}
