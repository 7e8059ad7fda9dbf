/** Ends leases, each only while it is still held. */
import type { Failure, LeaseRef, Settle, SettleResult } from "../store.ts";
import { goOnAfterDead, rearm } from "./claiming.ts";
import { finish, type LaneEvent, type LaneState, type Moment, schedule } from "./state.ts";

/** The event under a lease that is still this instance's; null when it is lost. Being expired alone loses nothing. */
export function heldEvent(moment: Moment, lane: LaneState | undefined, ref: LeaseRef): LaneEvent | null {
  if (lane === undefined || lane.leased === null || lane.leased.id !== ref.event || lane.epoch !== ref.epoch)
    return null;
  return lane.holder === moment.holder && lane.leased.state === "pending" ? lane.leased : null;
}

/** Ends the lease on `event` as the core decided; effects are the store's part. */
export function endLease(
  moment: Moment,
  event: LaneEvent,
  request: Settle<never>,
): Extract<SettleResult, { status: "settled" }> {
  return settled(ended(moment, event, request));
}

/** @param beginsToWait - what rearming the lane returned */
export function settled(beginsToWait: boolean): Extract<SettleResult, { status: "settled" }> {
  return beginsToWait ? { status: "settled", gapBegins: true } : { status: "settled" };
}

function ended(moment: Moment, event: LaneEvent, request: Settle<never>): boolean {
  const { lane } = event;
  switch (request.kind) {
    case "complete":
      finish(event, "done", moment.now, request.outcome);
      moment.tally.count(request.outcome);
      return rearm(moment, lane);
    case "retry":
      recordFailure(moment, event, request.failure);
      moment.tally.count("retried");
      schedule(lane, "backoff", moment.now + request.delayMs);
      return false;
    case "dead":
      recordFailure(moment, event, request.failure);
      finish(event, "dead", moment.now);
      moment.tally.count("deadLettered");
      return goOnAfterDead(moment, lane, request.onDead);
    case "release":
      event.attempts--;
      if (request.delayMs === 0) return rearm(moment, lane);
      schedule(lane, "backoff", moment.now + request.delayMs);
      return false;
    default:
      return request satisfies never;
  }
}

function recordFailure(moment: Moment, event: LaneEvent, failure: Failure): void {
  event.errorCode = failure.code;
  event.error = failure.message;
  event.lane.attempts.push({
    eventId: event.id,
    attempt: event.attempts,
    at: moment.now,
    durationMs: failure.durationMs,
    errorCode: failure.code,
    error: failure.message,
  });
}
