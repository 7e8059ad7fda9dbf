/** The contract suites that a store, a secret store or an adapter of your own passes. They take your test framework's functions. */
export { type AdapterContractOptions, adapterContract } from "./adapter.ts";
export { type InspectorAdapterContractOptions, inspectorAdapterContract } from "./inspector-adapter.ts";
export { type SecretStoreContractOptions, type SecretStoreUnderTest, secretStoreContract } from "./secret-store.ts";
export { type StoreContractOptions, storeContract } from "./store.ts";
export type { ContractExpect } from "./store-bench.ts";
