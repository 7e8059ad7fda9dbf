/** What successes look like, as zod schemas: loose, so that fields and values that the specification does not show pass. */
import { z } from "zod";
import { ruleOf } from "../events/parse.ts";

/** So many problems of an answer are told. */
const MOST_ISSUES = 20;

/**
 * A list whose items are looked at one by one, until there are enough problems: zod's own tells a problem of each item first, and an
 * answer that may be read holds millions of items.
 */
function listOf<Item extends z.ZodType>(item: Item) {
  return z.custom<z.infer<Item>[]>().check(({ value, issues }) => {
    if (!Array.isArray(value)) {
      issues.push({ code: "invalid_type", expected: "array", input: value });
      return;
    }
    for (let index = 0; index < value.length && issues.length < MOST_ISSUES; index++) {
      const { error } = item.safeParse(value[index]);
      for (const issue of error?.issues ?? [])
        issues.push({ ...issue, path: [index, ...issue.path], input: undefined });
    }
  });
}

/** Absent, null or 0 without a value (WHK-16). */
const timestamp = z.int().nullish();

const webhookConfig = z.looseObject({
  eventClass: z.string(),
  scope: z.string(),
  enabled: z.boolean(),
  signingEnabled: z.boolean(),
  hasCurrentSecret: z.boolean(),
  hasPreviousSecret: z.boolean(),
  previousSecretValidUntil: timestamp,
  rotatedAt: timestamp,
  // In no table of the specification (WHK-14).
  endpointUrl: z.string().nullish(),
});

const phoneNumber = z.looseObject({
  numberId: z.string(),
  e164: z.string(),
  status: z.string(),
  // A capital R, unlike in requests (NUM-3).
  campaignRegId: z.string().nullish(),
  smsEnabled: z.boolean(),
  mmsEnabled: z.boolean(),
  webhookInboundOverride: z.string().nullish(),
  webhookDeliveryOverride: z.string().nullish(),
});

const availableNumber = z.looseObject({
  e164: z.string(),
  nationalDisplay: z.string().nullish(),
  city: z.string().nullish(),
  state: z.string().nullish(),
  rateCenter: z.string().nullish(),
});

const rejectedRecipient = z.looseObject({
  // What was sent, whatever it is (SND-8).
  to: z.string(),
  error: z.looseObject({ code: z.string(), message: z.string(), details: z.looseObject({}) }),
});

/** The body of each operation's success. */
export const RESPONSES = {
  whoami: z.looseObject({
    apiClientId: z.string(),
    apiClientName: z.string(),
    apiClientStatus: z.string(),
    capabilities: listOf(z.string()),
    assignedNumbers: z.looseObject({ total: z.int(), smsEnabledCount: z.int(), mmsEnabledCount: z.int() }),
    inboundWebhookConfigured: z.boolean(),
    deliveryWebhookConfigured: z.boolean(),
  }),
  "webhooks.get": z.looseObject({
    defaults: z.looseObject({ inbound: webhookConfig, delivery: webhookConfig }),
    overridesSummary: z.looseObject({ inboundOverrideCount: z.int(), deliveryOverrideCount: z.int() }),
  }),
  "webhooks.update": webhookConfig.extend({ generatedSecret: z.string().nullish() }),
  "numbers.list": z.looseObject({ numbers: listOf(phoneNumber) }),
  "numbers.search": z.looseObject({
    groups: listOf(
      z.looseObject({
        rateCenter: z.string(),
        // Not necessarily the length of the list (SEA-14).
        count: z.int(),
        numbers: listOf(availableNumber),
      }),
    ),
    providerResultCount: z.int().nullish(),
    requestedQuantity: z.int(),
  }),
  "numbers.update": z.looseObject({ number: phoneNumber.nullable() }),
  "messages.send": z.looseObject({
    results: listOf(z.looseObject({ to: z.string(), messageId: z.string(), status: z.string() })),
    errors: listOf(rejectedRecipient),
  }),
} as const satisfies Record<string, z.ZodType>;

/** An operation that has a body of its own. */
export type Operation = keyof typeof RESPONSES;

/** Where a body differs from its schema: `results.0.messageId: expected string`. Names are the schema's, so no value is among them. */
export function issuesOf(schema: z.ZodType, body: unknown): string[] {
  const result = schema.safeParse(body);
  if (result.success) return [];
  return result.error.issues
    .slice(0, MOST_ISSUES)
    .map((issue) => `${issue.path.join(".") || "body"}: ${ruleOf(issue)}`);
}
