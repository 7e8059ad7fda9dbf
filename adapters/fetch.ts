/** The adapter for everything that speaks fetch: a `Request` in, a `Response` out. */
import { loggerOption, type WebhookEvent } from "../src/index.ts";
import type { Mountable } from "../src/inspector/index.ts";
import { answerOf } from "./fetch-inspector.ts";
import { readRequestBody, refuseOthers, toResponse } from "./fetch-io.ts";
import {
  answerTo,
  type Conversion,
  checkWebhookOptions,
  createRequestVerifier,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
} from "./options.ts";

export type { WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

/**
 * Makes a fetch handler, for Hono and others. It answers every request itself and never rejects; the body is read from
 * `request.body` with a running limit. An answer to a request whose body was not read says `connection: close`; hosts drop that
 * header on HTTP/2, which has none.
 *
 * @throws SetupError `invalid_option` for what is no receiver, and for an unknown option
 * @example
 * app.all("/webhooks", (context) => handle(context.req.raw));   // const handle = fetchWebhook(receiver)
 */
export function fetchWebhook(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request) => Promise<Response> {
  checkWebhookOptions("fetchWebhook()", { receiver, options });
  const refuse = refuseOthers("fetchWebhook()", () => receiver.logger);
  return async (request) =>
    refuse(request) ?? toResponse(await answerTo(receiver, convert(request), { request, options }));
}

/** What `fetchVerify` finds: a delivery whose signature fits, or the answer to return as it is. */
export type FetchVerified =
  | { readonly ok: true; readonly event: WebhookEvent; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly response: Response };

/**
 * Makes a function that verifies and parses a request, and keeps nothing: retries and replays within the tolerance (5
 * minutes by default) pass again, and nothing is ordered. It never rejects; what is wrong with the set-up goes to `logger`.
 *
 * @throws SetupError for a wrong option or secret
 * @example
 * const delivery = await verify(request);   // const verify = fetchVerify({ secrets: secret })
 * if (!delivery.ok) return delivery.response;
 */
export function fetchVerify(options: WebhookVerifyOptions<Request>): (request: Request) => Promise<FetchVerified> {
  const verify = createRequestVerifier("fetchVerify()", options);
  const refuse = refuseOthers("fetchVerify()", () => loggerOption(options.logger));
  return async (request) => {
    const refused = refuse(request);
    if (refused !== null) return { ok: false, response: refused };
    const result = await verify(convert(request), request);
    return result.ok ? result : { ok: false, response: toResponse(result.answer) };
  };
}

/** `request` as the receiver takes it. */
function convert(request: Request): Conversion {
  return { method: request.method, headers: request.headers, readBody: (reading) => readRequestBody(request, reading) };
}

/**
 * Makes the fetch handler of an inspector, for Hono and others. It answers every request itself, one outside of the
 * inspector's path with 404, and never rejects.
 *
 * @example
 * app.all("/inspector/*", (context) => inspect(context.req.raw));   // const inspect = fetchInspector(inspector)
 */
export function fetchInspector(inspector: Mountable<Request>): (request: Request) => Promise<Response> {
  const refuse = refuseOthers("fetchInspector()", () => inspector.logger);
  return async (request) => refuse(request) ?? (await answerOf(inspector, request));
}
