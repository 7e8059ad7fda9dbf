/**
 * The events as the specification's field tables have them, for the document. The receiver's own schemas take more, for it must
 * not refuse an event over a field it can do without.
 */
import { z } from "zod";
import type { KnownEventType } from "../../events/types.ts";

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
