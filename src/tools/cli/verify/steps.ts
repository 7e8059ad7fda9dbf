/** The checks of a captured request, each by itself: what was seen, and what it suggests. */
import type { Buffer } from "node:buffer";
import { readJson } from "../../../internal/json.ts";
import { isRecord } from "../../../internal/options.ts";
import { checkAge, type Tolerance } from "../../../sources/define-source.ts";
import { readHeader } from "../../../sources/headers.ts";
import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../../sources/messaging/sign.ts";
import {
  parseCandidates,
  parseTimestamp,
  type SignatureEncoding,
  type TimestampFormat,
} from "../../../sources/messaging/verify.ts";
import type { SecretEncoding } from "../../../sources/secret.ts";
import { type Capture, declaredLength, firstValue, type Header, headerRecord, valuesOf } from "./capture.ts";
import type { CauseCode } from "./causes.ts";

export type StepName = "headers" | "timestamp" | "age" | "signature form" | "secret" | "body" | "signature";

export interface Step {
  readonly name: StepName;
  /** Null: not judged; the text says why. */
  readonly ok: boolean | null;
  /** Never a secret, a signature, or anything of the body. */
  readonly text: string;
  /** The likely cause; only where `ok` is false. */
  readonly cause?: CauseCode;
}

/** What the user gave. */
export interface GivenSecret {
  readonly secret: string;
  readonly encoding: SecretEncoding;
  /** One that was replaced. */
  readonly previous?: string | undefined;
}

/** How the receiver is set up, and when the request arrived. */
export interface CapturedWith {
  readonly timestampFormat: TimestampFormat;
  readonly encoding: SignatureEncoding;
  readonly tolerance: Tolerance;
  /** Epoch ms at which it arrived. Without it, only a timestamp in the future is judged. */
  readonly at: number | undefined;
  /** Epoch ms. */
  readonly now: number;
}

const UNITS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
] as const;

export function headersStep(headers: readonly Header[]): Step {
  const name = "headers";
  const [timestamps, signatures] = [TIMESTAMP_HEADER, SIGNATURE_HEADER].map((each) => valuesOf(headers, each).length);
  if (timestamps && signatures) return { name, ok: true, text: countsText(timestamps, signatures) };
  const missing = [timestamps ? [] : "X-Service-Timestamp", signatures ? [] : "X-Service-Signature"].flat();
  const names = headers.flatMap(([name]) => (isSimilar(name) ? [name] : []));
  const hint = names.length === 0 ? "" : `; there is ${names.join(", ")} instead`;
  const absent = timestamps ? "signature_missing" : signatures ? "timestamp_missing" : "headers_missing";
  const cause = names.length === 0 ? absent : "header_renamed";
  return { name, ok: false, text: `${missing.join(" and ")} missing${hint}`, cause };
}

/** A name that a proxy may have made of one of the two headers. */
function isSimilar(name: string): boolean {
  const low = name.toLowerCase();
  return low !== TIMESTAMP_HEADER && low !== SIGNATURE_HEADER && /time-?_?stamp|sign/.test(low);
}

function countsText(timestamps: number, signatures: number): string {
  if (timestamps === 1 && signatures === 1) return "X-Service-Timestamp and X-Service-Signature are there";
  return `X-Service-Timestamp is there ${times(timestamps)}, X-Service-Signature ${times(signatures)}`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

export function timestampStep(headers: readonly Header[], { timestampFormat }: CapturedWith): Step {
  const name = "timestamp";
  const text = readHeader(headerRecord(headers), TIMESTAMP_HEADER);
  if (text === undefined) return { name, ok: null, text: "there is none" };
  const form = timestampForm(text);
  const shown = /^\d+$/.test(text) ? `${text.length} digits` : `${text.length} characters`;
  const instant = epochMsOf(text);
  const meaning = instant === null ? "" : `: ${form}, ${timeText(instant)}`;
  if (parseTimestamp(text, timestampFormat) !== null) return { name, ok: true, text: `${shown}${meaning}` };
  const expected = { auto: "10 or 13 digits", s: "10 digits", ms: "13 digits" };
  const wanted = typeof timestampFormat === "string" ? `, not ${expected[timestampFormat]}` : "";
  return { name, ok: false, text: `${shown}${meaning}${wanted}`, cause: timestampCause(text, form) };
}

function timestampCause(text: string, form: TimestampForm): CauseCode {
  if (parseCandidates(text, "auto") !== null) return "headers_swapped";
  if (text.includes(",") && form !== "date") return "header_duplicated";
  return /seconds$/.test(form) ? "timestamp_unit" : "timestamp_form";
}

/** Without the time of arrival, the age of a capture means nothing. But no capture comes from the future. */
export function ageStep(headers: readonly Header[], { timestampFormat, tolerance, at, now }: CapturedWith): Step {
  const name = "age";
  const text = readHeader(headerRecord(headers), TIMESTAMP_HEADER);
  const timestamp = text === undefined ? null : parseTimestamp(text, timestampFormat);
  if (timestamp === null) return { name, ok: null, text: "not judged without a timestamp" };
  const verdict = checkAge(timestamp, at ?? now, tolerance);
  const distance = `${spanText(Math.abs((at ?? now) - timestamp))} ${(at ?? now) < timestamp ? "after" : "before"}`;
  if (verdict === "timestamp_in_future") {
    return {
      name,
      ok: false,
      text: `signed ${distance} ${at === undefined ? "now" : "it arrived"}`,
      cause: "clock_skew",
    };
  }
  if (at === undefined) {
    return { name, ok: null, text: `not judged: signed ${distance} now; --at TIME says when it arrived` };
  }
  const taken = `up to ${spanText(tolerance.past)} is accepted`;
  const base = { name, text: `signed ${distance} it arrived; ${taken}` } as const;
  return verdict === null ? { ...base, ok: true } : { ...base, ok: false, cause: "too_old" };
}

export function signatureFormStep(headers: readonly Header[], { encoding }: CapturedWith): Step {
  const name = "signature form";
  const text = readHeader(headerRecord(headers), SIGNATURE_HEADER);
  if (text === undefined) return { name, ok: null, text: "there is none" };
  const candidates = parseCandidates(text, encoding);
  const shown = `${text.length} characters`;
  if (candidates !== null) {
    return { name, ok: true, text: `${shown}: ${candidates.length === 1 ? "one" : candidates.length} of 32 bytes` };
  }
  if (parseCandidates(text, "auto") !== null) {
    return { name, ok: false, text: `${shown}, but not ${encoding}`, cause: "signature_encoding" };
  }
  const cause = parseTimestamp(text, "auto") === null ? "signature_form" : "headers_swapped";
  return { name, ok: false, text: `${shown}: not 64 hex digits, 44 of base64 or 43 of base64url`, cause };
}

/** @param problem - why a receiver would refuse the secret; null if it would not */
export function secretStep({ secret, encoding }: GivenSecret, problem: string | null): Step {
  const name = "secret";
  if (problem !== null) return { name, ok: false, text: problem, cause: "secret_form" };
  const padded = secret === secret.trim() ? "" : "; the white space at its end is a part of it";
  return { name, ok: true, text: `a receiver accepts its form, read as ${encoding}${padded}` };
}

/** The service's last attempt comes 81 minutes after the event; some more for its queue. */
const LONGEST_WAY_MS = 86 * 60_000;
/** Two clocks of one service. */
const SKEW_MS = 5_000;

/** @param isSigned - whether the signature is of this body; then only a refused encoding can be wrong with it */
export function bodyStep(capture: Capture, isSigned: boolean | null): Step {
  const { headers, body } = capture;
  const name = "body";
  const encoding = firstValue(headers, "content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    const text = "Content-Encoding is not identity: a receiver answers 415 without reading it";
    return { name, ok: false, text, cause: "body_compressed" };
  }
  const length = declaredLength(headers);
  const said = length === undefined || length === body.length ? "" : `, Content-Length says ${length}`;
  const text = `${body.length.toLocaleString("en-US")} bytes${said}`;
  if (isSigned) return { name, ok: true, text };
  const [cause, seen] = bodySuspicion(capture) ?? [];
  return cause === undefined ? { name, ok: true, text } : { name, ok: false, text: `${text}; ${seen}`, cause };
}

/** What the body itself shows: a sign, not a proof. The surest first. */
function bodySuspicion({ headers, body }: Capture): readonly [cause: CauseCode, seen: string] | null {
  if (body.length === 0) return ["body_empty", "it is empty"];
  if (body[0] === 0x1f && body[1] === 0x8b) return ["body_compressed", "it begins as compressed data does"];
  const length = declaredLength(headers) ?? body.length;
  const json = readJson(body);
  if (!json.ok) return length > body.length || isCutJson(body) ? ["body_truncated", "it ends too early"] : null;
  if (/^\s*[[{]\s*\n\s/.test(body.toString("latin1"))) return ["body_reserialised", "it is indented"];
  if (length !== body.length) return ["body_of_another_request", "it is whole, but of another length"];
  return isOfAnotherTime(headers, json.value) ? ["body_of_another_request", "its event is of another time"] : null;
}

function isCutJson(body: Buffer): boolean {
  const text = body.toString("latin1");
  return /^\s*[[{]/.test(text) && !/[\]}]\s*$/.test(text);
}

/** Signed before it happened, or longer after it than the service tries. */
function isOfAnotherTime(headers: readonly Header[], value: unknown): boolean {
  const signedAt = parseTimestamp(firstValue(headers, TIMESTAMP_HEADER) ?? "", "auto");
  const occurredAt = isRecord(value) ? value.occurredAt : undefined;
  if (signedAt === null || typeof occurredAt !== "number") return false;
  return occurredAt - signedAt > SKEW_MS || signedAt - occurredAt > LONGEST_WAY_MS;
}

/** What a timestamp's text looks like, whatever a receiver makes of it. */
type TimestampForm = "seconds" | "milliseconds" | "microseconds" | "nanoseconds" | "date" | "other";

const DIGITS: Readonly<Record<number, TimestampForm>> = {
  10: "seconds",
  13: "milliseconds",
  16: "microseconds",
  19: "nanoseconds",
};

function timestampForm(text: string): TimestampForm {
  if (/^\d+$/.test(text)) return DIGITS[text.length] ?? "other";
  return /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(text) ? "date" : "other";
}

/** Epoch milliseconds; null for a text that is not an instant. */
function epochMsOf(text: string): number | null {
  const form = timestampForm(text);
  if (form === "other") return null;
  if (form === "date") return Number.isNaN(Date.parse(text)) ? null : Date.parse(text);
  return Math.floor(Number(text) * { seconds: 1e3, milliseconds: 1, microseconds: 1e-3, nanoseconds: 1e-6 }[form]);
}

/** `90 min`, `3 d`: the largest unit that it fills. */
function spanText(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms >= 2 * each) ?? [1, "ms"];
  return `${Math.round(ms / size)} ${unit}`;
}

function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : "not a date";
}
