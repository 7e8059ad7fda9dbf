/** For tests: of an application's handlers, of a store, of an adapter. */
export { type AdapterContractOptions, adapterContract } from "./adapter-contract.ts";
export { type Delivered, type DeliveredState, type DeliverOptions, deliver } from "./deliver.ts";
export { createFakeClock, type FakeClock } from "./fake-clock.ts";
export {
  type FixtureOptions,
  fixtures,
  type InboundFixtureOptions,
  type UnknownFixtureOptions,
} from "./fixtures.ts";
export { type InspectorAdapterContractOptions, inspectorAdapterContract } from "./inspector-adapter-contract.ts";
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
export {
  type SecretStoreContractOptions,
  type SecretStoreUnderTest,
  secretStoreContract,
} from "./secret-store-contract.ts";
export {
  incomingOf,
  type SignedRequest,
  type SignedRequestOptions,
  signedRequest,
  TEST_SECRET,
  tampered,
} from "./signed-request.ts";
export { type ContractExpect, type StoreContractOptions, storeContract } from "./store-contract.ts";
