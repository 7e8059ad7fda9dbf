/** The names of webhook kinds, in a file without Node.js imports. */

/** A webhook kind, as the service names it: inbound messages, or the lifecycle of outbound ones (DLV-1). */
export type WebhookKind = "inbound" | "delivery";

/** For error messages. */
export const WEBHOOK_KIND_RULE = 'must be "inbound" or "delivery"';

export function isWebhookKind(value: unknown): value is WebhookKind {
  return value === "inbound" || value === "delivery";
}

/** Receivers use the secrets of both kinds as one keyring, so a check of one kind often needs the other. */
export function otherKind(kind: WebhookKind): WebhookKind {
  return kind === "inbound" ? "delivery" : "inbound";
}

/** The kind of an event: the service sends outbound events to the delivery target. Undefined for what is neither. */
export function kindOf({ direction }: { readonly direction?: unknown }): WebhookKind | undefined {
  if (direction === "outbound") return "delivery";
  return direction === "inbound" ? "inbound" : undefined;
}
