/** Ends and renews leases of the memory store, each only while it is still held. */
import { SetupError } from "../../errors.ts";
import { endLease, heldEvent } from "../../inbox/lanes/settling.ts";
import type { LeaseRef, Settle, SettleResult } from "../../inbox/store.ts";
import { keep, type MemoryMoment } from "./state.ts";

export function settle(moment: MemoryMoment, request: Settle<never>): SettleResult {
  const event = heldEvent(moment, moment.state.lanes.get(request.lease.lane), request.lease);
  if (event === null) return { status: "lost" };
  if (request.kind === "complete" && request.effects.length > 0) {
    return { status: "effect_failed", error: effectsUnsupported() };
  }
  const result = endLease(moment, event, request);
  keep(moment.state, event.lane);
  return result;
}

export function extend(moment: MemoryMoment, ref: LeaseRef, leaseMs: number): boolean {
  const event = heldEvent(moment, moment.state.lanes.get(ref.lane), ref);
  if (event === null) return false;
  event.lane.readyAt = moment.now + leaseMs;
  return true;
}

function effectsUnsupported(): SetupError {
  return new SetupError(
    "effects_unsupported",
    "The memory store has no transaction that ctx.commit could write in. Use sqliteStore() of oncehook/sqlite.",
  );
}
