/** The adapter for hosts that use fetch: a `Request` in, a `Response` out. */
import { loggerOption, type WebhookEvent } from "../src/index.ts";
import type { Mountable } from "../src/inspector/index.ts";
import { answerOf, readRequestBody, refuseOthers, toResponse } from "./fetch-io.ts";
import {
  answerTo,
  type Conversion,
  checkWebhookOptions,
  createRequestVerifier,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
} from "./mounting.ts";

export type { WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

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
export type FetchVerified =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
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
export function fetchVerify(options: WebhookVerifyOptions<Request>): (request: Request) => Promise<FetchVerified> {
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
  return { method: request.method, headers: request.headers, readBody: (reading) => readRequestBody(request, reading) };
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
