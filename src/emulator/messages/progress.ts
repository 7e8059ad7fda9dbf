/** What a step makes of its message, and the event that tells it. */
import type { Ground } from "../service.ts";
import type { Message, Step } from "../state/records.ts";
import { type EventError, outboundBody } from "./event-body.ts";
import type { Happening } from "./tell.ts";

/** A step of the outbound message itself, not its recipient's answer. */
export interface OutboundStep extends Step {
  readonly sequence: number;
}

export const isOutbound = (step: Step): step is OutboundStep => step.sequence !== null;

const SEND_FAILED: EventError = { code: "PROVIDER_SEND_FAILED", message: "The provider did not take the message." };
/** What the first of two message.delivery events with one sequence says (EVT-12, EVT-13). */
const FIRST_OF_TWO_STATUS = "buffered";

/** The message once `step`, the first of its steps, was played. */
export function progressed({ state }: Ground, message: Message, step: OutboundStep): Message {
  const next = { ...message, sequence: step.sequence, steps: message.steps.slice(1) };
  switch (step.eventType) {
    case "message.queued":
      return { ...next, status: "QUEUED" };
    case "message.sent":
      return { ...next, status: "sent" };
    case "message.delivery":
      return {
        ...next,
        status: isFirstOfTwo(next) ? next.status : "delivered",
        // Both of two events name the same one.
        providerMessageRef: next.providerMessageRef ?? state.nextId("provider"),
      };
    case "message.failed":
      return { ...next, status: "failed" };
    case "message.inbound":
      return next;
    default:
      return step.eventType satisfies never;
  }
}

/** The event of a step, told by the message as it is after that. */
export function happeningOf(
  { settings }: Ground,
  message: Message,
  { step, at, error = SEND_FAILED }: { step: OutboundStep; at: number; error?: EventError | undefined },
): Happening {
  const { eventType, sequence, attemptDelayMs, copies } = step;
  const { apiClientId, numberId, messageId } = message;
  const delivery = isFirstOfTwo(message) ? FIRST_OF_TWO_STATUS : settings.readings.deliveryStatus;
  const body = outboundBody(message, {
    eventType,
    sequence,
    status: eventType === "message.delivery" ? delivery : message.status,
    occurredAt: at,
    error: eventType === "message.failed" ? error : null,
  });
  return { kind: "delivery", eventType, apiClientId, numberId, messageId, sequence, at, body, attemptDelayMs, copies };
}

/** Whether the message.delivery that was just played is followed by another one with its sequence. */
function isFirstOfTwo({ steps, sequence }: Message): boolean {
  return steps[0]?.eventType === "message.delivery" && steps[0].sequence === sequence;
}
