/** Reads the exact bytes of a fetch `Request`, turns an answer into a `Response`, and does the same for the inspector. */
import { type Answer, answers, type BodyReading, type BodyResult, type Logger } from "../src/index.ts";
import type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "../src/inspector/index.ts";
import { endStream, jsonBody, readingUpTo } from "./inspector-io.ts";
import { READ_REQUEST_FIX, wrongFetchArgument } from "./mounting.ts";

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

/** Passes a request to the inspector. Never rejects. */
export async function answerOf(inspector: Mountable<Request>, request: Request): Promise<Response> {
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  let isRead = request.body === null;
  const readJson = async (maxBytes: number): Promise<JsonReading> => {
    const result = await readRequestBody(request, readingUpTo(maxBytes));
    isRead = result.ok;
    return jsonBody(result);
  };
  const answer = await inspector.handle(toInspectorRequest(request, { signal, readJson }));
  const headers = isRead ? answer.headers : closing(answer.headers);
  return inspectorResponse({ ...answer, headers }, request, { signal, gone: () => gone.abort() });
}

function toInspectorRequest(
  request: Request,
  reading: Pick<InspectorRequest, "signal" | "readJson">,
): InspectorRequest<Request> {
  const { pathname, search } = new URL(request.url);
  return {
    method: request.method,
    url: pathname + search,
    headers: request.headers,
    native: request,
    ...reading,
  };
}

function inspectorResponse(
  { status, headers, body }: InspectorAnswer,
  { method }: Request,
  ending: Parameters<typeof bodyOf>[1],
): Response {
  const init = { status, headers };
  if (typeof body === "string" || body instanceof Uint8Array)
    // A status such as 304 must not have even an empty body.
    return new Response(method === "HEAD" || body.length === 0 ? null : Buffer.from(body), init);
  const stream = bodyOf(body, ending);
  if (method !== "HEAD") return new Response(stream, init);
  ending.gone();
  return new Response(null, init);
}

/**
 * Turns a stream into the body of a `Response`, one chunk for each pull. The stream ends when the host cancels the body, which also
 * calls `gone`, or when `signal` aborts. A stream that fails breaks the body off, so that the reader does not take the part for the whole.
 */
export function bodyOf(
  chunks: AsyncIterable<string>,
  { signal, gone }: { readonly signal: AbortSignal; gone(): void },
): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  signal.addEventListener("abort", () => endStream(iterator));
  if (signal.aborted) endStream(iterator);
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await iterator.next().catch(() => {
          // The error's own message may contain anything.
          throw new Error("The inspector's stream failed.");
        });
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => gone(),
    },
    // Pull nothing ahead of the host.
    { highWaterMark: 0 },
  );
}
