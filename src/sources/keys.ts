/** The secrets of a source besides the messaging service: what an application gives, and the keys that signatures are tried against. */
import { Buffer } from "node:buffer";
import { createHash, createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { SetupError } from "../errors.ts";
import { invalidOption, isRecord, refuseUnknownOptions, wrongType } from "../internal/options.ts";
import { isBuilding, isUnsetInBuild } from "../internal/process.ts";
import { HmacKey } from "./hmac-key.ts";
import {
  type CompiledKeys,
  holdsText,
  type KeyringContext,
  type KeyringSource,
  type KeyringSourceDeps,
  logWarnings,
  ProvidedKeyrings,
} from "./keyring-provider.ts";

/** A secret that was replaced. It is accepted while now < `validUntil` (epoch ms), which may be at most 8 days ahead. */
export interface ReplacedSecret {
  readonly secret: string;
  readonly validUntil: number;
}

/** A secret, or the one in use with those around a change: the one it replaced, and one that is installed before its use. */
export type SourceKeyring =
  | string
  | {
      readonly current: string | readonly string[];
      readonly previous?: ReplacedSecret | readonly ReplacedSecret[];
      readonly next?: string | readonly string[];
    };

/**
 * Reads the secrets of a tenant; undefined for a tenant that it does not know. It has 2 seconds, and must not keep secrets itself: a
 * delivery is refused only by secrets that were read after it came.
 */
export type SourceKeyringProvider = (
  context: KeyringContext,
) => Promise<SourceKeyring | undefined> | SourceKeyring | undefined;

/** The place in the keyring of the secret that signed a delivery. */
export type SourceSlot = "current" | "previous" | "next";

/** A secret. Its bytes cannot be read. */
export interface Key {
  readonly slot: SourceSlot;
  /** The HMAC of the parts, one after the other. Strings are UTF-8. */
  hmac(hash: "sha256" | "sha1", ...parts: readonly (string | Uint8Array)[]): Uint8Array;
  /** Whether it is one of these signatures, compared in constant time. */
  signed(
    signatures: Uint8Array | readonly Uint8Array[],
    hash: "sha256" | "sha1",
    ...parts: readonly (string | Uint8Array)[]
  ): boolean;
  /**
   * Whether it is an Ed25519 signature of the parts, one after the other, by a provider whose public key the secret is. The source's `key`
   * returns the 32 bytes of that key; false for any other number of bytes.
   */
  signedEd25519(signature: Uint8Array, ...parts: readonly (string | Uint8Array)[]): boolean;
}

/** How the text of a secret becomes the bytes of a key: the UTF-8 bytes unless the source says otherwise. Throws for what is not a key. */
export type KeyDecoder = (text: string) => Uint8Array;

export interface SourceKeys extends CompiledKeys {
  readonly keys: readonly SourceKey[];
}

const MOST_KEYS = 8;
const ED25519_BYTES = 32;
const LONGEST_PREVIOUS_MS = 8 * 86_400_000;
const FIRST_PLAUSIBLE_MS = 1e12;
const SLOTS = ["current", "previous", "next"] as const;

export class SourceKey implements Key {
  readonly slot: SourceSlot;
  /** Epoch milliseconds; `Infinity` for all but previous secrets. */
  readonly validUntil: number;
  /** Names the secret, and reveals no more of it than a captured delivery does. */
  readonly signer: string;
  readonly #bytes: Uint8Array;
  readonly #hmac: HmacKey;
  #publicKey: KeyObject | undefined;

  constructor(slot: SourceSlot, bytes: Uint8Array, validUntil: number) {
    this.slot = slot;
    this.validUntil = validUntil;
    this.#bytes = bytes;
    this.#hmac = new HmacKey(bytes);
    this.signer = this.#hmac.digest("oncehook signer", new Uint8Array()).toString("hex").slice(0, 16);
  }

  hmac(hash: "sha256" | "sha1", ...parts: readonly (string | Uint8Array)[]): Uint8Array {
    const text = textBeforeLast(parts);
    const last = parts.at(-1);
    if (hash === "sha256" && text !== null && last instanceof Uint8Array) return this.#hmac.digest(text, last);
    const hmac = createHmac(hash, this.#bytes);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  }

  signed(
    signatures: Uint8Array | readonly Uint8Array[],
    hash: "sha256" | "sha1",
    ...parts: readonly (string | Uint8Array)[]
  ): boolean {
    const expected = this.hmac(hash, ...parts);
    const all = signatures instanceof Uint8Array ? [signatures] : signatures;
    return all.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  }

  signedEd25519(signature: Uint8Array, ...parts: readonly (string | Uint8Array)[]): boolean {
    if (this.#bytes.length !== ED25519_BYTES) return false;
    this.#publicKey ??= ed25519Key(this.#bytes);
    const message = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
    return verify(null, Buffer.concat(message), this.#publicKey, signature);
  }
}

function ed25519Key(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes).toString("base64url");
  return createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
}

/** All parts but the last as one text; null if bytes are among them. */
function textBeforeLast(parts: readonly (string | Uint8Array)[]): string | null {
  let text = "";
  for (let index = 0; index < parts.length - 1; index++) {
    const part = parts[index];
    if (typeof part !== "string") return null;
    text += part;
  }
  return text;
}

/**
 * Validates and compiles the secrets of a source.
 *
 * @throws SetupError naming the option that is wrong; it never shows the secret
 */
function compileSourceKeys(secrets: SourceKeyring, decode: KeyDecoder, now: number): SourceKeys {
  const keys: SourceKey[] = [];
  const warnings: string[] = [];
  const add = (slot: SourceSlot, option: string, value: unknown) => {
    const replaced = slot === "previous" ? replacedSecret(option, value, now) : null;
    const text = replaced === null ? value : replaced.secret;
    const bytes = keyOf(replaced === null ? option : `${option}.secret`, text, decode);
    if (typeof text === "string" && text !== text.trim())
      warnings.push(`Option "${option}" starts or ends with white space, which is part of the secret.`);
    const validUntil = replaced?.validUntil ?? Number.POSITIVE_INFINITY;
    if (validUntil > now) keys.push(new SourceKey(slot, bytes, validUntil));
    else warnings.push(`Option "${option}" has ended and is ignored; remove it.`);
  };
  if (isRecord(secrets)) {
    refuseUnknownOptions("secrets", secrets, SLOTS);
    for (const slot of SLOTS) {
      const value: unknown = secrets[slot];
      if (Array.isArray(value)) for (const [index, one] of value.entries()) add(slot, `secrets.${slot}[${index}]`, one);
      else if (value !== undefined || slot === "current") add(slot, `secrets.${slot}`, value);
    }
  } else {
    if (Array.isArray(secrets)) throw invalidSecret("secrets", "is a list: several secrets go into { current: [...] }");
    add("current", "secrets", secrets);
  }
  if (!keys.some(({ slot }) => slot !== "previous"))
    throw invalidSecret("secrets.current", "is empty: without a secret nothing can be verified");
  if (keys.length > MOST_KEYS)
    throw invalidOption("secrets", `may hold at most ${MOST_KEYS} secrets, because each is tried in turn`, keys.length);
  return { keys, warnings, version: versionOf(keys) };
}

const EMPTY: SourceKeys = { keys: [], warnings: [], version: "none" };

/** Where the keys of a source come from: a value, which is compiled at once, or a function. @throws SetupError */
export function sourceKeyrings(
  secrets: SourceKeyring | SourceKeyringProvider,
  decode: KeyDecoder,
  deps: KeyringSourceDeps,
): KeyringSource<SourceKeys> {
  const compile = (given: SourceKeyring) => compileSourceKeys(given, decode, deps.clock.now());
  if (typeof secrets === "function") {
    return new ProvidedKeyrings<SourceKeyring, SourceKeys>(secrets, { compile, empty: EMPTY }, deps);
  }
  // In a build secrets may be absent: the first delivery reports them.
  const isAbsent = isBuilding() && isUnsetInBuild(isRecord(secrets) ? secrets.current : secrets);
  const keys = isAbsent ? EMPTY : compile(secrets);
  logWarnings(deps.logger, keys);
  return {
    read: isAbsent ? async () => compile(secrets) : () => keys,
    reread: () => null,
    version: () => keys.version,
    isFailing: false,
    background: null,
    holds: (text) => holdsText(secrets, text),
    close: () => {},
  };
}

function keyOf(option: string, text: unknown, decode: KeyDecoder): Uint8Array {
  if (typeof text !== "string")
    throw wrongType(option, "must be a secret, as the provider shows it", text, "invalid_secret");
  if (text.trim() === "") throw invalidSecret(option, "is empty: look whether its environment variable is set");
  let bytes: Uint8Array;
  try {
    bytes = decode(text);
  } catch (error) {
    // The decoder's own sentence, which says what a key looks like.
    throw invalidSecret(option, error instanceof SetupError ? error.message : "is not a key of this source");
  }
  if (bytes.length === 0) throw invalidSecret(option, "holds no bytes");
  return bytes;
}

function replacedSecret(option: string, value: unknown, now: number): ReplacedSecret {
  if (!isRecord(value) || typeof value.validUntil !== "number") {
    const rule = "needs { secret, validUntil }: a replaced secret without an end would keep working after it leaked";
    throw invalidSecret(option, rule);
  }
  const { validUntil } = value;
  if (!Number.isFinite(validUntil) || validUntil < FIRST_PLAUSIBLE_MS)
    throw invalidOption(`${option}.validUntil`, "must be a time in epoch milliseconds (not seconds)", validUntil);
  if (validUntil - now > LONGEST_PREVIOUS_MS)
    throw invalidOption(`${option}.validUntil`, "may lie at most 8 days ahead", validUntil);
  return { secret: value.secret as string, validUntil };
}

function invalidSecret(option: string, rule: string): SetupError {
  return new SetupError("invalid_secret", `Option "${option}" ${rule}.`, { fields: { option } });
}

function versionOf(keys: readonly SourceKey[]): string {
  const lines = keys.map((key) =>
    Buffer.from(key.hmac("sha256", JSON.stringify(["oncehook keyring", key.slot, key.validUntil]))).toString("hex"),
  );
  return createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 16);
}
