/** Customers' messages to our numbers. */
import { seededHex } from "../random.ts";
import type { Ground, InboundInput } from "../service.ts";
import type { InboundMessage, Message } from "../state/records.ts";
import { inboundBody } from "./event-body.ts";
import type { Tell } from "./tell.ts";

/** Takes a customer's message up at a moment and tells its number's owner. */
export type Receive = (input: InboundInput, at: number) => InboundMessage;

const ANSWER_TEXT = "Thank you, we received your message.";

export function createReceive({ state, settings }: Ground, tell: Tell): Receive {
  return ({ number, from, body, media }, at) => {
    const { apiClientId, numberId, e164: to } = number;
    const messageId = state.nextId("msg");
    // Of the two numbers alone, so that it outlives the messages that are kept.
    const conversationId = `conv_${seededHex(settings.seed, `conversation: ${to} ${from}`, 6)}`;
    const message: InboundMessage = {
      messageId,
      direction: "inbound",
      apiClientId,
      numberId,
      conversationId,
      from,
      to,
      text: body,
      media,
      createdAt: at,
    };
    state.inboundMessages.put(messageId, message);
    tell({
      kind: "inbound",
      eventType: "message.inbound",
      apiClientId,
      numberId,
      messageId,
      sequence: null,
      at,
      body: inboundBody(message),
      attemptDelayMs: 0,
      copies: 1,
    });
    return message;
  };
}

/** What the recipient of a message answers, to the number it came from; undefined when that number is gone. */
export function answerTo(message: Message, { state }: Pick<Ground, "state">): InboundInput | undefined {
  const number = state.numbers.get(message.numberId);
  return number === undefined ? undefined : { number, from: message.to, body: ANSWER_TEXT, media: [] };
}
