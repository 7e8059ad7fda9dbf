/** The state of a receiver, in one word with reasons, for health routes. */
import type { Engine } from "./engine.ts";

/**
 * - `stopped`: `stop()` was called. Deliveries may still be accepted.
 * - `store_unavailable`: the inbox does not answer, or the last delivery could not be stored and got 503. The latter counts for half a
 *   minute: a load balancer that removed this process would never send the delivery that clears it.
 * - `keyring_unavailable`: the last read of the secret store or keyring provider failed, or returned no secret. The secrets read before
 *   serve for 10 minutes. After that, deliveries get 503.
 * - `worker_not_running`: an event is due, and neither `start()` nor `drain()` ran for a minute.
 * - `worker_paused`: every handler failed, or `pause()` was called.
 * - `dead_letters`, `blocked_lanes`, `quarantined`: something waits for an operator.
 */
export type HealthReason =
  | "stopped"
  | "store_unavailable"
  | "keyring_unavailable"
  | "worker_not_running"
  | "worker_paused"
  | "dead_letters"
  | "blocked_lanes"
  | "quarantined";

export interface Health {
  readonly status: "ok" | "degraded";
  readonly reasons: readonly HealthReason[];
}

export async function healthOf<Tx>(engine: Engine<Tx>): Promise<Health> {
  const reasons: HealthReason[] = [];
  if (engine.isStopping) reasons.push("stopped");
  else {
    if (engine.worker.isTripped || engine.worker.isPaused) reasons.push("worker_paused");
    reasons.push(...(await inboxReasons(engine)));
    if (engine.inUse.keyrings.isFailing) reasons.push("keyring_unavailable");
  }
  return { status: reasons.length === 0 ? "ok" : "degraded", reasons };
}

async function inboxReasons<Tx>(engine: Engine<Tx>): Promise<HealthReason[]> {
  try {
    await engine.open();
    const { gauges } = await engine.options.store.stats();
    const reasons: HealthReason[] = [];
    // A full disk can still be read.
    if (engine.isFailingToStore) reasons.push("store_unavailable");
    if (await engine.upkeep.isWorkLeft()) reasons.push("worker_not_running");
    if (gauges.dead > 0) reasons.push("dead_letters");
    if (gauges.blockedLanes > 0) reasons.push("blocked_lanes");
    if (gauges.quarantined > 0) reasons.push("quarantined");
    return reasons;
  } catch {
    return ["store_unavailable"];
  }
}
