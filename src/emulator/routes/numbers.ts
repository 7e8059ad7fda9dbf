/** The routes of a client's numbers: listing and updating them. */
import { z } from "zod";
import { blockedTargetWarnings } from "../delivery/blocked-targets.ts";
import { refuse, reply } from "../http/answers.ts";
import { coreRoute } from "../http/route.ts";
import type { PhoneNumber } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import { numberSchema } from "./schemas.ts";
import { targetUrl } from "./target-url.ts";

const listSchema = z.looseObject({ numbers: z.array(numberSchema) });

const updatedSchema = z.looseObject({
  number: numberSchema.nullable().describe("Can be null: read the numbers again"),
});

const updateSchema = z.object({
  /** A lowercase r, unlike in answers (UPD-7). */
  campaignregId: z
    .string()
    .min(1, "must not be empty")
    .nullable()
    .describe("A lowercase r, unlike in answers; null clears it. Unspecified: its form; here at least 1 character")
    .optional(),
  smsEnabled: z.boolean().optional(),
  mmsEnabled: z.boolean().optional(),
  webhookInboundOverride: targetUrl.optional(),
  webhookDeliveryOverride: targetUrl.optional(),
});

type Update = z.output<typeof updateSchema>;

export const listNumbers = coreRoute({
  method: "GET",
  path: "/api/core/numbers",
  operationId: "listNumbers",
  summary: "The numbers assigned to the calling client",
  success: { status: 200, description: "All of them", schema: listSchema },
  errors: [],
  capability: "numbers:read",
  handle({ service: { state, settings }, client }) {
    const own = [...state.numbers.values()].filter(({ apiClientId }) => apiClientId === client.apiClientId);
    return reply(200, { numbers: own.map((number) => written(number, settings.readings)) });
  },
});

export const updateNumber = coreRoute<Update>({
  method: "PATCH",
  path: "/api/core/numbers/{numberId}",
  operationId: "updateNumber",
  summary: "Changes settings of a number, such as its own webhook targets",
  success: { status: 200, description: "The number as it is now", schema: updatedSchema },
  errors: [400, 403, 404],
  capability: "numbers:update",
  body: updateSchema,
  lookalikes: new Map([
    [
      "campaignRegId",
      '"campaignRegId" IS NOT A FIELD OF THIS REQUEST and changed nothing: answers write it with a capital R, requests take "campaignregId" (UPD-7)',
    ],
  ]),
  // The body was checked before; the order of the others is UPD-14's.
  handle({ service: { state, settings }, client, params, body, warn }) {
    const number = state.numbers.get(params.numberId ?? "");
    if (number === undefined) return refuse("NOT_FOUND", "There is no such number.");
    if (number.apiClientId !== client.apiClientId) return refuse("FORBIDDEN", "The number is another client's.");
    if (number.status !== "ACTIVE") return refuse("INVALID_REQUEST", "The number is not active.");
    const next = updated(number, body);
    state.numbers.put(number.numberId, next);
    const { webhookInboundOverride, webhookDeliveryOverride } = body;
    const targets = { webhookInboundOverride, webhookDeliveryOverride };
    for (const warning of blockedTargetWarnings(settings, targets)) warn(warning);
    return reply(200, { number: settings.readings.updateReturnsNull ? null : written(next, settings.readings) });
  },
});

/** Absent stays as it was, null clears (UPD-8, UPD-10). */
function updated(number: PhoneNumber, update: Update): PhoneNumber {
  return {
    ...number,
    campaignRegId: kept(update.campaignregId, number.campaignRegId),
    smsEnabled: update.smsEnabled ?? number.smsEnabled,
    mmsEnabled: update.mmsEnabled ?? number.mmsEnabled,
    webhookInboundOverride: kept(update.webhookInboundOverride, number.webhookInboundOverride),
    webhookDeliveryOverride: kept(update.webhookDeliveryOverride, number.webhookDeliveryOverride),
  };
}

function kept(given: string | null | undefined, present: string | null): string | null {
  return given === undefined ? present : given;
}

/** As an answer shows it; `absentNullables` says what becomes of null (NUM-6). */
function written({ apiClientId: _, ...shown }: PhoneNumber, { absentNullables }: Readings): object {
  if (absentNullables === "null") return shown;
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== null));
}
