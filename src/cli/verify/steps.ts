/** The checks of a captured request before its signature, each by itself: what was seen, and what it suggests. */

import { SIGNATURE_HEADER, TIMESTAMP_HEADER } from "../../signature/sign.ts";
import { checkAge, type HeaderPolicy, parseCandidates, parseTimestamp, readHeader } from "../../signature/verify.ts";
import { type Header, headerRecord, valuesOf } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import type { GivenSecret } from "./keys.ts";
import { signatureChanges } from "./signatures.ts";
import { instantOf, timestampChanges, timestampForm } from "./stamps.ts";

export type StepName = "headers" | "timestamp" | "age" | "signature form" | "secret" | "body" | "signature";

export interface Step {
  readonly name: StepName;
  /** Null: not judged, and the text says why. */
  readonly ok: boolean | null;
  /** Never a secret, a signature, or anything of the body. */
  readonly text: string;
  /** What it is likely to come from; only where `ok` is false. */
  readonly cause?: CauseCode;
}

/** How the receiver is set up, and when the request arrived. */
export interface Circumstances extends Required<HeaderPolicy> {
  /** Epoch ms at which it arrived; without it only a timestamp in the future is judged. */
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
  const others = [...timestampChanges(headers), ...signatureChanges(headers)].filter(
    ({ cause }) => cause === "header_renamed",
  );
  const names = [...new Set(others.map(({ told }) => told.split(",")[0]))];
  const hint = names.length === 0 ? "" : `; in their place there may be ${names.join(", ")}`;
  const absent = timestamps ? "signature_missing" : signatures ? "timestamp_missing" : "headers_missing";
  const cause = names.length === 0 ? absent : "header_renamed";
  return { name, ok: false, text: `${missing.join(" and ")} missing${hint}`, cause };
}

function countsText(timestamps: number, signatures: number): string {
  if (timestamps === 1 && signatures === 1) return "X-Service-Timestamp and X-Service-Signature are there";
  return `X-Service-Timestamp is there ${times(timestamps)}, X-Service-Signature ${times(signatures)}`;
}

function times(count: number): string {
  return count === 1 ? "once" : `${count} times`;
}

export function timestampStep(headers: readonly Header[], { timestampFormat }: Circumstances): Step {
  const name = "timestamp";
  const text = readHeader(headerRecord(headers), TIMESTAMP_HEADER);
  if (text === undefined) return { name, ok: null, text: "there is none" };
  const form = timestampForm(text);
  const shown = /^\d+$/.test(text) ? `${text.length} digits` : `${text.length} characters`;
  const instant = instantOf(text);
  const meaning = instant === null ? "" : `: ${form}, ${timeText(instant)}`;
  if (parseTimestamp(text, timestampFormat) !== null) return { name, ok: true, text: `${shown}${meaning}` };
  const expected = { auto: "10 or 13 digits", s: "10 digits", ms: "13 digits" };
  const wanted = typeof timestampFormat === "string" ? `, not ${expected[timestampFormat]}` : "";
  return { name, ok: false, text: `${shown}${meaning}${wanted}`, cause: timestampCause(text, form) };
}

function timestampCause(text: string, form: ReturnType<typeof timestampForm>): CauseCode {
  if (parseCandidates(text, "auto") !== null) return "headers_swapped";
  if (text.includes(",") && form !== "date") return "header_duplicated";
  return /seconds$/.test(form) ? "timestamp_unit" : "timestamp_form";
}

/** Without the time of arrival a capture's age says nothing: but no capture comes from the future. */
export function ageStep(headers: readonly Header[], { timestampFormat, tolerance, at, now }: Circumstances): Step {
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
  const taken = `up to ${spanText(tolerance.pastMs)} is taken`;
  const base = { name, text: `signed ${distance} it arrived; ${taken}` } as const;
  return verdict === null ? { ...base, ok: true } : { ...base, ok: false, cause: "too_old" };
}

export function signatureFormStep(headers: readonly Header[], { encoding }: Circumstances): Step {
  const name = "signature form";
  const text = readHeader(headerRecord(headers), SIGNATURE_HEADER);
  if (text === undefined) return { name, ok: null, text: "there is none" };
  const candidates = parseCandidates(text, encoding);
  const shown = `${text.length} characters`;
  if (candidates !== null) {
    return { name, ok: true, text: `${shown}: ${candidates.length === 1 ? "one" : candidates.length} of 32 bytes` };
  }
  if (parseCandidates(text, "auto") !== null) {
    return { name, ok: false, text: `${shown}, but no ${encoding}`, cause: "signature_encoding" };
  }
  const cause = parseTimestamp(text, "auto") === null ? "signature_form" : "headers_swapped";
  return { name, ok: false, text: `${shown}: not 64 hex digits, 44 of base64 or 43 of base64url`, cause };
}

/** @param problem why a receiver would refuse it; null if it would not */
export function secretStep({ secret, encoding }: GivenSecret, problem: string | null): Step {
  const name = "secret";
  if (problem !== null) return { name, ok: false, text: problem, cause: "secret_form" };
  const padded = secret === secret.trim() ? "" : "; it has white space at an end, which counts";
  return { name, ok: true, text: `of a form that a receiver takes, read as ${encoding}${padded}` };
}

/** `90 min`, `3 d`: the largest unit that it fills. */
function spanText(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms >= 2 * each) ?? [1, "ms"];
  return `${Math.round(ms / size)} ${unit}`;
}

/** A time that a date can hold, else nothing. */
function timeText(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : "no date";
}
