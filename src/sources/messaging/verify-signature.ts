/** verifySignature(): the low-level entry, usable without a receiver or a store. */
import { isUint8Array } from "node:util/types";
import { SetupError } from "../../errors.ts";
import { systemClock } from "../../internal/clock.ts";
import { stderrLogger } from "../../internal/logger.ts";
import { invalidOption, refuseUnknownOptions } from "../../internal/options.ts";
import type { HeaderSource } from "../headers.ts";
import type { KeyringSource } from "../keyring-provider.ts";
import { keyringContext } from "../keyring-provider.ts";
import {
  type CompiledKeyring,
  compileKeyring,
  type Keyring,
  type KeyringProvider,
  type ScopeName,
  type Slot,
} from "./keyring.ts";
import { createKeyringSource } from "./keyring-source.ts";
import {
  type CheckedHeaders,
  checkHeaders,
  DEFAULT_TOLERANCE,
  type HeaderPolicy,
  matchSignature,
  type SignatureEncoding,
  signatureEncodingOption,
  type TimestampFormat,
  type Tolerance,
  timestampFormatOption,
  toleranceOption,
  type VerifyFailure,
  type VouchedFields,
  vouchingMatch,
} from "./verify.ts";

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
      /** Which secret matched, in words that may be logged. */
      readonly matched: { readonly slot: Slot; readonly scope: ScopeName; readonly index: number };
    }
  | VerifyFailure;

const DEFAULT_POLICY: HeaderPolicy = { tolerance: DEFAULT_TOLERANCE, timestampFormat: "auto", encoding: "auto" };
const OPTIONS = ["headers", "body", "secrets", "toleranceMs", "timestampFormat", "encoding", "now", "tenant", "route"];

/**
 * Verifies that a delivery was signed with one of `secrets` (RCV-1, RCV-2): HMAC-SHA256 over the timestamp header's text, a
 * dot and the body's bytes, compared in constant time, and a timestamp within the tolerance. If a secret is limited to a direction
 * or an API client, the body's field must match. It keeps no record of deliveries: within the tolerance a captured delivery passes
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
  if (typeof secrets === "function") return verifyWithProvider(options, secrets, policy, now);
  const keyring = compiledKeyring(secrets, now);
  const checked = checkHeaders(options.headers, policy, now);
  return checked.ok ? verdict(checked, options.body, keyring, now) : checked;
}

/** Verifies against the keyring at hand, then against fresher ones. @throws KeyringError when none is available */
async function verifyWithProvider(
  { headers, body, tenant, route }: VerifyOptions<Keyring | KeyringProvider>,
  provider: KeyringProvider,
  policy: HeaderPolicy,
  now: number,
): Promise<VerifyResult> {
  const checked = checkHeaders(headers, policy, now);
  if (!checked.ok) return checked;
  const source = keyringSource(provider);
  const context = keyringContext({ tenant, route });
  const cameAt = systemClock.monotonic();
  for (let keyring = await source.read(context); ; ) {
    const result = verdict(checked, body, keyring, now);
    const fresher = result.ok ? null : await source.reread(context, keyring, cameAt);
    if (fresher === null) return result;
    keyring = fresher;
  }
}

function verdict(
  checked: CheckedHeaders,
  body: Uint8Array | string,
  keyring: CompiledKeyring,
  now: number,
): VerifyResult {
  const match = matchSignature(checked, body, keyring, now);
  if (match === null) {
    return { ok: false, code: keyring.keys.some((key) => key.validUntil > now) ? "signature_mismatch" : "no_secret" };
  }
  const vouched = match.scope === "any" ? match : vouchingMatch(match, claimedFields(body));
  if (vouched === null) return { ok: false, code: "signature_mismatch" };
  const { slot, scope, index } = vouched;
  return { ok: true, timestamp: checked.timestamp, matched: { slot, scope, index } };
}

/** The two fields that a scope limits; neither when the (already authentic) body is not a JSON object. */
function claimedFields(body: Uint8Array | string): VouchedFields {
  try {
    const event: unknown = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
    return typeof event === "object" && event !== null ? event : {};
  } catch {
    return {};
  }
}

function validate(options: VerifyOptions<Keyring | KeyringProvider>): HeaderPolicy {
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
 * Validates and defaults how headers are read.
 *
 * @throws SetupError naming the option that is wrong
 */
export function resolvePolicy(
  options: Pick<VerifyOptions, "toleranceMs" | "timestampFormat" | "encoding">,
): HeaderPolicy {
  const { timestampFormat = "auto" } = options;
  if (options.toleranceMs === undefined && timestampFormat === "auto" && options.encoding === undefined) {
    return DEFAULT_POLICY;
  }
  timestampFormatOption(timestampFormat);
  return {
    tolerance: toleranceOption("toleranceMs", options.toleranceMs, DEFAULT_TOLERANCE),
    timestampFormat,
    encoding: signatureEncodingOption(options.encoding),
  };
}

/** More secrets than one process verifies by text. A program that always passes new ones must not grow. */
const MAX_TEXTS = 16;

// Compiled keyrings are kept between calls, so that each call costs little more than its HMAC.
const byObject = new WeakMap<object, CompiledKeyring>();
const byText = new Map<string, CompiledKeyring>();
const byProvider = new WeakMap<KeyringProvider, KeyringSource<CompiledKeyring>>();

/** Compiles a keyring, or finds the compiled one: by identity for an object, by value for a text. @throws SetupError */
function compiledKeyring(secrets: Keyring, now: number): CompiledKeyring {
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

/** The source of a provider function: one per function, with the system clock. */
function keyringSource(provider: KeyringProvider): KeyringSource<CompiledKeyring> {
  let source = byProvider.get(provider);
  if (source === undefined) {
    source = createKeyringSource(provider, { clock: systemClock, logger: stderrLogger });
    byProvider.set(provider, source);
  }
  return source;
}
