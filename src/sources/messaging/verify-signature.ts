/** verifySignature(): the low-level entry, usable without a receiver or a store. */
import { isUint8Array } from "node:util/types";
import { SetupError } from "../../errors.ts";
import { systemClock } from "../../internal/clock.ts";
import { stderrLogger } from "../../internal/logger.ts";
import { invalidOption, refuseUnknownOptions } from "../../internal/options.ts";
import { checkAge } from "../define-source.ts";
import { Head, type HeaderSource } from "../headers.ts";
import { type KeyringSource, keyringContext, ProvidedKeyrings } from "../keyring-provider.ts";
import {
  type Claims,
  compileKeys,
  covering,
  type Keyring,
  type KeyringProvider,
  type Slot,
  type SourceKeys,
} from "../keys.ts";
import { STRICT_RULES } from "../secret.ts";
import {
  DEFAULT_TOLERANCE,
  type HeaderPolicy,
  readSigned,
  type SignatureEncoding,
  type SignedHeaders,
  signatureEncodingOption,
  type TimestampFormat,
  type Tolerance,
  timestampFormatOption,
  toleranceOption,
  type VerifyFailure,
} from "./verify.ts";
import { kindOf } from "./webhook-kind.ts";

/** Options of `verifySignature`. */
export interface VerifyOptions<Secrets = Keyring> {
  /** `request.headers` of fetch or of node. */
  headers: HeaderSource;
  /** The bytes exactly as received, before any parser; a string means its UTF-8 bytes. */
  body: Uint8Array | string;
  /** A keyring, or a function that reads one. It is compiled once and cached by identity: treat the value as immutable. */
  secrets: Secrets;
  /** 1 ms to 30 days; one number for both ways or each way by itself. Default 5 minutes both ways; `0` is an error, never "off". */
  toleranceMs?: number | Partial<Tolerance>;
  /** Default `"auto"`. */
  timestampFormat?: TimestampFormat;
  /** Default `"auto"`. */
  encoding?: SignatureEncoding;
  /** Epoch milliseconds. Default: the system's time. */
  now?: number;
  /** Given to `secrets` when that is a function. */
  tenant?: string;
  /** Given to `secrets` when that is a function. */
  route?: string;
}

/** The verdict. `code` is for logs; answer the sender only 401. */
export type VerifyResult =
  | {
      readonly ok: true;
      /** Epoch milliseconds. */
      readonly timestamp: number;
      /** Which secret matched, in words that may be logged: its slot, its position there, and the kind that it is limited to, if it is. */
      readonly matched: { readonly slot: Slot; readonly index: number; readonly kind: string | null };
    }
  | VerifyFailure;

const OPTIONS = ["headers", "body", "secrets", "toleranceMs", "timestampFormat", "encoding", "now", "tenant", "route"];

/**
 * Verifies that a delivery was signed with one of `secrets` (RCV-1, RCV-2): HMAC-SHA256 over the timestamp header's text, a
 * dot and the body's bytes, compared in constant time, and a timestamp within the tolerance. If a secret is limited to a kind
 * or a tenant, the body's field must match. It keeps no record of deliveries: within the tolerance a captured delivery passes
 * again, which a receiver's inbox prevents. A kind that is `"dangerouslyUnsigned"` has no signature to verify and fails here.
 *
 * @returns the verdict; it never throws for what a request contains
 * @throws SetupError for a wrong option or keyring, or a body that was already parsed
 * @throws KeyringError (as a rejection) when `secrets` is a function that returns no keyring now: answer 503, not 401
 * @example
 * const secrets = { current: process.env.WEBHOOK_SECRET ?? "" };
 * const result = verifySignature({ headers: request.headers, body: bytes, secrets });
 * if (!result.ok) return new Response(null, { status: 401 });
 */
export function verifySignature(options: VerifyOptions): VerifyResult;
export function verifySignature(options: VerifyOptions<KeyringProvider>): Promise<VerifyResult>;
export function verifySignature(
  options: VerifyOptions<Keyring | KeyringProvider>,
): VerifyResult | Promise<VerifyResult> {
  const policy = validate(options);
  const { secrets, now = systemClock.now() } = options;
  const signed = readInTime(options.headers, policy, now);
  if (typeof secrets === "function") return verifyWithProvider(options, secrets, signed, now);
  const keyring = compiledKeyring(secrets, now);
  return signed.ok ? verdict(signed, options.body, keyring, now) : signed;
}

function readInTime(headers: HeaderSource, policy: Policy, now: number): SignedHeaders | VerifyFailure {
  const signed = readSigned(new Head({ headers }), policy);
  if (!signed.ok) return signed;
  const { pastMs: past, futureMs: future } = policy.tolerance;
  const code = checkAge(signed.timestamp, now, { past, future });
  return code === null ? signed : { ok: false, code };
}

/** Verifies against the keyring at hand, then against fresher ones. @throws KeyringError when none is available */
async function verifyWithProvider(
  { body, tenant, route }: VerifyOptions<Keyring | KeyringProvider>,
  provider: KeyringProvider,
  signed: SignedHeaders | VerifyFailure,
  now: number,
): Promise<VerifyResult> {
  if (!signed.ok) return signed;
  const source = keyringSource(provider);
  const context = keyringContext({ tenant, route });
  const cameAt = systemClock.monotonic();
  for (let keyring = await source.read(context); ; ) {
    const result = verdict(signed, body, keyring, now);
    const fresher = result.ok ? null : await source.reread(context, keyring, cameAt);
    if (fresher === null) return result;
    keyring = fresher;
  }
}

function verdict(
  { timestampText, timestamp, candidates }: SignedHeaders,
  body: Uint8Array | string,
  { keys }: SourceKeys,
  now: number,
): VerifyResult {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const live = keys.filter(({ isUnsigned, validUntil }) => !isUnsigned && validUntil > now);
  const key = live.find((each) => each.signed(candidates, "sha256", `${timestampText}.`, bytes));
  if (key === undefined) return { ok: false, code: live.length > 0 ? "signature_mismatch" : "no_secret" };
  const isLimited = key.grants.some(({ tenant, kind }) => tenant !== null || kind !== null);
  const grant = covering(key.grants, isLimited ? claimsIn(bytes) : {}, now);
  if (grant === null) return { ok: false, code: "signature_mismatch" };
  const { slot, index, kind } = grant;
  return { ok: true, timestamp, matched: { slot, index, kind } };
}

/** The fields that a secret can be limited by; none when the (already authentic) body is not a JSON object. */
function claimsIn(body: Uint8Array): Claims {
  try {
    const { apiClientId, direction } = Object(JSON.parse(new TextDecoder().decode(body))) as Record<string, unknown>;
    const kind = kindOf({ direction });
    if (apiClientId === undefined) return { kind };
    // A value that is not a text names nobody's tenant, so that it cannot pass for a list of one.
    return { kind, tenant: typeof apiClientId === "string" ? apiClientId : "" };
  } catch {
    return {};
  }
}

interface Policy extends HeaderPolicy {
  readonly tolerance: Tolerance;
}

function validate(options: VerifyOptions<Keyring | KeyringProvider>): Policy {
  refuseUnknownOptions("verifySignature()", options, OPTIONS);
  const { headers, body } = options;
  if (typeof headers !== "object" || headers === null) {
    throw new SetupError("invalid_option", 'Option "headers" must be the headers of the request.', {
      fields: { option: "headers" },
    });
  }
  if (typeof body !== "string" && !isUint8Array(body)) {
    throw new SetupError(
      "raw_body_unavailable",
      'Option "body" must be the bytes exactly as received. It is something else, most likely the parsed JSON: verify before any body parser, or keep the raw bytes.',
      { fields: { option: "body" } },
    );
  }
  // With NaN every comparison is false, and so every age would be acceptable.
  if (options.now !== undefined && !Number.isFinite(options.now)) {
    throw invalidOption("now", "must be epoch milliseconds", options.now);
  }
  return resolvePolicy(options);
}

/**
 * Validates and defaults how headers are read, and how old they may be.
 *
 * @throws SetupError naming the option that is wrong
 */
export function resolvePolicy({
  toleranceMs,
  timestampFormat,
  encoding,
}: Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding">): Policy {
  timestampFormatOption(timestampFormat);
  return {
    tolerance: toleranceOption("toleranceMs", toleranceMs, DEFAULT_TOLERANCE),
    timestampFormat,
    encoding: signatureEncodingOption("encoding", encoding),
  };
}

/** More secrets than one process verifies by text. A program that always passes new ones must not grow. */
const MAX_TEXTS = 16;

// Compiled keyrings are kept between calls, so that each call costs little more than its HMAC.
const byObject = new WeakMap<object, SourceKeys>();
const byText = new Map<string, SourceKeys>();
const byProvider = new WeakMap<KeyringProvider, KeyringSource>();

/** Compiles a keyring, or finds the compiled one: by identity for an object, by value for a text. @throws SetupError */
function compiledKeyring(secrets: Keyring, now: number): SourceKeys {
  const isObject = typeof secrets === "object" && secrets !== null;
  const known = isObject ? byObject.get(secrets) : byText.get(secrets);
  if (known !== undefined) return known;
  const keyring = compileKeys(secrets, STRICT_RULES, now);
  if (isObject) {
    byObject.set(secrets, keyring);
  } else {
    if (byText.size >= MAX_TEXTS) byText.clear();
    byText.set(secrets, keyring);
  }
  return keyring;
}

/** The source of a provider function: one per function, with the system clock. */
function keyringSource(provider: KeyringProvider): KeyringSource {
  let source = byProvider.get(provider);
  if (source === undefined) {
    source = new ProvidedKeyrings(provider, STRICT_RULES, { clock: systemClock, logger: stderrLogger });
    byProvider.set(provider, source);
  }
  return source;
}
