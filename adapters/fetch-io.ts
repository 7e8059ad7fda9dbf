/** Reads the exact bytes of a fetch `Request`, and turns an answer into a `Response`. */
import { type Answer, answers, type BodyReading, type BodyResult, type Logger } from "../src/index.ts";
import { READ_REQUEST_FIX, wrongFetchArgument } from "./host-fixes.ts";

type Failure = Extract<BodyResult, { ok: false }>["reason"];

/** Reads the body with a running limit. Never rejects. */
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
    // Either the read was cut, or the stream broke because the sender left or the host stopped.
    return failed(cut ? "cut" : "truncated");
  }
  if (reading.declaredBytes !== null && total !== reading.declaredBytes) return failed("truncated");
  return { ok: true, bytes: Buffer.concat(chunks, total) };
}

function failed(reason: Failure): BodyResult {
  return { ok: false, reason };
}

/** Turns an answer into a `Response`. */
export function toResponse({ status, headers, body, close }: Answer): Response {
  return new Response(body, { status, headers: close ? closing(headers) : headers });
}

/**
 * Asks the host to close the connection, because an unread body would be parsed as the next request. A `Request` does not say
 * which version of HTTP it used: HTTP/2 has no such header, and hosts drop it there.
 */
export function closing(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...headers, connection: "close" };
}

/** Creates the check of one mount: null for a `Request`, 500 for anything else. The fix is logged once. */
export function refuseOthers(owner: string, logger: Logger): (request: Request) => Response | null {
  let isReported = false;
  return (request) => {
    const fix = wrongFetchArgument(request);
    if (fix === null) return null;
    const message = `${owner} needs the fetch Request: a request was answered with 500. ${fix}`;
    if (!isReported) logger.error({ code: "wrong_arguments" }, message);
    isReported = true;
    return toResponse(answers.unread(answers.MISCONFIGURED));
  };
}
