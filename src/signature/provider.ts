/** Makes the source of keyrings from a value, an async provider or a secret store. */
import { compileKeyring, type Keyring } from "./keyring.ts";
import type { KeyringProvider, KeyringSource, KeyringSourceDeps } from "./keyring-source.ts";
import { latestReads } from "./latest-reads.ts";
import { logWarnings, ProvidedKeyrings } from "./provided-keyrings.ts";
import type { SecretStore } from "./secret-store.ts";
import { secretStoreOption } from "./secret-store-option.ts";
import { storedKeyring } from "./stored-keyrings.ts";

export {
  type BackgroundRefresh,
  type KeyringContext,
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  keyringContext,
} from "./keyring-source.ts";

/**
 * Makes a source. A value is compiled at once and never changes. The warnings of a keyring are logged here: once for a
 * value, on each change for the others. A secret store stays open when its source closes: others may use it.
 *
 * @throws SetupError when `secrets` is neither a valid keyring, nor a function, nor a secret store
 */
export function createKeyringSource(
  secrets: Keyring | KeyringProvider | SecretStore,
  deps: KeyringSourceDeps,
): KeyringSource {
  if (typeof secrets === "function") return new ProvidedKeyrings(secrets, deps);
  if (isSecretStore(secrets)) return storedSource(secrets, deps);
  const keyring = compileKeyring(secrets, deps.clock.now());
  logWarnings(deps.logger, keyring);
  return {
    read: () => keyring,
    reread: () => Promise.resolve(null),
    version: () => keyring.version,
    isFailing: false,
    background: null,
    close: () => {},
  };
}

/** A keyring holds no functions. */
function isSecretStore(secrets: Keyring | SecretStore): secrets is SecretStore {
  return typeof secrets === "object" && secrets !== null && "read" in secrets;
}

function storedSource(secrets: SecretStore, deps: KeyringSourceDeps): KeyringSource {
  const { refreshMs: everyMs } = secretStoreOption("secrets", secrets);
  const reads = latestReads(secrets, deps.clock);
  const keyrings = new ProvidedKeyrings(() => storedKeyring(reads, deps.clock.now()), deps, everyMs);
  // A store knows neither routes nor tenants: one keyring serves them all.
  return {
    read: () => keyrings.read({}),
    reread: (_, seen) => keyrings.reread({}, seen),
    version: () => keyrings.version(),
    get isFailing() {
      return keyrings.isFailing;
    },
    background: { everyMs, refresh: () => keyrings.refresh({}) },
    close: () => keyrings.close(),
  };
}
