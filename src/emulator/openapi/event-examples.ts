/** An example of each event for the document; a test holds them against their schemas. */
import type { EventByType } from "../../events/types.ts";

const outbound = {
  direction: "outbound",
  apiClientId: "ac_main",
  messageId: "msg_a8244c_000001",
} as const;

const data = {
  messageId: "msg_a8244c_000001",
  externalReference: "order-1",
  sendFrom: "+12065550101",
  to: "+14155550123",
  error: null,
};

export const eventExamples: EventByType = {
  "message.queued": {
    eventType: "message.queued",
    ...outbound,
    sequence: 1,
    occurredAt: 1_767_225_600_000,
    data: { ...data, status: "QUEUED" },
  },
  "message.sent": {
    eventType: "message.sent",
    ...outbound,
    sequence: 2,
    occurredAt: 1_767_225_601_000,
    data: { ...data, status: "sent" },
  },
  "message.delivery": {
    eventType: "message.delivery",
    ...outbound,
    sequence: 3,
    occurredAt: 1_767_225_605_000,
    data: { ...data, status: "delivered", providerMessageRef: "provider_a8244c_000001" },
  },
  "message.failed": {
    eventType: "message.failed",
    ...outbound,
    sequence: 4,
    occurredAt: 1_767_225_605_000,
    data: {
      ...data,
      status: "failed",
      error: { code: "PROVIDER_SEND_FAILED", message: "The provider did not take the message.", details: {} },
    },
  },
  "message.inbound": {
    eventType: "message.inbound",
    direction: "inbound",
    apiClientId: "ac_main",
    occurredAt: 1_767_225_600_000,
    data: {
      messageId: "msg_a8244c_000003",
      conversationId: "conv_000001",
      numberId: "num_000001",
      from: "+14155550123",
      to: "+12065550101",
      body: "hello",
      media: [],
      timestamp: 1_767_225_600_000,
    },
  },
};
