/** Shopify's webhooks. */
import { type OpenEvents, type SourceDefinition, type SourceOptions, sourceOf, type Verdict } from "./define-source.ts";
import { MALFORMED, parseObject, signatureBytes, signedBy, textOf } from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** A payload, whose fields depend on its topic. */
export interface ShopifyEvent {
  readonly id?: number | string;
  readonly admin_graphql_api_id?: string;
  /** ISO 8601. */
  readonly updated_at?: string;
  readonly [field: string]: unknown;
}

const SIGNATURE = "x-shopify-hmac-sha256";
const TOPIC = "x-shopify-topic";
const WEBHOOK_ID = "x-shopify-webhook-id";

const definition: SourceDefinition<ShopifyEvent> = {
  preset: "shopify",
  maxBodyBytes: 1024 * 1024,
  answerMs: 5_000,
  // Eight times within four hours.
  lastRetryMs: 2 * 86_400_000,
  keep: [
    TOPIC,
    WEBHOOK_ID,
    "x-shopify-event-id",
    "x-shopify-shop-domain",
    "x-shopify-api-version",
    "x-shopify-triggered-at",
  ],
  shows: ["id", "admin_graphql_api_id", "created_at", "updated_at"],
  signedBy: [[SIGNATURE]],
  verify(head, body, keys): Verdict {
    const signature = signatureBytes(head.header(SIGNATURE) ?? "", "base64", 32);
    if (signature === null) return MALFORMED;
    return signedBy(keys, signature, "sha256", [body], null);
  },
  parse: parseObject,
  identify: (_event, _kept, digest) => digest(),
  describe(event, kept) {
    const type = kept.header(TOPIC) ?? "unknown";
    return { type, reference: kept.header(WEBHOOK_ID), occurredAt: updatedAt(event) ?? undefined };
  },
  // Shopify's own, and the same for no two shops.
  lane: ({ admin_graphql_api_id: id }) => textOf(id) ?? null,
  position: updatedAt,
  positionIs: "time",
};

/** Epoch milliseconds. */
function updatedAt({ updated_at: text }: ShopifyEvent): number | null {
  const time = typeof text === "string" ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

/**
 * Receives Shopify's webhooks. Only the body is signed, with the app's client secret. So the body is the identity; topic, shop and webhook id
 * come in headers that no signature covers. Two topics with equal bodies need a URL and an entry each. Events of one object
 * (`admin_graphql_api_id`) share a lane and are handled in the order of `updated_at`; an older one that comes later goes to `onLate`, which
 * you must register.
 *
 * @typeParam ByTopic - the payload of each topic, such as `{ "orders/create": Order }`
 * @throws SetupError for a wrong option or secret
 * @example
 * const receiver = createReceiver({ source: shopify<{ "orders/create": Order }>({ secrets: clientSecret }), store });
 * receiver.on("orders/create", (order, ctx) => ship(order, ctx.header("x-shopify-shop-domain")));
 */
export function shopify<ByTopic extends object = Readonly<Record<string, ShopifyEvent>>>(
  options: SourceOptions<ByTopic[keyof ByTopic] & object>,
): WebhookSource<OpenEvents<ByTopic[keyof ByTopic] & object, ByTopic, ByTopic[keyof ByTopic] & object>> {
  // The application's type describes what the definition reads.
  return sourceOf(definition, options as unknown as SourceOptions<ShopifyEvent>);
}
