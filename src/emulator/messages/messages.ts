/** Messages and their lifecycles: what happens to a message, when, and the event that tells it. */
import type { Deliveries, Faults, Ground, Messages } from "../service.ts";

export function createMessages(_ground: Ground, _deliveries: Deliveries, _faults: Faults): Messages {
  throw new Error("not yet");
}
