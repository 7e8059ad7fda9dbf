/** A fetch `Request` as the inspector takes it, and its answer as a `Response`. */
import type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "../src/inspector/index.ts";
import { closing, readRequestBody } from "./fetch-io.ts";
import { endStream, jsonOf, readingUpTo } from "./inspector-io.ts";

/** Gives a request to the inspector. Never rejects. */
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

// A stream of the inspector as the body of a `Response`.

/**
 * Asks for a chunk when the host does. The stream is ended when the host cancels the body, or `signal` aborts; `gone` is told
 * of the former. A stream that fails breaks the body off: nobody shall take what came of it for all of it.
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
          // Its own message may hold anything.
          throw new Error("The inspector's stream failed.");
        });
        if (done) controller.close();
        else controller.enqueue(encoder.encode(value));
      },
      cancel: () => gone(),
    },
    // Nothing is asked for ahead.
    { highWaterMark: 0 },
  );
}
