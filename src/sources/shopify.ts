/** Shopify's webhooks. */
import { sourceOf } from "./define-source.ts";
import type { OpenEvents, SourceDefinition, SourceOptions, Verdict } from "./definition.ts";
import { isoTime, MALFORMED, parseObject, signatureBytes, signedBy, textOf } from "./signatures.ts";
import type { WebhookSource } from "./source.ts";

/** A payload, whose fields depend on its topic. */
export interface ShopifyEvent {
  readonly id?: number | string;
  readonly admin_graphql_api_id?: string;
  /** ISO 8601. */
  readonly updated_at?: string;
  readonly [field: string]: unknown;
}

/** What the headers of a delivery begin with: those of webhooks, and those of the newer events. */
const FAMILIES = ["x-shopify-", "shopify-"] as const;
const SIGNATURE = "hmac-sha256";

const definition: SourceDefinition<ShopifyEvent> = {
  preset: "shopify",
  maxBodyBytes: 1024 * 1024,
  answerMs: 5_000,
  // Eight times within four hours.
  lastRetryMs: 2 * 86_400_000,
  keep: [
    ...FAMILIES.flatMap((family) =>
      ["topic", "webhook-id", "event-id", "shop-domain", "api-version", "triggered-at"].map((name) => family + name),
    ),
    ...["shopify-action", "shopify-handle", "shopify-resource-id"],
  ],
  shows: ["id", "admin_graphql_api_id", "created_at", "updated_at"],
  signedBy: FAMILIES.map((family) => [family + SIGNATURE]),
  verify(head, body, keys): Verdict {
    let refused: Verdict = MALFORMED;
    for (const family of FAMILIES) {
      const signature = signatureBytes(head.header(family + SIGNATURE) ?? "", "base64", 32);
      if (signature === null) continue;
      // The headers that are read afterwards are those of the family that was verified.
      const verdict = signedBy(keys, signature, "sha256", [body], null, family);
      if (verdict.ok) return verdict;
      refused = verdict;
    }
    return refused;
  },
  parse: parseObject,
  place(event, { digest }, kept) {
    const family = kept.header(":proven") ?? "";
    const [topic = "unknown", action] = [kept.header(`${family}topic`), kept.header(`${family}action`)];
    const updatedAt = isoTime(event.updated_at);
    return {
      type: action === undefined ? topic : `${topic}/${action}`,
      id: digest(),
      // Shopify's own, and the same for no two shops. The resource of the newer events stands in a header that no signature covers.
      lane: textOf(event.admin_graphql_api_id),
      at: updatedAt,
      reference: kept.header(`${family}webhook-id`),
      occurredAt: updatedAt,
    };
  },
  order: "position",
  atIs: "time",
};

/**
 * Receives Shopify's webhooks and events. Only the body is signed, with the app's client secret. So the body is the identity; topic, shop and
 * webhook id come in headers that no signature covers. Two topics with equal bodies need a URL and an entry each. The type is the topic; of an
 * event, whose headers begin with `shopify-`, the topic and the action: `Product/update`. Webhooks about one object (`admin_graphql_api_id`) share a
 * lane and are handled in the order of `updated_at`; an older one that comes later is late (`ctx.late`, `onLate()`).
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
