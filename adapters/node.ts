/** The adapter for `node:http`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Mountable } from "../src/inspector/index.ts";
import { sendAnswer } from "./node-answer.ts";
import { convert } from "./node-body.ts";
import { sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { answerTo, checkWebhookOptions, type WebhookOptions, type WebhookReceiver } from "./webhook-options.ts";

export type { WebhookOptions, WebhookReceiver };

/**
 * Makes the listener for `http.createServer`. It answers every request itself and never throws. The exact bytes come from
 * the request's stream, or from a `Uint8Array` in `request.rawBody` or `request.body` if something else read them first.
 *
 * @throws SetupError `invalid_option` for what is no receiver, and for an unknown option
 * @example
 * const server = createServer(nodeWebhook(receiver));
 */
export function nodeWebhook<Request extends IncomingMessage = IncomingMessage>(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: ServerResponse) => void {
  checkWebhookOptions("nodeWebhook()", { receiver, options });
  return (request, response) => {
    const answer = answerTo(receiver, convert(request), { request, options });
    if (answer instanceof Promise) void answer.then((settled) => sendAnswer(settled, request, response));
    else sendAnswer(answer, request, response);
  };
}

/**
 * Makes the listener of an inspector for `http.createServer`. It answers every request itself, one outside of the
 * inspector's path with 404, and never throws.
 *
 * @example
 * const server = createServer(nodeInspector(inspector));
 */
export function nodeInspector<Request extends IncomingMessage = IncomingMessage>(
  inspector: Mountable<Request>,
): (request: Request, response: ServerResponse) => void {
  return (request, response) => {
    const asked = toInspectorRequest({ native: request, request, response, url: request.url ?? "" });
    void inspector.handle(asked).then((answer) => sendInspectorAnswer(answer, request, response));
  };
}
