/** What an update makes of a client's default webhook configuration, and until when its previous secret is valid. */
import type { WebhookConfig } from "../state/records.ts";
import { previousSecretAt } from "../state/webhook-secrets.ts";
import type { Readings } from "../unspecified.ts";

/** The body of an update. */
export interface WebhookUpdate {
  /** Absent: stays as it was; null: none (WHK-9). */
  readonly endpointUrl?: string | null | undefined;
  /** Absent: stays as it was (WHK-10). */
  readonly enabled?: boolean | undefined;
  readonly signingEnabled: boolean;
  /** The caller's own signing secret (WHK-11). */
  readonly secret?: string | undefined;
}

/** What an update depends on besides configuration and body. */
export interface UpdateTerms {
  /** Epoch ms on the emulator's clock. */
  readonly now: number;
  readonly readings: Pick<Readings, "secretGeneration" | "overlapMs" | "rejectRotationDuringOverlap">;
  /** A secret that was never used; asked for at most once, and only when the update takes it. */
  generate(): string;
}

export type UpdateOutcome =
  | { readonly outcome: "updated"; readonly config: WebhookConfig; readonly generatedSecret: string | null }
  /** Nothing changed: the previous secret is still valid, until then (WHK-21). */
  | { readonly outcome: "rotation_refused"; readonly previousValidUntil: number };

/** The configuration after an update. */
export function updateWebhookConfig(config: WebhookConfig, update: WebhookUpdate, terms: UpdateTerms): UpdateOutcome {
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
  config: WebhookConfig,
  { signingEnabled, secret }: WebhookUpdate,
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

/** The same secret sent again is no rotation (WHK-20). */
function isOther(secret: string | undefined, currentSecret: string): boolean {
  return secret !== undefined && secret !== currentSecret;
}

/** One slot: a previous secret that is still valid makes room (WHK-21). A first secret replaces none, so it is no rotation. */
function rotated(config: WebhookConfig, now: number, overlapMs: number): Partial<WebhookConfig> {
  return { previousSecret: config.currentSecret, previousValidUntil: now + overlapMs, rotatedAt: now };
}
