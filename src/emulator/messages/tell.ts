/** Makes an event: its record, its line in the journal, and its handing over. */
import type { Deliveries, Faults, Ground } from "../service.ts";
import type { Delivery, EventRecord } from "../state/records.ts";
import type { EventBody } from "./event-body.ts";
import { withFaults } from "./event-faults.ts";

/** Something that happened, to be told by an event. */
export interface Happening
  extends Pick<EventRecord, "kind" | "eventType" | "apiClientId" | "numberId" | "messageId" | "sequence"> {
  readonly at: number;
  readonly body: EventBody;
  readonly attemptDelayMs: number;
  readonly copies: number;
}

export interface Told {
  readonly event: EventRecord;
  /** Those that the answer to the send has to wait for, by the fault `eventBeforeResponse`. */
  readonly awaited: readonly Delivery[];
}

export type Tell = (happening: Happening) => Told;

export function createTell({ state, journal }: Ground, deliveries: Deliveries, faults: Faults): Tell {
  return (happening) => {
    const { kind, apiClientId, numberId, messageId, sequence, at } = happening;
    const eventId = state.nextId("evt");
    const actions = faults.forEvent({ eventId, eventType: happening.eventType, messageId });
    const { eventType, body, attemptDelayMs, copies } =
      actions.length === 0 ? happening : withFaults(happening, actions);
    const event: EventRecord = {
      eventId,
      kind,
      eventType,
      apiClientId,
      numberId,
      messageId,
      sequence,
      occurredAt: at,
      body: JSON.stringify(body),
    };
    state.events.put(eventId, event);
    // Before anybody is told: a watcher may go on with the message, and its next event comes behind this one.
    const queued = deliveries.queue(event, { at, delayMs: attemptDelayMs, copies });
    journal.tell({ type: "event", event });
    for (const delivery of queued) {
      // Not when a watcher has just put another state in the place of this one.
      if (state.deliveries.get(delivery.deliveryId) === delivery) journal.tell({ type: "delivery", delivery });
    }
    // An attempt that comes late anyway is not waited for: on a clock that stands still it would never come.
    const awaited = attemptDelayMs === 0 && actions.some(({ type }) => type === "eventBeforeResponse") ? queued : [];
    return { event, awaited };
  };
}
