/** The entry `oncehook/sources`: receives any provider's webhooks with the same receiver. */

export { isSameSecret } from "../internal/same-secret.ts";
export { defineSource } from "./define-source.ts";
export type {
  EventBytes,
  OpenEvents,
  Parsed,
  Place,
  SourceDefinition,
  SourceOptions,
  Verdict,
  VerifyCircumstances,
} from "./definition.ts";
export type { EventFilter } from "./filter.ts";
export { type GitHubEvent, type GitHubOptions, github } from "./github.ts";
export type { Kept, RequestHead } from "./headers.ts";
export { type From, type HmacScheme, hmacSource } from "./hmac-source.ts";
export type { Key, Keyring, KeyringProvider, Slot } from "./keys.ts";
export type { ServiceOptions } from "./messaging/options.ts";
export { service } from "./messaging/source.ts";
export { type ShopifyEvent, shopify } from "./shopify.ts";
export { type SlackEvent, slack } from "./slack.ts";
export type { SourceAnswer, SourceEvents, WebhookSource } from "./source.ts";
export {
  type ByTypeField,
  type StandardWebhooksEvent,
  standardWebhooks,
} from "./standard-webhooks.ts";
export { type StripeEvent, stripe } from "./stripe.ts";
export { type TwilioEvent, type TwilioOptions, twilio } from "./twilio.ts";
