/** The state of a receiver in one word with reasons, for health routes. */
import type { Engine } from "./engine.ts";

/**
 * - `stopped`: `stop()` was called, also while it still takes deliveries.
 * - `store_unavailable`: the inbox does not answer, or the last delivery could not be stored and got 503; that counts for half a
 *   minute, since a process that is taken out of service for it gets no delivery that could be stored.
 * - `keyring_unavailable`: the secret store or the keyring provider failed when it was read last, or has no secret; what was
 *   read before serves for 10 minutes, then deliveries get 503.
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
    if (engine.keyrings.isFailing) reasons.push("keyring_unavailable");
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
    if (await engine.isWorkLeft()) reasons.push("worker_not_running");
    if (gauges.dead > 0) reasons.push("dead_letters");
    if (gauges.blockedLanes > 0) reasons.push("blocked_lanes");
    if (gauges.quarantined > 0) reasons.push("quarantined");
    return reasons;
  } catch {
    return ["store_unavailable"];
  }
}
