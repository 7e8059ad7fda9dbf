/** Where an event goes and which secrets sign it there (DLV-1 to DLV-4, DLV-9, DLV-15, DLV-16). */
import type { Ground } from "../service.ts";
import { type EventRecord, type PhoneNumber, type Target, type WebhookConfig, webhookId } from "../state/records.ts";
import { previousSecretAt } from "../state/webhook-secrets.ts";
import type { Readings } from "../unspecified.ts";

/** The number's own target if it has one, else the kind's default if that is enabled, else null (DLV-2, DLV-3). */
export function targetOf(
  { state, settings }: Pick<Ground, "state" | "settings">,
  { kind, numberId, apiClientId }: Pick<EventRecord, "kind" | "numberId" | "apiClientId">,
  now: number,
): Target | null {
  const { readings } = settings;
  const config = state.webhooks.get(webhookId(apiClientId, kind));
  const override = overrideOf(state.numbers.get(numberId), kind);
  if (override !== null) {
    return { url: override, secrets: readings.overrideSigning === "inherit" ? secretsOf(config, now, readings) : null };
  }
  if (config === undefined || !config.enabled || config.endpointUrl === null) return null;
  return { url: config.endpointUrl, secrets: secretsOf(config, now, readings) };
}

function overrideOf(number: PhoneNumber | undefined, kind: EventRecord["kind"]): string | null {
  return (kind === "inbound" ? number?.webhookInboundOverride : number?.webhookDeliveryOverride) ?? null;
}

/** Null when nothing is signed, which without a secret nothing can be. Two secrets only while both are valid. */
function secretsOf(
  config: WebhookConfig | undefined,
  now: number,
  { overlapSigning }: Readings,
): readonly string[] | null {
  if (config === undefined || !config.signingEnabled || config.currentSecret === null) return null;
  const current = config.currentSecret;
  const previous = previousSecretAt(config, now);
  if (previous === null) return [current];
  switch (overlapSigning) {
    case "current":
      return [current];
    case "previous":
      return [previous];
    case "both":
    case "alternate":
      return [current, previous];
    default:
      return overlapSigning satisfies never;
  }
}
