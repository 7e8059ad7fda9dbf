/** What successes look like, as zod schemas: loose, so that fields and values that the specification does not show pass. */
import { z } from "zod";
import { ruleOf } from "../events/parse.ts";
import { isRecord } from "../internal/type-guards.ts";
import { type CallFacts, RecipientsRejectedError, ResponseValidationError } from "./errors.ts";
import { recordOf } from "./refusal.ts";
import type { PhoneNumber, SendResult, UpdatedWebhookConfig } from "./types.ts";

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

// What the methods make of a success: the service's own object, and what the client adds to it.

export type Body = Readonly<Record<string, unknown>>;

/** The numbers of a list; what follows needs an array, whatever `validateResponses` says. */
export function numbersOf(body: Body, facts: CallFacts): readonly PhoneNumber[] {
  const { numbers } = body;
  if (!Array.isArray(numbers)) throw new ResponseValidationError(["numbers: expected array"], facts, body);
  return numbers;
}

/** The updated number; null when the service shows none (UPD-11). */
export function updatedNumberOf(body: Body, facts: CallFacts): PhoneNumber | null {
  const { number } = body;
  if (number === null || number === undefined) return null;
  if (!isRecord(number)) throw new ResponseValidationError(["number: expected object"], facts, body);
  return number as unknown as PhoneNumber;
}

/** A generated secret stays readable by its name, and out of logs and JSON. */
export function updatedConfigOf(body: Body): UpdatedWebhookConfig {
  const { generatedSecret: value, ...shown } = body;
  if (value !== undefined) Object.defineProperty(shown, "generatedSecret", { value, enumerable: false });
  return shown as unknown as UpdatedWebhookConfig;
}

/** Rejected recipients are data (CLI-9), until the caller asks for an error. */
export function sendResultOf(body: Body, facts: CallFacts & { readonly idempotencyKey: string }): SendResult {
  const { results, errors } = body;
  if (!Array.isArray(results)) throw new ResponseValidationError(["results: expected array"], facts, body);
  if (!Array.isArray(errors)) throw new ResponseValidationError(["errors: expected array"], facts, body);
  const result: SendResult = {
    ...body,
    results,
    errors,
    idempotencyKey: facts.idempotencyKey,
    allRejected: results.length === 0,
    throwIfRejected() {
      if (errors.length === 0) return result;
      const codes = errors.map((rejected) => String(recordOf(recordOf(rejected).error).code));
      throw new RecipientsRejectedError({ accepted: results.length, rejected: errors.length, codes }, facts);
    },
  };
  // Logged and compared as the data that it is.
  return Object.defineProperty(result, "throwIfRejected", { enumerable: false });
}
