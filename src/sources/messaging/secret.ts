/** One secret: its shape, its text as bytes of the HMAC key, and the comparison of two secrets. */
import { Buffer } from "node:buffer";
import { SetupError } from "../../errors.ts";
import { booleanOption, choiceOption, invalidOption, refuseUnknownOptions, wrongType } from "../../internal/options.ts";

/** How the text of a secret becomes key bytes; the service uses the UTF-8 bytes of the text (DLV-14). */
export type SecretEncoding = "utf8" | "base64" | "hex";

/** The direction of an event, spelled as the service writes it. */
export type Direction = "inbound" | "outbound";

/** A secret with its encoding (default `"utf8"`) and what it may vouch for (default: everything). */
export interface ScopedSecret {
  secret: string;
  encoding?: SecretEncoding;
  /** Vouches only for events of this API client. */
  apiClientId?: string;
  /** Vouches only for events of this direction. */
  direction?: Direction;
  /**
   * Accepts a secret of fewer than 16 bytes, for a service that generates such secrets. Short secrets can be guessed from one captured
   * delivery, and a rotation refuses them. Default false.
   */
  dangerouslyShort?: boolean;
}

/** A secret: text of at least 16 bytes, or that text with its encoding and scope. */
export type Secret = string | ScopedSecret;

/** A secret that was replaced. It is accepted while now < `validUntil` (epoch ms), which may be at most 8 days ahead. */
export interface PreviousSecret extends ScopedSecret {
  validUntil: number;
}

/** The literal that replaces a kind's keyring when that kind is delivered unsigned. */
export const UNSIGNED = "dangerouslyUnsigned";

/** The least length of a secret after its text is decoded. */
export const MIN_SECRET_BYTES = 16;
const KNOWN = ["secret", "encoding", "apiClientId", "direction", "dangerouslyShort"];

/** A secret after validation. */
export interface CheckedSecret {
  readonly bytes: Buffer;
  readonly apiClientId: string | undefined;
  readonly direction: Direction | undefined;
  /** True for a text that starts or ends with white space: nearly always the line break of the file it was read from. */
  readonly padded: boolean;
  /** True for fewer than 16 bytes, accepted because of `dangerouslyShort`. */
  readonly short: boolean;
}

/**
 * Validates a secret of a keyring: not empty, not blank, at least 16 bytes once decoded.
 *
 * @param option the option's name, for messages; the secret itself is never shown
 * @throws SetupError
 */
export function checkSecret(option: string, value: unknown, extra: readonly string[] = []): CheckedSecret {
  if (typeof value === "string") return checked(option, value, {});
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidSecret(
      option,
      "must be a secret: a text of at least 16 bytes, or { secret, encoding?, apiClientId?, direction?, dangerouslyShort? }",
      value,
    );
  }
  refuseUnknownOptions(option, value, [...KNOWN, ...extra]);
  const scoped: { readonly secret?: unknown } & Scope = value;
  if (typeof scoped.secret !== "string") throw invalidSecret(`${option}.secret`, "must be a text", scoped.secret);
  return checked(`${option}.secret`, scoped.secret, { ...scoped, option });
}

/** Validates a secret of a secret store, whose texts share one encoding. @throws SetupError that never shows the secret */
export function checkSecretText(option: string, value: unknown, encoding: SecretEncoding): string {
  if (typeof value !== "string") throw invalidSecret(option, "must be a text of at least 16 bytes", value);
  checked(option, value, { encoding });
  return value;
}

/** The fields of a secret before they are checked. */
interface Scope {
  readonly encoding?: unknown;
  readonly apiClientId?: unknown;
  readonly direction?: unknown;
  readonly dangerouslyShort?: unknown;
}

function checked(option: string, text: string, scope: Scope & { readonly option?: string }): CheckedSecret {
  if (text === UNSIGNED) {
    throw new SetupError(
      "invalid_secret",
      `Option "${option}" is "${UNSIGNED}". Unsigned webhooks are accepted per kind only: { inbound: ..., delivery: ... } with that word as the whole keyring of one kind.`,
      { fields: { option } },
    );
  }
  if (text === "") throw invalidSecret(option, "is an empty text: look whether its environment variable is set");
  if (text.trim() === "") throw invalidSecret(option, "holds nothing but white space");
  const prefix = scope.option ?? option;
  const bytes = secretBytes(option, text, secretEncodingOption(`${prefix}.encoding`, scope.encoding));
  const isShortTaken = booleanOption(`${prefix}.dangerouslyShort`, scope.dangerouslyShort, false);
  if (bytes.length < MIN_SECRET_BYTES && !isShortTaken) {
    throw invalidSecret(option, `is ${bytes.length} bytes long; a secret has at least ${MIN_SECRET_BYTES}`);
  }
  const { apiClientId, direction } = scope;
  if (apiClientId !== undefined && (typeof apiClientId !== "string" || apiClientId === "")) {
    throw invalidOption(`${prefix}.apiClientId`, "must be a text that is not empty", apiClientId);
  }
  if (direction !== undefined && direction !== "inbound" && direction !== "outbound") {
    throw invalidOption(`${prefix}.direction`, 'must be "inbound" or "outbound"', direction);
  }
  return { bytes, apiClientId, direction, padded: text !== text.trim(), short: bytes.length < MIN_SECRET_BYTES };
}

/** Checks an `encoding` option. @throws SetupError */
export function secretEncodingOption(name: string, value: unknown): SecretEncoding {
  return choiceOption<SecretEncoding>(name, value, "utf8", ["utf8", "base64", "hex"]);
}

/** Decodes a secret's text to key bytes. Base64 and hex are read strictly: a typing error must not silently shorten a key. */
export function secretBytes(option: string, text: string, encoding: SecretEncoding): Buffer {
  const bytes = Buffer.from(text, encoding);
  if (encoding === "hex" && bytes.toString("hex") !== text.toLowerCase()) {
    throw invalidSecret(option, "is not valid hex");
  }
  if (encoding === "base64" && bytes.toString("base64").replace(/=+$/, "") !== text.replace(/=+$/, "")) {
    throw invalidSecret(option, "is not valid base64");
  }
  return bytes;
}

/** Why a text cannot be a secret, such as `is 11 bytes long; …`; null when it can. */
export function secretTextIssue(text: string): string | null {
  try {
    checked("secret", text, {});
    return null;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return error.message.slice('Option "secret" '.length, -".".length);
  }
}

function invalidSecret(option: string, rule: string, ...value: readonly unknown[]): SetupError {
  if (value.length > 0) return wrongType(option, rule, value[0], "invalid_secret");
  return new SetupError("invalid_secret", `Option "${option}" ${rule}.`, { fields: { option } });
}
