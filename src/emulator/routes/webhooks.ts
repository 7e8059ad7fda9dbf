/** The routes of a client's default webhook configuration: reading both kinds, and updating each. */
import { z } from "zod";
import { blockedTargetWarnings } from "../delivery/blocked-targets.ts";
import { type Answer, refuse, reply } from "../http/answers.ts";
import { type Call, type CoreRoute, coreRoute } from "../http/route.ts";
import { seededHex } from "../random.ts";
import type { Service } from "../service.ts";
import { type Kind, type WebhookConfig, webhookId } from "../state/records.ts";
import { previousSecretAt } from "../state/webhook-secrets.ts";
import type { Readings } from "../unspecified.ts";
import { secretWarning } from "./secret-warning.ts";
import { targetUrl } from "./target-url.ts";
import { updateWebhookConfig } from "./webhook-config.ts";

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

function update(kind: Kind, { service, client: { apiClientId }, now, body, warn }: Call<Update>): Answer {
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

function configOf({ state }: Service, apiClientId: string, kind: Kind): WebhookConfig {
  const config = state.webhooks.get(webhookId(apiClientId, kind));
  if (config === undefined) throw new Error(`the state holds no ${kind} webhook of client ${apiClientId}`);
  return config;
}

/** As an answer shows it: without its secrets (WHK-5). */
function written(config: WebhookConfig, now: number, readings: Readings): object {
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
