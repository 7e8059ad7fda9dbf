/** The wire shape of the known events, as zod schemas: loose, so that fields the specification does not show are kept. */
import { z } from "zod";
import type { KnownEventType } from "./types.ts";

/** The highest sequence taken: one event with a huge sequence would make all later events of its message late. */
export const MAX_SEQUENCE = 10_000;

const messageErrorSchema = z.looseObject({
  code: z.string(),
  message: z.string(),
  details: z.looseObject({}),
});

const outboundData = {
  messageId: z.string(),
  externalReference: z.string(),
  sendFrom: z.string(),
  to: z.string(),
  status: z.string(),
  error: messageErrorSchema.nullable(),
};

const inboundData = {
  messageId: z.string(),
  conversationId: z.string(),
  numberId: z.string(),
  from: z.string(),
  to: z.string(),
  body: z.string(),
  media: z.array(z.unknown()),
  timestamp: z.int(),
};

const commonFields = { occurredAt: z.int(), apiClientId: z.string() };

const outboundFields = {
  ...commonFields,
  direction: z.literal("outbound"),
  messageId: z.string(),
  sequence: z.int().min(0).max(MAX_SEQUENCE),
};

/** A schema for each known event type. `z.int()` takes safe integers only. */
export const eventSchemas = {
  "message.queued": z.looseObject({
    eventType: z.literal("message.queued"),
    ...outboundFields,
    data: z.looseObject(outboundData),
  }),
  "message.sent": z.looseObject({
    eventType: z.literal("message.sent"),
    ...outboundFields,
    data: z.looseObject(outboundData),
  }),
  "message.delivery": z.looseObject({
    eventType: z.literal("message.delivery"),
    ...outboundFields,
    data: z.looseObject({ ...outboundData, providerMessageRef: z.string().nullish() }),
  }),
  "message.failed": z.looseObject({
    eventType: z.literal("message.failed"),
    ...outboundFields,
    data: z.looseObject({ ...outboundData, error: messageErrorSchema }),
  }),
  "message.inbound": z.looseObject({
    eventType: z.literal("message.inbound"),
    direction: z.literal("inbound"),
    ...commonFields,
    data: z.looseObject(inboundData),
  }),
} satisfies Record<KnownEventType, z.ZodType>;
