/** The routes of a client's default webhook configuration: reading both kinds, and updating each. */
import { z } from "zod";
import { secretTextIssue } from "../../../sources/secret.ts";
import { seededHex } from "../clock.ts";
import { blockedTargetWarnings } from "../delivery/egress.ts";
import { type EmulatorAnswer, refuse, reply } from "../http/answers.ts";
import { type CoreRoute, coreRoute, type RouteCall } from "../http/route.ts";
import { isHttpUrl } from "../options.ts";
import type { Service } from "../service.ts";
import { type Kind, previousSecretAt, type WebhookRecord, webhookId } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";

// A webhook's target as requests give it.

/** An http or https URL, or null for none (WHK-25, UPD-15). */
export const targetUrl = z
  .string()
  .refine(isHttpUrl, "must be an http or https URL")
  .meta({ format: "uri" })
  .nullable()
  .describe("An http or https URL; null clears it. Unspecified: which schemes are allowed");

// What an update makes of a client's default webhook configuration, and until when its previous secret is valid.

/** The body of an update. */
export interface WebhookFields {
  /** Absent: stays as it was; null: none (WHK-9). */
  readonly endpointUrl?: string | null | undefined;
  /** Absent: stays as it was (WHK-10). */
  readonly enabled?: boolean | undefined;
  readonly signingEnabled: boolean;
  /** The caller's own signing secret (WHK-11). */
  readonly secret?: string | undefined;
}

/** What an update depends on besides configuration and body. */
interface UpdateTerms {
  /** Epoch ms on the emulator's clock. */
  readonly now: number;
  readonly readings: Pick<Readings, "secretGeneration" | "overlapMs" | "rejectRotationDuringOverlap">;
  /** A secret that was never used; asked for at most once, and only when the update takes it. */
  generate(): string;
}

type UpdateOutcome =
  | { readonly outcome: "updated"; readonly config: WebhookRecord; readonly generatedSecret: string | null }
  /** Nothing changed: the previous secret is still valid, until then (WHK-21). */
  | { readonly outcome: "rotation_refused"; readonly previousValidUntil: number };

/** The configuration after an update. */
export function updateWebhookConfig(config: WebhookRecord, update: WebhookFields, terms: UpdateTerms): UpdateOutcome {
  const { now, readings } = terms;
  const generates = generatesSecret(config, update, readings.secretGeneration);
  const rotates = config.currentSecret !== null && (generates || isOther(update.secret, config.currentSecret));
  if (rotates && readings.rejectRotationDuringOverlap && previousSecretAt(config, now) !== null) {
    return { outcome: "rotation_refused", previousValidUntil: config.previousValidUntil ?? now };
  }
  const generatedSecret = generates ? terms.generate() : null;
  return {
    outcome: "updated",
    generatedSecret,
    config: {
      ...config,
      endpointUrl: update.endpointUrl === undefined ? config.endpointUrl : update.endpointUrl,
      enabled: update.enabled ?? config.enabled,
      // Turning signing off keeps the secrets (WHK-23).
      signingEnabled: update.signingEnabled,
      currentSecret: generatedSecret ?? update.secret ?? config.currentSecret,
      ...(rotates ? rotated(config, now, readings.overlapMs) : {}),
    },
  };
}

/** Whether the service makes up a secret; with signing off it never does (WHK-18, WHK-23). */
function generatesSecret(
  config: WebhookRecord,
  { signingEnabled, secret }: WebhookFields,
  when: Readings["secretGeneration"],
): boolean {
  if (!signingEnabled) return false;
  switch (when) {
    case "whenMissing":
      return secret === undefined && config.currentSecret === null;
    case "everyPatch":
      return secret === undefined;
    case "always":
      return true;
    case "never":
      return false;
    default:
      return when satisfies never;
  }
}

/** Sending the same secret again is not a rotation (WHK-20). */
function isOther(secret: string | undefined, currentSecret: string): boolean {
  return secret !== undefined && secret !== currentSecret;
}

/** One slot: a previous secret that is still valid makes room (WHK-21). A first secret replaces none, so it is not a rotation. */
function rotated(config: WebhookRecord, now: number, overlapMs: number): Partial<WebhookRecord> {
  return { previousSecret: config.currentSecret, previousValidUntil: now + overlapMs, rotatedAt: now };
}

// What is said of a webhook secret that the service takes and no receiver of this package does.

/** The specification has no rule for a secret's length (WHK-24), so it is taken. Null for one that receivers take too. */
export function secretWarning(secret: string): string | null {
  const issue = secretTextIssue(secret);
  if (issue === null) return null;
  return `The webhook secret ${issue}. The service takes it, as its specification has no such rule, but oncehook's receivers refuse it.`;
}

// The routes of a client's default webhook configuration: reading both kinds, and updating each.

const timestamp = z.int().describe("Epoch ms. Unspecified: whether it is absent, null or 0 without a value").nullish();

const configSchema = z.looseObject({
  eventClass: z.string().describe("Unspecified: the values; here INBOUND or DELIVERY"),
  scope: z.string().describe("API_CLIENT_DEFAULT"),
  enabled: z.boolean(),
  signingEnabled: z.boolean(),
  hasCurrentSecret: z.boolean(),
  hasPreviousSecret: z.boolean(),
  previousSecretValidUntil: timestamp,
  rotatedAt: timestamp,
  endpointUrl: z.string().describe("Unspecified: whether it is shown at all").nullish(),
});

const bothSchema = z.looseObject({
  defaults: z.looseObject({ inbound: configSchema, delivery: configSchema }),
  overridesSummary: z.looseObject({ inboundOverrideCount: z.int(), deliveryOverrideCount: z.int() }),
});

const updatedSchema = configSchema.extend({
  generatedSecret: z
    .string()
    .describe("Shown here and never again. Unspecified: when one is generated; here when signing has none")
    .optional(),
});

const updateSchema = z.object({
  endpointUrl: targetUrl.optional(),
  enabled: z.boolean().optional(),
  signingEnabled: z.boolean(),
  secret: z
    .string()
    .min(1, "must not be empty")
    .describe("The caller's own signing secret. Unspecified: its length; here at least 1")
    .optional(),
});

type Update = z.output<typeof updateSchema>;

/** Whether the routes are there at all (WHK-27). */
const exists = (readings: Readings): boolean => readings["webhooks.routes"] === "enabled";

export const getWebhooks = coreRoute({
  method: "GET",
  path: "/api/core/webhooks",
  operationId: "getWebhooks",
  summary: "The calling client's default webhook configuration, and how many of its numbers have their own",
  success: { status: 200, description: "Both kinds", schema: bothSchema },
  errors: [404],
  exists,
  handle({ service, client: { apiClientId }, now }) {
    const numbers = [...service.state.numbers.values()].filter((number) => number.apiClientId === apiClientId);
    const shown = (kind: Kind) => written(configOf(service, apiClientId, kind), now, service.settings.readings);
    return reply(200, {
      defaults: { inbound: shown("inbound"), delivery: shown("delivery") },
      overridesSummary: {
        inboundOverrideCount: numbers.filter((number) => number.webhookInboundOverride !== null).length,
        deliveryOverrideCount: numbers.filter((number) => number.webhookDeliveryOverride !== null).length,
      },
    });
  },
});

export const updateInboundWebhook = updateRoute("inbound", "updateInboundWebhook");
export const updateDeliveryWebhook = updateRoute("delivery", "updateDeliveryWebhook");

function updateRoute(kind: Kind, operationId: string): CoreRoute {
  return coreRoute<Update>({
    method: "PATCH",
    path: `/api/core/webhooks/${kind}`,
    operationId,
    summary: `Changes the calling client's default ${kind} webhook`,
    success: { status: 200, description: "The configuration as it is now", schema: updatedSchema },
    errors: [400, 404],
    exists,
    body: updateSchema,
    handle: (call) => update(kind, call),
  });
}

function update(kind: Kind, { service, client: { apiClientId }, now, body, warn }: RouteCall<Update>): EmulatorAnswer {
  const { settings, state } = service;
  const { readings } = settings;
  const result = updateWebhookConfig(configOf(service, apiClientId, kind), body, {
    now,
    readings,
    generate: () => seededHex(settings.seed, `generated secret ${state.nextNumber("secret")}`, 32),
  });
  if (result.outcome === "rotation_refused") {
    return refuse("INVALID_REQUEST", "The previous secret is still valid: rotate again when its window has passed.", {
      previousSecretValidUntil: result.previousValidUntil,
    });
  }
  state.webhooks.put(webhookId(apiClientId, kind), result.config);
  const shortness = body.secret === undefined ? null : secretWarning(body.secret);
  if (shortness !== null) {
    warn(shortness);
    settings.logger.warn({ kind, apiClientId }, shortness);
  }
  for (const warning of blockedTargetWarnings(settings, { endpointUrl: body.endpointUrl })) warn(warning);
  const config = written(result.config, now, readings);
  // A supplied secret is never shown, a generated one only here (WHK-13, WHK-22).
  return reply(200, result.generatedSecret === null ? config : { ...config, generatedSecret: result.generatedSecret });
}

function configOf({ state }: Service, apiClientId: string, kind: Kind): WebhookRecord {
  const config = state.webhooks.get(webhookId(apiClientId, kind));
  if (config === undefined) throw new Error(`the state holds no ${kind} webhook of client ${apiClientId}`);
  return config;
}

/** As an answer shows it: without its secrets (WHK-5). */
function written(config: WebhookRecord, now: number, readings: Readings): object {
  const hasPreviousSecret = previousSecretAt(config, now) !== null;
  return {
    eventClass: config.kind === "inbound" ? "INBOUND" : "DELIVERY",
    scope: "API_CLIENT_DEFAULT",
    enabled: config.enabled,
    signingEnabled: config.signingEnabled,
    hasCurrentSecret: config.currentSecret !== null,
    hasPreviousSecret,
    ...writtenTimestamp("previousSecretValidUntil", hasPreviousSecret ? config.previousValidUntil : null, readings),
    ...writtenTimestamp("rotatedAt", config.rotatedAt, readings),
    ...(readings["webhooks.exposeEndpointUrl"] ? { endpointUrl: config.endpointUrl } : {}),
  };
}

/** WHK-16. */
function writtenTimestamp(name: string, value: number | null, { absentTimestamps }: Readings): object {
  if (value !== null) return { [name]: value };
  switch (absentTimestamps) {
    case "omit":
      return {};
    case "null":
      return { [name]: null };
    case "zero":
      return { [name]: 0 };
    default:
      return absentTimestamps satisfies never;
  }
}
