/** Which secrets of a webhook configuration are valid. */
import type { WebhookConfig } from "./records.ts";

/** The previous secret while it is valid: up to, and not at, `previousValidUntil` (WHK-26). */
export function previousSecretAt(config: WebhookConfig, now: number): string | null {
  const { previousSecret, previousValidUntil } = config;
  return previousValidUntil !== null && now < previousValidUntil ? previousSecret : null;
}
