/** Converts a fetch `Request` for the inspector, and its answer to a `Response`. */
import type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "../src/inspector/index.ts";
import { closing, readRequestBody } from "./fetch-io.ts";
import { endStream, jsonOf, readingUpTo } from "./inspector-io.ts";

/** Passes a request to the inspector. Never rejects. */
export async function answerOf(inspector: Mountable<Request>, request: Request): Promise<Response> {
  const gone = new AbortController();
  const signal = AbortSignal.any([request.signal, gone.signal]);
  let isRead = request.body === null;
  const readJson = async (maxBytes: number): Promise<JsonReading> => {
    const result = await readRequestBody(request, readingUpTo(maxBytes));
    isRead = result.ok;
    return jsonOf(result);
  };
  const answer = await inspector.handle(toInspectorRequest(request, { signal, readJson }));
  const headers = isRead ? answer.headers : closing(answer.headers);
  return toResponse({ ...answer, headers }, request, { signal, gone: () => gone.abort() });
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

function toResponse(
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
