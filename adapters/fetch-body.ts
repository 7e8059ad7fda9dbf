/** Reads the exact bytes of a fetch `Request`, with a running limit. */
import type { BodyReading, BodyResult } from "../src/index.ts";
import { READ_REQUEST_FIX } from "./host-fixes.ts";

type Failure = Extract<BodyResult, { ok: false }>["reason"];

/** Never rejects. */
export async function readRequestBody(request: Request, reading: BodyReading): Promise<BodyResult> {
  if (request.bodyUsed || request.body?.locked) return { ok: false, reason: "already_parsed", fix: READ_REQUEST_FIX };
  if (request.body === null) return reading.declaredBytes ? failed("truncated") : { ok: true, bytes: new Uint8Array() };
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let total = 0;
  let cut = false;
  // Never `cancel()`: on several hosts it closes the connection before the answer is out. A released read rejects.
  reading.onCut(() => {
    cut = true;
    reader.releaseLock();
  });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (cut) return failed("cut");
      if (done) break;
      reading.received(value.length);
      total += value.length;
      chunks.push(value);
      if (total > reading.maxBytes) {
        reader.releaseLock();
        return failed("too_large");
      }
    }
  } catch {
    // Cut, or the stream broke: the sender went away, or the host gave up on it.
    return failed(cut ? "cut" : "truncated");
  }
  if (reading.declaredBytes !== null && total !== reading.declaredBytes) return failed("truncated");
  return { ok: true, bytes: Buffer.concat(chunks, total) };
}

function failed(reason: Failure): BodyResult {
  return { ok: false, reason };
}
