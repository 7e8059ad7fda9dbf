/** The option `filter` of every source: which events are handled. */
import { types } from "node:util";
import type { NewEvent } from "../inbox/record.ts";
import { errorPlaceOf } from "../internal/foreign-error.ts";
import { SampledLog } from "../internal/logger.ts";
import { isPromise } from "../internal/options.ts";
import type { Kept } from "./headers.ts";
import type { KeyringSourceDeps } from "./keyring-provider.ts";

/**
 * Decides whether an event is wanted: true, or false to filter it. Called once for each verified and parsed delivery, before it is stored, so it
 * is synchronous, quick, and changes nothing. If it throws or returns anything but true and false, the event is accepted, with a warning:
 * `filter_threw`, `filter_not_boolean`. It is not called for handshakes, for bodies that are not events, for the replay of a quarantined body, which
 * an operator asked for, and by `createVerifier()`.
 *
 * A filtered event is answered with 200 and `{"outcome":"filtered"}`, and counted. In a lane with an order it keeps its row as done, without its
 * body, so that no later event waits for it; a repeat is a duplicate, and it cannot be replayed. Other filtered events leave nothing in the inbox,
 * so the filter decides anew about each repeat.
 *
 * @param head - the headers that the source keeps next to the body. The messaging service keeps none
 */
export type EventFilter<Event extends object> = (event: Event, head: Kept) => boolean;

/** @returns whether the filter refuses an event. Undefined without a filter */
export function refusalOf<Event extends object>(
  filter: EventFilter<Event> | undefined,
  source: string,
  { logger, clock }: KeyringSourceDeps,
): ((event: Event, head: Kept) => boolean) | undefined {
  if (filter === undefined) return undefined;
  const log = new SampledLog(logger, clock);
  const reported = new Set<string>();
  return (event, head) => {
    try {
      const isWanted: unknown = filter(event, head);
      if (typeof isWanted === "boolean") return !isWanted;
      const returned = kindOf(isWanted);
      // The same mistake for each event: one line is enough.
      if (reported.has(returned)) return false;
      reported.add(returned);
      log.warn({ code: "filter_not_boolean", returned, source }, NOT_BOOLEAN);
    } catch (error) {
      log.warn({ code: "filter_threw", ...errorPlaceOf(error), source }, THREW);
    }
    return false;
  };
}

const THREW = "The filter threw an error. The event is accepted.";
const NOT_BOOLEAN = "The filter must return true or false, and not a promise. The event is accepted.";

function kindOf(returned: unknown): string {
  if (!isPromise(returned)) return returned === null ? "null" : typeof returned;
  // Nothing awaits it: a rejection would end the process.
  if (types.isPromise(returned)) returned.catch(() => {});
  return "promise";
}

/** What the inbox keeps of a refused event: not whom it is about. */
export function filtered(event: NewEvent): NewEvent {
  return { ...event, peer: null, externalReference: null, filtered: true };
}
