/** The adapter for hosts that use fetch: a `Request` in, a `Response` out, for the webhook and for the inspector. */

import {
  type Answer,
  answers,
  type BodyReading,
  type BodyResult,
  type Logger,
  loggerOption,
  type SourceEvents,
  type WebhookEvent,
} from "../src/index.ts";
import type { InspectorAnswer, InspectorRequest, JsonReading, Mountable } from "../src/tools/inspector/index.ts";
import { endStream, jsonBody, readingUpTo } from "./inspector-io.ts";
import {
  answerTo,
  type Conversion,
  checkWebhookOptions,
  createRequestVerifier,
  READ_REQUEST_FIX,
  type SourceVerifyOptions,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
  wrongFetchArgument,
} from "./mounting.ts";

export type { SourceVerifyOptions, WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

/**
 * Creates a fetch handler, for Hono and others. It answers every request itself and never rejects. The body is read from
 * `request.body` with a running limit. If it was not read, the answer has the header `connection: close`. Hosts drop that
 * header on HTTP/2, which has no such header.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option
 * @example
 * app.all("/webhooks", (context) => handle(context.req.raw));   // const handle = fetchWebhook(receiver)
 */
export function fetchWebhook(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request) => Promise<Response> {
  checkWebhookOptions("fetchWebhook()", receiver, options);
  const refuse = refuseOthers("fetchWebhook()", receiver.logger);
  return async (request) => refuse(request) ?? toResponse(await answerTo(receiver, convert(request), request, options));
}

/** The result of `fetchVerify`: a verified delivery, or the response to return unchanged. */
export type FetchVerified<Event = WebhookEvent> =
  | { readonly ok: true; readonly event: Event; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly response: Response };

/**
 * Creates a function that verifies and parses a request and stores nothing: retries and replays within the tolerance (5
 * minutes by default) pass again, and nothing is ordered. It never rejects. Set-up mistakes are logged to `logger`.
 *
 * @throws SetupError for a wrong option or secret
 * @example
 * const delivery = await verify(request);   // const verify = fetchVerify({ secrets: secret })
 * if (!delivery.ok) return delivery.response;
 */
export function fetchVerify<E extends SourceEvents>(
  options: SourceVerifyOptions<Request, E>,
): (request: Request) => Promise<FetchVerified<E["any"]>>;
export function fetchVerify(options: WebhookVerifyOptions<Request>): (request: Request) => Promise<FetchVerified>;
export function fetchVerify(
  options: WebhookVerifyOptions<Request> | SourceVerifyOptions<Request>,
): (request: Request) => Promise<FetchVerified<object>> {
  const verify = createRequestVerifier("fetchVerify()", options);
  const refuse = refuseOthers("fetchVerify()", loggerOption(options.logger));
  return async (request) => {
    const refused = refuse(request);
    if (refused !== null) return { ok: false, response: refused };
    const result = await verify(convert(request), request);
    return result.ok ? result : { ok: false, response: toResponse(result.answer) };
  };
}

/** Converts a request to the form that the receiver takes. */
function convert(request: Request): Conversion {
  const { method, headers, url } = request;
  return { method, headers, url, readBody: (reading) => readRequestBody(request, reading) };
}

/**
 * Creates the fetch handler of an inspector, for Hono and others. It answers every request itself, one outside the
 * inspector's path with 404, and never rejects.
 *
 * @example
 * app.all("/inspector/*", (context) => inspect(context.req.raw));   // const inspect = fetchInspector(inspector)
 */
export function fetchInspector(inspector: Mountable<Request>): (request: Request) => Promise<Response> {
  const refuse = refuseOthers("fetchInspector()", inspector.logger);
  return async (request) => refuse(request) ?? (await answerOf(inspector, request));
}

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
      const turn = reading.received(value.length);
      total += value.length;
      chunks.push(value);
      if (total > reading.maxBytes) {
        reader.releaseLock();
        return failed("too_large");
      }
      if (turn !== undefined) await turn;
      if (cut) return failed("cut");
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
  // A response with status 204 may have no body, not even an empty one.
  return new Response(body === "" ? null : body, { status, headers: close ? closing(headers) : headers });
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
