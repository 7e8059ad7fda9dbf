/** Ends leases of the memory store, each only while it is still held. */
import { SetupError } from "../../errors.ts";
import type { Failure, LeaseRef, Settle, SettleResult } from "../../inbox/store.ts";
import { goOnAfterDead, rearm } from "./lanes.ts";
import { finish, type MemoryEvent, type Moment, schedule } from "./state.ts";

export function settle(moment: Moment, request: Settle<never>): SettleResult {
  const event = heldEvent(moment, request.lease);
  if (event === null) return { status: "lost" };
  const { state, now } = moment;
  switch (request.kind) {
    case "complete":
      if (request.effects.length > 0) return { status: "effect_failed", error: effectsUnsupported() };
      finish(event, "done", now, request.outcome);
      state.counters[request.outcome]++;
      rearm(moment, event.lane);
      break;
    case "retry":
      recordFailure(moment, event, request.failure);
      state.counters.retried++;
      schedule(state, event.lane, "backoff", now + request.delayMs);
      break;
    case "dead":
      recordFailure(moment, event, request.failure);
      finish(event, "dead", now);
      state.counters.deadLettered++;
      goOnAfterDead(moment, event.lane, request.onDead);
      break;
    case "release":
      event.attempts--;
      if (request.delayMs > 0) schedule(state, event.lane, "backoff", now + request.delayMs);
      else rearm(moment, event.lane);
      break;
    default:
      return request satisfies never;
  }
  return { status: "settled" };
}

export function extend(moment: Moment, ref: LeaseRef, leaseMs: number): boolean {
  const event = heldEvent(moment, ref);
  if (event === null) return false;
  event.lane.readyAt = moment.now + leaseMs;
  return true;
}

/** The event under a lease that is still this instance's; null when it is lost. Being expired alone loses nothing. */
function heldEvent(moment: Moment, ref: LeaseRef): MemoryEvent | null {
  const lane = moment.state.lanes.get(ref.lane);
  if (lane === undefined || lane.leased === null || lane.leased.id !== ref.event || lane.epoch !== ref.epoch)
    return null;
  if (lane.holder !== moment.context.instance.id || lane.leased.state !== "pending") return null;
  return lane.leased;
}

function recordFailure(moment: Moment, event: MemoryEvent, failure: Failure): void {
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

function effectsUnsupported(): SetupError {
  return new SetupError(
    "effects_unsupported",
    "The memory store has no transaction that ctx.commit could write in. Use sqliteStore() of oncehook/sqlite.",
  );
}
