/** What several routes say and take, as the specification writes it; answers are loose, so that a client made from them takes more. */
import { z } from "zod";

/** GET and PATCH write `campaignRegId` with a capital R; requests do not (UPD-7). */
export const numberSchema = z.looseObject({
  numberId: z.string().describe("What a send takes as `sendFrom`"),
  e164: z.string().describe("The phone number in E.164"),
  status: z.string().describe("ACTIVE is the usable value. Unspecified: others"),
  campaignRegId: z.string().nullable().describe("A capital R, unlike in requests").optional(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: z.string().nullable().describe("URL; the number's own target of inbound events").optional(),
  webhookDeliveryOverride: z.string().nullable().describe("URL; the number's own target of outbound events").optional(),
});

export const coreErrorSchema = z.looseObject({
  error: z.looseObject({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
  requestId: z.string(),
});

export const oauthErrorSchema = z.looseObject({
  error: z.enum(["invalid_request", "invalid_client", "unsupported_grant_type", "server_error"]),
  error_description: z.string(),
});
