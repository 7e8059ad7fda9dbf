/** The entry `oncehook/sources`: receives any provider's webhooks with the same receiver. */

export { isSameSecret } from "../internal/same-secret.ts";
export {
  type Description,
  defineSource,
  type EventFilter,
  type Kept,
  type OpenEvents,
  type Parsed,
  type RequestHead,
  type SourceDefinition,
  type SourceOptions,
  type Verdict,
  type VerifyCircumstances,
} from "./define-source.ts";
export { type GitHubEvent, type GitHubOptions, github } from "./github.ts";
export { type HmacScheme, hmacSource, type Place } from "./hmac-source.ts";
export type { Key, ReplacedSecret, SourceKeyring, SourceKeyringProvider, SourceSlot } from "./keys.ts";
export type { ServiceOptions } from "./messaging/options.ts";
export { service } from "./messaging/source.ts";
export { type ShopifyEvent, shopify } from "./shopify.ts";
export { type SlackEvent, slack } from "./slack.ts";
export type { SourceAnswer, SourceEvents, WebhookSource } from "./source.ts";
export {
  type ByTypeField,
  type StandardWebhooksEvent,
  type StandardWebhooksOptions,
  standardWebhooks,
} from "./standard-webhooks.ts";
export { type StripeEvent, stripe } from "./stripe.ts";
export { type TwilioEvent, type TwilioOptions, twilio } from "./twilio.ts";
