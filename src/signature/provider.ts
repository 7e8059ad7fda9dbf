/** Makes the source of keyrings from a value or from an async provider. */
import { compileKeyring, type Keyring } from "./keyring.ts";
import type { KeyringProvider, KeyringSource, KeyringSourceDeps } from "./keyring-source.ts";
import { logWarnings, ProvidedKeyrings } from "./provided-keyrings.ts";

export {
  type KeyringContext,
  type KeyringProvider,
  type KeyringSource,
  type KeyringSourceDeps,
  keyringContext,
} from "./keyring-source.ts";

/**
 * Makes a source. A value is compiled at once and never changes. The warnings of a keyring are logged here: once for a
 * value, on each change for a provider.
 *
 * @throws SetupError when `secrets` is neither a valid keyring nor a function
 */
export function createKeyringSource(secrets: Keyring | KeyringProvider, deps: KeyringSourceDeps): KeyringSource {
  if (typeof secrets === "function") return new ProvidedKeyrings(secrets, deps);
  const keyring = compileKeyring(secrets, deps.clock.now());
  logWarnings(deps.logger, keyring);
  return {
    read: () => keyring,
    reread: () => Promise.resolve(null),
    version: () => keyring.version,
    close: () => {},
  };
}
