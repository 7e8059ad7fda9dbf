/** Why a captured request is not verified: the receiver's checks one by one, then the commonest mistakes, each undone by itself. */
import { Buffer } from "node:buffer";
import { SetupError } from "../../../errors.ts";
import { readJson } from "../../../internal/json.ts";
import { checkAge } from "../../../sources/define-source.ts";
import { Head, readHeader } from "../../../sources/headers.ts";
import { HmacKey } from "../../../sources/hmac-key.ts";
import { compileKeys, type SourceKey } from "../../../sources/keys.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../sources/messaging/sign.ts";
import { parseCandidates, readSigned, type VerifyFailureCode } from "../../../sources/messaging/verify.ts";
import { STRICT_RULES, secretBytes } from "../../../sources/secret.ts";
import { type Capture, headerRecord } from "./capture.ts";
import { type Cause, type CauseCode, causeOf } from "./causes.ts";
import {
  ageStep,
  bodyStep,
  type CapturedWith,
  type GivenSecret,
  headersStep,
  type Step,
  secretStep,
  signatureFormStep,
  timestampStep,
} from "./steps.ts";

export interface Diagnosis {
  /** A receiver with this secret accepts the request. */
  readonly verified: boolean;
  /** As a receiver logs it; null when no check of headers and signature failed. */
  readonly code: VerifyFailureCode | null;
  readonly steps: readonly Omit<Step, "cause">[];
  /** Empty when it is verified. */
  readonly causes: readonly Cause[];
}

/** @throws SetupError for a secret that is not of its encoding */
export function diagnose(capture: Capture, secret: GivenSecret, how: CapturedWith): Diagnosis {
  const { headers } = capture;
  const { key, problem } = keyOf(secret, how.now);
  const { code, isSigned } = verdict(capture, key, how);
  const steps = [
    headersStep(headers),
    timestampStep(headers, how),
    ageStep(headers, how),
    signatureFormStep(headers, how),
    secretStep(secret, problem),
    bodyStep(capture, isSigned),
    signatureStep(isSigned),
  ];
  const failed = steps.filter(({ ok }) => ok === false);
  const verified = isSigned === true && failed.length === 0;
  const causes = verified ? [] : causesOf(mistakeOf(capture, secret), failed);
  return { verified, code, steps: steps.map(({ name, ok, text }) => ({ name, ok, text })), causes };
}

interface Verdict {
  readonly code: VerifyFailureCode | null;
  /** Null when the signature cannot be compared. */
  readonly isSigned: boolean | null;
}

/** The receiver's own check. It compares the signature whatever the age: most captures are old. */
function verdict(capture: Capture, key: SourceKey | null, how: CapturedWith): Verdict {
  const { at, now, tolerance } = how;
  const signed = readSigned(new Head({ headers: headerRecord(capture.headers) }), how);
  if (!signed.ok) return { code: signed.code, isSigned: null };
  const { timestampText, timestamp, candidates } = signed;
  const isSigned = key?.signed(candidates, "sha256", `${timestampText}.`, capture.body) ?? null;
  const past = at === undefined ? Number.POSITIVE_INFINITY : tolerance.past;
  const expired = checkAge(timestamp, at ?? now, { ...tolerance, past });
  return { code: expired ?? (isSigned === false ? "signature_mismatch" : null), isSigned };
}

/** The key of a receiver with this secret, or why a receiver would refuse it. */
function keyOf({ secret, encoding }: GivenSecret, now: number) {
  try {
    const [key = null] = compileKeys({ secret, encoding }, STRICT_RULES, now).keys;
    return { key, problem: null };
  } catch (error) {
    if (error instanceof SetupError) return { key: null, problem: error.message };
    throw error;
  }
}

function signatureStep(isSigned: boolean | null): Step {
  const name = "signature";
  if (isSigned === null)
    return { name, ok: null, text: "not compared: something that it needs is missing or malformed" };
  if (isSigned) return { name, ok: true, text: "made with this secret, of <timestamp>.<body>" };
  return { name, ok: false, text: "not made with this secret, of <timestamp>.<body>", cause: "wrong_secret" };
}

/**
 * What explains the signature, however the receiver is set up: "none" if it fits as it is, a mistake if it fits once that is undone. Null
 * if nothing makes it fit.
 *
 * @throws SetupError for a secret that is not of its encoding
 */
function mistakeOf({ headers, body }: Capture, { secret, encoding, previous }: GivenSecret): CauseCode | "none" | null {
  const record = headerRecord(headers);
  const timestamp = readHeader(record, TIMESTAMP_HEADER);
  const candidates = parseCandidates(readHeader(record, SIGNATURE_HEADER) ?? "", "auto");
  if (timestamp === undefined || candidates === null) return null;
  const fits = (key: Uint8Array, text = timestamp, bytes: Uint8Array = body) => {
    const digest = new HmacKey(key).digest(`${text}.`, bytes);
    return candidates.some((candidate) => digest.equals(candidate));
  };
  const own = secretBytes("secret", secret, encoding);
  if (fits(own)) return "none";
  const replaced = previous === undefined ? [] : [secretBytes("previous secret", previous, encoding)];
  const found =
    timestampMistakes(timestamp).find(([, text]) => fits(own, text)) ??
    bodyMistakes(body).find(([, bytes]) => fits(own, timestamp, bytes)) ??
    [...replaced.map((key) => ["previous_secret", key] as const), ...secretMistakes(secret)].find(([, key]) =>
      fits(key),
    );
  return found?.[0] ?? null;
}

type Mistakes<T> = readonly (readonly [CauseCode, undone: T])[];

function timestampMistakes(text: string): Mistakes<string> {
  const [first = ""] = text.split(",");
  const bare = text.replace(/[\s"']/g, "");
  return [
    ["header_duplicated", first.trim()],
    ["timestamp_form", bare],
    ["timestamp_unit", bare.slice(0, 10)],
    ["timestamp_unit", `${bare}000`],
  ];
}

function bodyMistakes(body: Buffer): Mistakes<Uint8Array> {
  const text = body.toString("latin1");
  const json = readJson(body);
  const written = json.ok ? [JSON.stringify(json.value), JSON.stringify(json.value, null, 2)] : [];
  // As json.dumps() of Python separates.
  const spaced = json.ok ? JSON.stringify(json.value, null, 1).replace(/,\n */g, ", ").replace(/\n */g, "") : "";
  return [
    ["body_line_break", Buffer.from(text.replace(/\r?\n$/, ""), "latin1")],
    ["body_line_break", Buffer.from(`${text}\n`, "latin1")],
    ["body_line_break", Buffer.from(`${text}\r\n`, "latin1")],
    ...[...written, spaced].map((each) => ["body_reserialised", Buffer.from(each)] as const),
  ];
}

function secretMistakes(secret: string): Mistakes<Uint8Array> {
  const trimmed = secret.trim();
  const text = (cause: CauseCode, value: string) => [cause, Buffer.from(value)] as const;
  return [
    text("secret_encoding", secret),
    text("secret_line_break", trimmed),
    text("secret_line_break", `${secret}\n`),
    text("secret_line_break", `${secret}\r\n`),
    text("secret_quotes", trimmed.replace(/^(["'`])(.*)\1$/s, "$2")),
    ["secret_encoding", Buffer.from(secret, "base64")],
    ["secret_encoding", Buffer.from(secret, "hex")],
  ];
}

/** A mistake that was undone is proven. Without one, the first check that failed names the likeliest cause. */
function causesOf(mistake: ReturnType<typeof mistakeOf>, failed: readonly Step[]): readonly Cause[] {
  const suspected = failed.flatMap(({ name, cause }) => (cause === undefined ? [] : { name, cause }));
  const ofAge = suspected.filter(({ name }) => name === "age");
  const others = suspected.filter(({ name }) => name !== "age");
  const isSetUp = mistake === "none";
  // If the signature fits as it is, each check that refuses the request is a cause.
  const likely = isSetUp ? others : mistake === null ? others.slice(0, 1) : [];
  return [
    ...(mistake === null || isSetUp ? [] : [causeOf(mistake, true)]),
    ...likely.map(({ cause }) => causeOf(cause, isSetUp)),
    ...ofAge.map(({ cause }) => causeOf(cause, mistake !== null)),
  ];
}
