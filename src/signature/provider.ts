/** Makes the source of keyrings from a value, an async provider or a secret store. */
import { isBuilding } from "../internal/environment.ts";
import type { Logger } from "../internal/logger.ts";
import { type CompiledKeyring, compileKeyring, type Keyring, withStandIns } from "./keyring.ts";
import {
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  logWarnings,
  ProvidedKeyrings,
} from "./keyring-provider.ts";
import { latestReads } from "./latest-reads.ts";
import { type SecretStore, secretStoreOption } from "./secret-store.ts";
import { kindsWithoutSecret, type StoredKeyring, storedKeyring } from "./stored-keyrings.ts";

export {
  type BackgroundRefresh,
  type KeyringContext,
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  keyringContext,
  LookUpsCrowded,
} from "./keyring-provider.ts";

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
  const { keyring, read } = fixedKeyring(secrets, deps.clock.now());
  logWarnings(deps.logger, keyring);
  return {
    read,
    reread: () => Promise.resolve(null),
    version: () => keyring.version,
    isFailing: false,
    background: null,
    close: () => {},
  };
}

/**
 * Compiles a keyring that was given as a value. In `next build` the secrets that are not set yet are left out of the check, and `read`
 * rejects for them (`SetupError`).
 *
 * @throws SetupError naming the option that is wrong
 */
export function fixedKeyring(secrets: Keyring, now: number): { keyring: CompiledKeyring; read: KeyringSource["read"] } {
  const keyring = compileKeyring(withStandIns("secrets", secrets) as Keyring, now);
  return { keyring, read: isBuilding() ? async () => compileKeyring(secrets, now) : () => keyring };
}

/** A keyring holds no functions. */
export function isSecretStore(secrets: Keyring | SecretStore): secrets is SecretStore {
  return typeof secrets === "object" && secrets !== null && "read" in secrets;
}

function storedSource(secrets: SecretStore, deps: KeyringSourceDeps): KeyringSource {
  const { refreshMs: everyMs } = secretStoreOption("secrets", secrets);
  const reads = latestReads(secrets, deps.clock);
  let isFirst = true;
  const provider = async () => {
    const keyring = await storedKeyring(reads, deps.clock.now());
    if (isFirst) warnOfMissing(keyring, deps.logger);
    isFirst = false;
    return keyring;
  };
  const keyrings = new ProvidedKeyrings(provider, deps, everyMs);
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

/** Right where one kind is received only, and a mistake elsewhere, which the service's 401s tell nobody. */
function warnOfMissing(keyring: StoredKeyring, logger: Logger): void {
  for (const kind of kindsWithoutSecret(keyring)) {
    const message = `No secret for ${kind} webhooks is stored: they are refused. Store it with adoptSecret() of oncehook/rotation, unless none come here.`;
    logger.warn({ code: "keyring_warning", kind }, message);
  }
}
