/** A fetch `Request` as the inspector takes it, and its answer as a `Response`. */
import type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "../src/inspector/index.ts";
import { closing } from "./fetch-answer.ts";
import { readRequestBody } from "./fetch-body.ts";
import { bodyOf } from "./fetch-stream.ts";
import { jsonOf, readingUpTo } from "./json-body.ts";

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
