/** The HTTP status of a readiness route; a liveness route checks nothing, because a restart repairs no disk and no database. */
import type { Health } from "oncehook";

/**
 * 503 only when deliveries can not be stored: then a balancer should send them elsewhere. Any other reason, such as a dead
 * letter, waits for a person, and taking the process out of service would not help.
 */
export function readinessStatus({ reasons }: Health): 200 | 503 {
  return reasons.includes("store_unavailable") || reasons.includes("stopped") ? 503 : 200;
}
