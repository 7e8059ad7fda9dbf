/** Handing over events: a delivery per event and target, attempts by the plan, and the extra ones that somebody asks for. */
import type { Deliveries, Faults, Ground } from "../service.ts";

export function createDeliveries(_ground: Ground, _faults: Faults): Deliveries {
  return {
    queue: () => [],
    redeliver: async () => undefined,
    nextAttempt: async () => {},
    recover: async () => [],
    resume: () => {},
    close: () => {},
  };
}
