/** Makes the source of keyrings from a value, an async provider or a secret store. */
import { SetupError } from "../errors.ts";
import { numberOption } from "../internal/options.ts";
import { compileKeyring, type Keyring } from "./keyring.ts";
import type { KeyringProvider, KeyringSource, KeyringSourceDeps } from "./keyring-source.ts";
import { logWarnings, ProvidedKeyrings } from "./provided-keyrings.ts";
import type { SecretStore } from "./secret-store.ts";
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
    background: null,
    close: () => {},
  };
}

/** A keyring holds no functions. */
function isSecretStore(secrets: Keyring | SecretStore): secrets is SecretStore {
  return typeof secrets === "object" && secrets !== null && "read" in secrets;
}

function storedSource(secrets: SecretStore, deps: KeyringSourceDeps): KeyringSource {
  for (const method of ["read", "write", "receivers", "close"] as const) {
    if (typeof secrets[method] === "function") continue;
    const message = `Option "secrets" is no secret store: it has no method ${method}(). sqliteSecrets() of oncehook/sqlite makes one.`;
    throw new SetupError("invalid_option", message, { fields: { option: "secrets" } });
  }
  const everyMs = numberOption("secrets.refreshMs", secrets.refreshMs ?? null, 0, {
    min: 100,
    max: 30_000,
    unit: "ms",
  });
  const keyrings = new ProvidedKeyrings(() => storedKeyring(secrets, deps.clock.now()), deps, everyMs);
  // A store knows neither routes nor tenants: one keyring serves them all.
  return {
    read: () => keyrings.read({}),
    reread: (_, seen) => keyrings.reread({}, seen),
    version: () => keyrings.version(),
    background: { everyMs, refresh: () => keyrings.refresh({}) },
    close: () => keyrings.close(),
  };
}
