/** The rules in force: which fault is played on which call, event or attempt. */
import type { Faults, Ground } from "../service.ts";

/** `routes`: what a rule's `match.route` may name, such as `"POST /api/core/messages/send"`. */
export function createFaults(_ground: Ground, _routes: readonly string[]): Faults {
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
