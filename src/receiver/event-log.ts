/** A line at level info for each event that is accepted, and for each that is handled: what somebody who develops looks at. */
import type { AttemptEnding, AttemptInfo, Instrumentation, Observer } from "../inbox/instrumentation.ts";
import { logFieldsOf } from "../inbox/log-fields.ts";
import type { EventId, NewEvent } from "../inbox/record.ts";
import type { Acceptance } from "../inbox/store.ts";
import type { Logger } from "../internal/logger.ts";

const ACCEPTED = {
  accepted: "Event accepted.",
  late: "Event accepted, too late for its place.",
  duplicate: "Event was accepted before: it is not handled again.",
} as const;

export class EventLog implements Instrumentation {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  accepted(
    { lane, sequence, eventType }: NewEvent,
    eventId: EventId,
    outcome: Exclude<Acceptance["outcome"], "failed">,
  ): void {
    this.#logger.info(logFieldsOf({ eventId, lane, sequence, eventType }), ACCEPTED[outcome]);
  }

  attempt(info: AttemptInfo): Observer<{ readonly ending: AttemptEnding; readonly durationMs: number }> {
    return {
      ended: ({ ending, durationMs }) => {
        if (ending === "handled")
          this.#logger.info(logFieldsOf(info), `Event handled in ${Math.max(0, Math.round(durationMs))} ms.`);
        if (ending === "unhandled") this.#logger.info(logFieldsOf(info), "Event has no handler, and is done.");
      },
    };
  }
}
