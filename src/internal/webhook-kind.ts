/** The name of a webhook kind, apart from all other code: what only names a kind needs nothing of Node.js. */

/** A webhook kind, as the service names it: inbound messages, or the lifecycle of outbound ones (DLV-1). */
export type WebhookKind = "inbound" | "delivery";

/** For messages. */
export const WEBHOOK_KIND_RULE = 'must be "inbound" or "delivery"';

export function isWebhookKind(value: unknown): value is WebhookKind {
  return value === "inbound" || value === "delivery";
}

/** Receivers use the secrets of both kinds as one keyring, so what concerns a kind often needs a look at the other. */
export function otherKind(kind: WebhookKind): WebhookKind {
  return kind === "inbound" ? "delivery" : "inbound";
}
