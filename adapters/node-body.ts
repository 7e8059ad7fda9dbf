/** The one raw-body reader: the exact bytes of a Node request, or the reason why they cannot be had. */
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import getRawBody from "raw-body";
import type { BodyReading, BodyResult } from "../src/index.ts";
import { parsedBodyFix } from "./host-fixes.ts";
import type { Conversion } from "./webhook-options.ts";

/** Where a capture hook or a raw parser may have kept the bytes; only a `Uint8Array` is believed. */
export interface KeptBody {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

const TOO_LARGE: BodyResult = { ok: false, reason: "too_large" };
const TRUNCATED: BodyResult = { ok: false, reason: "truncated" };
const CUT: BodyResult = { ok: false, reason: "cut" };

/** `request` as the receiver takes it. */
export function convert(request: IncomingMessage & KeptBody): Conversion {
  return {
    method: request.method ?? "",
    headers: request.headers,
    readBody: (reading) => readBody(request, request, reading),
  };
}

/**
 * Reads the exact bytes of `stream`, unless `kept` still has them. Never rejects. A body that the application parsed is
 * never written out again: other bytes with the same meaning have another signature (RCV-1).
 */
export function readBody(stream: Readable, kept: KeptBody, reading: BodyReading): Promise<BodyResult> | BodyResult {
  if (kept.rawBody instanceof Uint8Array) return takeKept(kept.rawBody, reading);
  if (kept.body instanceof Uint8Array) return takeKept(kept.body, reading);
  // After an empty body was consumed `readableDidRead` is false; in the midst of one `readableEnded` is.
  if (stream.readableEnded || stream.readableDidRead) return alreadyParsed(kept);
  if (stream.destroyed) return TRUNCATED;
  return new Promise((resolve) => readStream(stream, reading, (result) => resolve(result ?? alreadyParsed(kept))));
}

function alreadyParsed(kept: KeptBody): BodyResult {
  return { ok: false, reason: "already_parsed", fix: parsedBodyFix(kept) };
}

/** Checks bytes that were read before the adapter saw the request: their reader may have cut them, or allowed more. */
function takeKept(bytes: Uint8Array, reading: BodyReading): BodyResult {
  if (bytes.length > reading.maxBytes) return TOO_LARGE;
  if (reading.declaredBytes !== null && bytes.length !== reading.declaredBytes) return TRUNCATED;
  reading.received(bytes.length);
  return { ok: true, bytes };
}

function readStream(stream: Readable, reading: BodyReading, settle: (result: BodyResult | null) => void): void {
  let failure: BodyResult | undefined;
  let settled = false;
  const done = (result: BodyResult | null) => {
    settled = true;
    stream.removeListener("data", count);
    stream.removeListener("close", closed);
    settle(result);
  };
  const count = (chunk: Uint8Array) => reading.received(chunk.length);
  // raw-body waits for ever on a stream that closes without an end, an error or an abort.
  const closed = () => done(TRUNCATED);
  stream.on("data", count);
  stream.on("close", closed);
  getRawBody(stream, { limit: reading.maxBytes, length: reading.declaredBytes }, (error, bytes) => {
    done(error ? (failure ?? failureOf(error)) : { ok: true, bytes });
  });
  reading.onCut(() => {
    if (settled) return;
    failure = CUT;
    // raw-body stops for nothing but an error of its stream; it then drops what it buffered and pauses the stream.
    stream.emit("error", new Error("The read of this body was cut."));
  });
}

/** Null when somebody else has read it. */
function failureOf(error: { readonly type?: string }): BodyResult | null {
  if (error.type === "entity.too.large") return TOO_LARGE;
  // Someone set an encoding on the stream: it gives text now, and the bytes are gone.
  if (error.type === "stream.encoding.set") return null;
  return TRUNCATED;
}
