/** One secret: its shape, its text as the bytes of a key, and what may be wrong with it. */
import { Buffer } from "node:buffer";
import { SetupError } from "../errors.ts";
import { booleanOption, choiceOption, invalidOption, refuseUnknownOptions, wrongType } from "../internal/options.ts";

/** How the text of a secret becomes key bytes. */
export type SecretEncoding = "utf8" | "base64" | "hex";

/** A secret with its encoding and what it may vouch for. */
export interface ScopedSecret {
  secret: string;
  /** Default: as the provider writes its secrets. The messaging service uses the UTF-8 bytes of the text (DLV-14). */
  encoding?: SecretEncoding;
  /**
   * Whose events it signs: their tenant, which is part of each event's identity. An event that names another one is refused. The messaging
   * service's tenant is the `apiClientId`. Null: one secret for all tenants, as a Shopify app has it. Default: null; but a function that was
   * asked for the secrets of a tenant must say it.
   */
  tenant?: string | null;
  /** Which kind of events it signs, where a source has kinds: `inbound` or `delivery` of the messaging service. Default: all. */
  kind?: string;
  /**
   * Accepts a secret of fewer than 16 bytes where the source refuses them, for a service that generates such secrets. Short secrets can be
   * guessed from one captured delivery, and a rotation refuses them. Default false.
   */
  dangerouslyShort?: boolean;
}

/** A secret as the provider shows it, or that text with its encoding and scope. */
export type Secret = string | ScopedSecret;

/** A secret that was replaced. It is accepted while now < `validUntil` (epoch ms), which may be at most 8 days ahead. */
export interface PreviousSecret extends ScopedSecret {
  validUntil: number;
}

/** The literal that replaces a kind's keyring when that kind is delivered unsigned. */
export const UNSIGNED = "dangerouslyUnsigned";

/** A secret of fewer bytes can be guessed. */
const MIN_SECRET_BYTES = 16;

/** What a source says about its secrets. */
export interface SecretRules {
  /** Names of the kinds of events that may have secrets of their own. */
  readonly kinds: readonly string[];
  /** After the text is decoded. Fewer are refused; fewer than 16 get a warning. */
  readonly leastBytes: number;
  /** Whether a kind may be `"dangerouslyUnsigned"`. */
  readonly mayBeUnsigned: boolean;
  /** Throws for what is not a key. */
  decode(text: string): Uint8Array;
}

/** The rules of the messaging service, and of secrets that oncehook itself signs with. */
export const STRICT_RULES: SecretRules = {
  kinds: ["inbound", "delivery"],
  leastBytes: MIN_SECRET_BYTES,
  mayBeUnsigned: true,
  decode: (text) => Buffer.from(text),
};

const FIELDS = ["secret", "encoding", "tenant", "kind", "dangerouslyShort"];

/** A secret after validation. */
export interface CheckedSecret {
  readonly bytes: Uint8Array;
  /** Undefined: it does not say. */
  readonly tenant: string | null | undefined;
  readonly kind: string | undefined;
  /** What is allowed but probably a mistake. */
  readonly warnings: readonly string[];
}

/**
 * Validates a secret of a keyring.
 *
 * @param option - its name, for messages. The secret itself is never shown
 * @param more - other fields that it may have here
 * @throws SetupError
 */
export function checkSecret(
  option: string,
  value: unknown,
  rules: SecretRules = STRICT_RULES,
  more: readonly string[] = [],
): CheckedSecret {
  if (typeof value === "string") return checked(option, option, { secret: value }, rules);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const size = rules.leastBytes > 1 ? ` of at least ${rules.leastBytes} bytes` : "";
    const rule = `must be a secret: a text${size}, or { secret, encoding?, tenant?, kind?, dangerouslyShort? }`;
    throw invalidSecret(option, rule, value);
  }
  refuseUnknownOptions(option, value, [...FIELDS, ...more]);
  return checked(option, `${option}.secret`, value, rules);
}

/** Validates a secret of a secret store, whose texts share one encoding. @throws SetupError that never shows the secret */
export function checkSecretText(option: string, value: unknown, encoding: SecretEncoding): string {
  if (typeof value !== "string") throw invalidSecret(option, "must be a text of at least 16 bytes", value);
  checked(option, option, { secret: value, encoding }, STRICT_RULES);
  return value;
}

function checked(
  option: string,
  textOption: string,
  given: Readonly<Partial<Record<keyof ScopedSecret, unknown>>>,
  rules: SecretRules,
): CheckedSecret {
  const { secret: text, encoding, tenant, kind } = given;
  if (typeof text !== "string") throw invalidSecret(textOption, "must be a text", text);
  if (text === UNSIGNED) throw unsignedAlone(textOption, rules.kinds);
  if (text === "") throw invalidSecret(textOption, "is an empty text: look whether its environment variable is set");
  if (text.trim() === "") throw invalidSecret(textOption, "holds nothing but white space");
  const bytes =
    encoding === undefined
      ? decoded(textOption, text, rules)
      : secretBytes(textOption, text, secretEncodingOption(`${option}.encoding`, encoding));
  const isShortTaken = booleanOption(`${option}.dangerouslyShort`, given.dangerouslyShort, false);
  if (bytes.length === 0) throw invalidSecret(textOption, "holds no bytes");
  if (bytes.length < rules.leastBytes && !isShortTaken)
    throw invalidSecret(textOption, `is ${bytes.length} bytes long; a secret has at least ${rules.leastBytes}`);
  if (tenant !== undefined && tenant !== null && (typeof tenant !== "string" || tenant === ""))
    throw invalidOption(`${option}.tenant`, "must be a text that is not empty, or null", tenant);
  if (kind !== undefined && !rules.kinds.includes(kind as string))
    throw unknownKind(`${option}.kind`, kind, rules.kinds);
  const warnings = [
    ...(text === text.trim()
      ? []
      : [`Option "${textOption}" starts or ends with white space, which is part of the secret.`]),
    ...(bytes.length < MIN_SECRET_BYTES
      ? [`Option "${textOption}" has fewer than ${MIN_SECRET_BYTES} bytes and can be guessed.`]
      : []),
  ];
  return { bytes, tenant: tenant as string | null | undefined, kind: kind as string | undefined, warnings };
}

/** Nearly always a keyring that was meant for one kind. */
function unsignedAlone(option: string, kinds: readonly string[]): SetupError {
  const shape =
    kinds.length === 0
      ? ""
      : `: { ${kinds.map((kind) => `${kind}: ...`).join(", ")} } with that word as the whole keyring of one kind`;
  const where =
    kinds.length === 0
      ? "This source has no unsigned webhooks"
      : `Unsigned webhooks are accepted per kind only${shape}`;
  return new SetupError("invalid_secret", `Option "${option}" is "${UNSIGNED}". ${where}.`, { fields: { option } });
}

function unknownKind(option: string, kind: unknown, kinds: readonly string[]): SetupError {
  if (kinds.length === 0) return invalidOption(option, "has no meaning here: this source has one kind of events", kind);
  return invalidOption(option, `must be ${kinds.map((each) => `"${each}"`).join(" or ")}`, kind);
}

/** Checks an `encoding` option. @throws SetupError */
export function secretEncodingOption(name: string, value: unknown): SecretEncoding {
  return choiceOption<SecretEncoding>(name, value, "utf8", ["utf8", "base64", "hex"]);
}

function decoded(option: string, text: string, { decode }: SecretRules): Uint8Array {
  try {
    return decode(text);
  } catch (error) {
    // The source's own sentence, which says what a key looks like.
    throw invalidSecret(option, error instanceof SetupError ? error.message : "is not a key of this source");
  }
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
    checkSecret("secret", text);
    return null;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    return error.message.slice('Option "secret" '.length, -".".length);
  }
}

/** @param value - only its type is shown. Without it, the rule alone */
export function invalidSecret(option: string, rule: string, ...value: readonly unknown[]): SetupError {
  if (value.length > 0) return wrongType(option, rule, value[0], "invalid_secret");
  return new SetupError("invalid_secret", `Option "${option}" ${rule}.`, { fields: { option } });
}
