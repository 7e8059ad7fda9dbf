/** The name of a webhook kind, apart from all code: what only names a kind needs nothing of Node.js. */

/** A webhook kind, as the service names it: inbound messages, or the lifecycle of outbound ones (DLV-1). */
export type WebhookKind = "inbound" | "delivery";
