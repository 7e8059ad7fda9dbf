/** What the examples keep and print of an event: where it belongs, and a line of JSON. */
import { type HandlerContext, isKnownEvent, type WebhookEvent } from "oncehook";

/** A message, and the event's place in it. */
export interface Place {
  readonly messageId: string | null;
  readonly sequence: number;
}

/** An inbound message has no sequence: 0. An event of an unknown type has whatever the service put in it. */
export function placeOf(event: WebhookEvent): Place {
  if (!isKnownEvent(event)) {
    const { messageId, sequence } = event;
    return {
      messageId: typeof messageId === "string" ? messageId : null,
      sequence: Number.isSafeInteger(sequence) ? Number(sequence) : 0,
    };
  }
  if (event.direction === "outbound") return { messageId: event.messageId, sequence: event.sequence };
  return { messageId: event.data.messageId, sequence: 0 };
}

/** A handler that prints. Ids and types only: numbers and texts of people do not belong in a log. */
export function printEvent<Tx>(event: WebhookEvent, ctx: HandlerContext<Tx>): void {
  const { messageId, sequence } = placeOf(event);
  const line = { handled: ctx.identity, messageId, sequence, eventType: event.eventType, attempt: ctx.attempt };
  const late = ctx.outOfOrder && !ctx.replay ? { late: true } : {};
  const replay = ctx.replay ? { replay: true } : {};
  const missing = ctx.missing === null ? {} : { missing: ctx.missing };
  console.log(JSON.stringify({ ...line, ...late, ...replay, ...missing }));
}
