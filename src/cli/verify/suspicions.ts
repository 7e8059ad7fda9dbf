/** What a body itself says of why nothing makes its signature: signs, no proof. */
import type { Buffer } from "node:buffer";
import { isRecord } from "../../internal/options.ts";
import { TIMESTAMP_HEADER } from "../../signature/sign.ts";
import { parseTimestamp, readHeader } from "../../signature/verify.ts";
import { type Capture, declaredLength, firstValue, headerRecord } from "./capture.ts";
import type { CauseCode } from "./causes.ts";
import { jsonOf } from "./rewriting.ts";
import type { Step } from "./steps.ts";

/** The service's last attempt comes 81 minutes after the event; a while more for its queue. */
const LONGEST_WAY_MS = 86 * 60_000;
/** Two clocks of one service. */
const SKEW_MS = 5_000;

/** @param isSigned whether the signature is of this body: then nothing but a refused encoding can be wrong with it */
export function bodyStep(capture: Capture, isSigned: boolean | null): Step {
  const { headers, body } = capture;
  const name = "body";
  const encoding = firstValue(headers, "content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    const text = "Content-Encoding is not identity: a receiver answers 415 before it looks further";
    return { name, ok: false, text, cause: "body_compressed" };
  }
  const length = declaredLength(headers);
  const said = length === undefined || length === body.length ? "" : `, Content-Length says ${length}`;
  const text = `${body.length.toLocaleString("en-US")} bytes${said}`;
  if (isSigned) return { name, ok: true, text };
  const [cause, seen] = suspicionOf(capture) ?? [];
  return cause === undefined ? { name, ok: true, text } : { name, ok: false, text: `${text}; ${seen}`, cause };
}

/** The first that fits, of those that are hardest to mistake. */
function suspicionOf(capture: Capture): readonly [cause: CauseCode, seen: string] | null {
  const { body } = capture;
  if (body.length === 0) return ["body_empty", "it is empty"];
  if (isCompressed(body)) return ["body_compressed", "it begins as compressed data does"];
  const text = body.toString("utf8");
  const value = jsonOf(text.replace(/^\uFEFF/, ""));
  const length = declaredLength(capture.headers) ?? body.length;
  if (value === undefined && (length > body.length || isCutJson(text)))
    return ["body_truncated", "it ends in the midst"];
  if (text.includes("\uFFFD")) return ["body_charset", "it holds characters that could not be decoded"];
  if (value === undefined) return null;
  if (isFormatted(text)) return ["body_reserialised", "it is laid out for people to read"];
  if (length !== body.length) return ["body_of_another_request", "it is whole, but of another length"];
  return isOfAnotherTime(capture, value) ? ["body_of_another_request", "its event is of another time"] : null;
}

function isCompressed(body: Buffer): boolean {
  const [first, second] = body;
  return first === 0x1f && second === 0x8b;
}

function isCutJson(text: string): boolean {
  return /^\s*[[{]/.test(text) && !/[\]}]\s*$/.test(text);
}

function isFormatted(text: string): boolean {
  return /^\s*[[{]\s*\n\s/.test(text);
}

/** Signed before it happened, or longer after it than the service tries. */
function isOfAnotherTime({ headers }: Capture, value: unknown): boolean {
  const text = readHeader(headerRecord(headers), TIMESTAMP_HEADER);
  const signedAt = text === undefined ? null : parseTimestamp(text, "auto");
  const occurredAt = isRecord(value) ? value.occurredAt : undefined;
  if (signedAt === null || typeof occurredAt !== "number") return false;
  return occurredAt - signedAt > SKEW_MS || signedAt - occurredAt > LONGEST_WAY_MS;
}
