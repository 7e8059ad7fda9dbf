/** Keeps compiled keyrings between calls of `verifySignature`, so that each call costs little more than its HMAC. */
import { systemClock } from "../internal/clock.ts";
import { stderrLogger } from "../internal/logger.ts";
import { type CompiledKeyring, compileKeyring, type Keyring } from "./keyring.ts";
import { createKeyringSource, type KeyringProvider, type KeyringSource } from "./provider.ts";

/** Far more secrets than one process verifies by text; a program that passes ever new ones must not grow. */
const MAX_TEXTS = 16;

const byObject = new WeakMap<object, CompiledKeyring>();
const byText = new Map<string, CompiledKeyring>();
const byProvider = new WeakMap<KeyringProvider, KeyringSource>();

/** The compiled form: by identity for an object, by value for a text. @throws SetupError */
export function compiledKeyring(secrets: Keyring, now: number): CompiledKeyring {
  const isObject = typeof secrets === "object" && secrets !== null;
  const known = isObject ? byObject.get(secrets) : byText.get(secrets);
  if (known !== undefined) return known;
  const keyring = compileKeyring(secrets, now);
  if (isObject) {
    byObject.set(secrets, keyring);
  } else {
    if (byText.size >= MAX_TEXTS) byText.clear();
    byText.set(secrets, keyring);
  }
  return keyring;
}

/** The one source of a provider function, with the system's clock. */
export function keyringSource(provider: KeyringProvider): KeyringSource {
  let source = byProvider.get(provider);
  if (source === undefined) {
    source = createKeyringSource(provider, { clock: systemClock, logger: stderrLogger });
    byProvider.set(provider, source);
  }
  return source;
}
