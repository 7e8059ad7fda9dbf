/** For tests of an application's handlers: events, signed requests, deliveries, a fake clock, secrets in memory. */
export {
  type Delivered,
  type DeliveredState,
  type DeliverOptions,
  deliver,
  incomingOf,
  type SignedRequest,
  type SignedRequestOptions,
  type SourceRequestOptions,
  signedRequest,
  TEST_SECRET,
  tampered,
} from "./deliver.ts";
export { createFakeClock, type FakeClock } from "./fake-clock.ts";
export {
  type FixtureOptions,
  fixtures,
  type InboundFixtureOptions,
  type UnknownFixtureOptions,
} from "./fixtures.ts";
export { type MemorySecretsOptions, memorySecrets } from "./memory-secrets.ts";
export {
  deliverWithRetries,
  duplicated,
  lifecycle,
  RETRY_MINUTES,
  type RetriedAttempt,
  type RetryOptions,
  seededRandom,
  shuffled,
} from "./scenarios.ts";
export { type SignedSource, type SourceFixtureOptions, TEST_SECRETS } from "./source-requests.ts";
