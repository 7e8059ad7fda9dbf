/** The fetch side of an adapter: the exact bytes of a Request, and an answer as a Response. */
import { type Answer, answers, type BodyReading, type BodyResult, type Logger } from "../src/index.ts";
import { READ_REQUEST_FIX, wrongFetchArgument } from "./host-fixes.ts";

// Reads the exact bytes of a fetch `Request`, with a running limit.

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

// An answer as a fetch `Response`, and the answer to a caller that passes something else than a `Request`.

/** `answer` as a `Response`. */
export function toResponse({ status, headers, body, close }: Answer): Response {
  return new Response(body, { status, headers: close ? closing(headers) : headers });
}

/**
 * Asks the host to close the connection, for a body that is not read would be taken for the next request. A `Request` does not say
 * which HTTP it came by: HTTP/2 has no such header, and hosts drop it there.
 */
export function closing(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...headers, connection: "close" };
}

/** Makes the check of one mount: 500 for what is no `Request`, with the fix in the log, once; null for a `Request`. */
export function refuseOthers(owner: string, logger: () => Logger): (request: Request) => Response | null {
  let isReported = false;
  return (request) => {
    const fix = wrongFetchArgument(request);
    if (fix === null) return null;
    const message = `${owner} needs the fetch Request: a request was answered with 500. ${fix}`;
    if (!isReported) logger().error({ code: "wrong_arguments" }, message);
    isReported = true;
    return toResponse(answers.unread(answers.MISCONFIGURED));
  };
}
