/** The rules in force: which fault is played on which call, event or attempt. */
import type { Faults, Ground } from "../service.ts";

export function createFaults(_ground: Ground): Faults {
  return {
    add: () => "",
    remove: () => false,
    clear: () => {},
    list: () => [],
    forCall: () => [],
    forEvent: () => [],
    forAttempt: () => [],
  };
}
