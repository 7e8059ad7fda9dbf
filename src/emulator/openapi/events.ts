/** The events as the specification's field tables have them, and an example of each, for the document. */
import { z } from "zod";
import type { EventByType, KnownEventType } from "../../events/types.ts";

// The events as the specification's field tables have them, for the document. The receiver's own schemas take more, for it must
// not refuse an event over a field it can do without.

const epochMs = z.int().describe("Epoch milliseconds");

const common = { occurredAt: epochMs, apiClientId: z.string() };

const outbound = {
  ...common,
  direction: z.literal("outbound"),
  messageId: z.string().describe("The same as `data.messageId`"),
  sequence: z
    .int()
    .describe(
      "Orders the events of a message: queued 1, sent 2, delivery 3; there can be gaps. Unspecified: its range",
    ),
};

const error = z.looseObject({
  code: z.string().describe("`PROVIDER_SEND_FAILED` has been seen"),
  message: z.string(),
  details: z.looseObject({}),
});

const STATUSES = "The four events say `QUEUED`, `sent`, `delivered` and `failed`, in this casing";

const outboundData = {
  messageId: z.string(),
  externalReference: z.string().describe("From the send request"),
  sendFrom: z.string().describe("The sending number in E.164; the request's field of this name is its numberId"),
  to: z.string().describe("E.164"),
};

/** `data.status` stays a string: a closed list would refuse what EVT-13 leaves open. */
function status(own: string, more = ""): z.ZodString {
  return z.string().describe(`\`${own}\`. ${STATUSES}${more}`);
}

const unfailed = error.nullable().describe("Null unless the message failed");

export const documentedEvents = {
  "message.queued": z.looseObject({
    eventType: z.literal("message.queued"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status: status("QUEUED"), error: unfailed }),
  }),
  "message.sent": z.looseObject({
    eventType: z.literal("message.sent"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status: status("sent"), error: unfailed }),
  }),
  "message.delivery": z.looseObject({
    eventType: z.literal("message.delivery"),
    ...outbound,
    data: z.looseObject({
      ...outboundData,
      status: status("delivered", ". Unspecified: other values, which are possible on message.delivery"),
      error: unfailed,
      providerMessageRef: z.string(),
    }),
  }),
  "message.failed": z.looseObject({
    eventType: z.literal("message.failed"),
    ...outbound,
    data: z.looseObject({ ...outboundData, status: status("failed"), error }),
  }),
  "message.inbound": z.looseObject({
    eventType: z.literal("message.inbound"),
    direction: z.literal("inbound"),
    ...common,
    data: z.looseObject({
      messageId: z.string(),
      conversationId: z.string(),
      numberId: z.string().describe("The receiving number's"),
      from: z.string(),
      to: z.string(),
      body: z.string(),
      media: z.array(z.unknown().describe("Unspecified: the fields of an item are not shown")),
      timestamp: epochMs,
    }),
  }),
} satisfies Record<KnownEventType, z.ZodType>;

// An example of each event for the document; a test holds them against their schemas.

const outboundExample = {
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
    ...outboundExample,
    sequence: 1,
    occurredAt: 1_767_225_600_000,
    data: { ...data, status: "QUEUED" },
  },
  "message.sent": {
    eventType: "message.sent",
    ...outboundExample,
    sequence: 2,
    occurredAt: 1_767_225_601_000,
    data: { ...data, status: "sent" },
  },
  "message.delivery": {
    eventType: "message.delivery",
    ...outboundExample,
    sequence: 3,
    occurredAt: 1_767_225_605_000,
    data: { ...data, status: "delivered", providerMessageRef: "provider_a8244c_000001" },
  },
  "message.failed": {
    eventType: "message.failed",
    ...outboundExample,
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
