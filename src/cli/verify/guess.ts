/** How a signer signs, found by trying, and the options under which a receiver takes what it sends. */
import { SetupError } from "../../errors.ts";
import type { SecretEncoding } from "../../signature/secret.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/sign.ts";
import { parseTimestamp, type TimestampFormat } from "../../signature/verify.ts";
import { verifySignature } from "../../signature/verify-signature.ts";
import type { Capture } from "./capture.ts";
import type { GivenSecret } from "./keys.ts";
import { type Finding, search } from "./search.ts";
import { timestampForm } from "./stamps.ts";

/** How the signer does it, in words. */
export interface Signer {
  readonly timestamp: string;
  readonly signature: string;
  readonly key: string;
  readonly text: string;
  readonly body: string;
  readonly algorithm: string;
}

/** Options of `createReceiver()`; an absent one may stay at its default. */
export interface FoundOptions {
  readonly secretEncoding: SecretEncoding;
  /** What to do to the secret's text first. */
  readonly secretPreparation?: string;
  /** As it is written in code. */
  readonly timestampFormat: string;
  /** `verifySignature()` calls it `encoding`. */
  readonly signatureEncoding: "hex" | "base64" | "base64url";
}

export interface Guess {
  readonly signer: Signer;
  /** Null when no options are enough; then `needed` says what would be. */
  readonly options: FoundOptions | null;
  readonly needed: readonly string[];
}

/** A scheme of another service differs in its headers, in the signed text, in its key and in what stands around a signature. */
const MOST = 3;

interface Format {
  /** As it is written in code. */
  readonly code: string;
  readonly format: TimestampFormat;
}

const FORMATS: Readonly<Partial<Record<ReturnType<typeof timestampForm>, Format>>> = {
  seconds: { code: '"s"', format: "s" },
  milliseconds: { code: '"ms"', format: "ms" },
  microseconds: { code: "(text) => Number(text) / 1e3", format: (text) => Number(text) / 1e3 },
  nanoseconds: { code: "(text) => Number(text) / 1e6", format: (text) => Number(text) / 1e6 },
  date: { code: "(text) => Date.parse(text)", format: (text) => Date.parse(text) },
};

/** Null when nothing that is tried makes the signature. @throws SetupError for a secret that is not of its encoding */
export function guess(capture: Capture, secret: GivenSecret): Guess | null {
  const finding = search(capture, secret, MOST);
  if (finding === null) return null;
  const { options, needed } = receivable(finding);
  return { signer: signerOf(finding), options, needed };
}

function signerOf({ timestamp, signature, spelling, key, text, body, algorithm }: Finding): Signer {
  const signsTime = text.value.before("T").includes("T") || text.value.after("T").includes("T");
  return {
    timestamp: signsTime ? `${timestampForm(timestamp.value)}, of ${timestamp.told}` : "none is signed",
    signature: `${spelling.told}, in ${signature.told}`,
    key: key.told,
    text: text.told,
    body: body.told,
    algorithm: `HMAC-${algorithm.told}`,
  };
}

function receivable(finding: Finding): Pick<Guess, "options" | "needed"> {
  const needed = [...needs(finding)];
  const { key, timestamp, spelling } = finding;
  const format = FORMATS[timestampForm(timestamp.value)];
  const { encoding: secretEncoding, preparation } = key.value;
  if (needed.length > 0 || format === undefined || spelling.encoding === null || secretEncoding === undefined) {
    return { options: null, needed };
  }
  const refusal = refusalOf(finding, format.format, spelling.encoding);
  if (refusal !== null) return { options: null, needed: [refusal] };
  const prepared = preparation === undefined ? {} : { secretPreparation: preparation };
  return {
    options: { secretEncoding, ...prepared, timestampFormat: format.code, signatureEncoding: spelling.encoding },
    needed,
  };
}

/** What no option changes. */
function* needs({ key, timestamp, text, algorithm, body, signature, spelling }: Finding): Generator<string> {
  if (algorithm.cause) yield `HMAC-SHA256, not HMAC-${algorithm.told}`;
  if (text.cause) yield `the signed text <timestamp>.<body>, not ${text.told}`;
  if (timestamp.cause) yield `X-Service-Timestamp with the timestamp that is signed (here: ${timestamp.told})`;
  else if (FORMATS[timestampForm(timestamp.value)] === undefined) yield "a timestamp without a dot, that can be read";
  if (signature.cause) yield `X-Service-Signature with the signature (here: ${signature.told})`;
  if (spelling.cause) yield `64 hex digits, 44 characters of base64 or 43 of base64url, not ${spelling.told}`;
  if (body.cause) yield `the bytes that were signed: ${body.told}`;
  if (key.cause === "previous_secret") yield "the secret listed as previous";
  else if (key.value.encoding === undefined) yield `the signer's key as the secret: ${key.told}`;
}

/** What the receiver's own check says to these options; null when it takes the request. */
function refusalOf(
  { key, body, timestamp, signature }: Finding,
  timestampFormat: TimestampFormat,
  encoding: FoundOptions["signatureEncoding"],
): string | null {
  const headers = { [TIMESTAMP_HEADER]: timestamp.value, [SIGNATURE_HEADER]: signature.value.text };
  const secrets = { secret: key.value.bytes.toString("hex"), encoding: "hex" as const };
  const now = parseTimestamp(timestamp.value, timestampFormat) ?? 0;
  try {
    const result = verifySignature({ headers, body: body.value, secrets, timestampFormat, encoding, now });
    return result.ok ? null : `what a receiver does not call ${result.code}`;
  } catch (error) {
    if (error instanceof SetupError) return `a secret that a receiver takes: ${error.message}`;
    throw error;
  }
}
