/** The adapter for `node:http`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Mountable } from "../src/tools/inspector/index.ts";
import { answerTo, checkWebhookOptions, type WebhookOptions, type WebhookReceiver } from "./mounting.ts";
import { sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { convert, NodeAnswers } from "./node-io.ts";

export type { WebhookOptions, WebhookReceiver };

/**
 * Creates the listener for `http.createServer`, and for every host that passes on Node's own request and response. It answers
 * every request itself. Its promise settles when the response is written or its connection has closed, and never rejects. A host
 * that answers when its handler has finished must return or await it. The exact bytes come from the request's stream, or from a
 * `Uint8Array` in `request.rawBody` or `request.body` if something else read them first.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option. The listener itself throws it when called with
 * anything but Node's request and response, because then nothing can be answered
 * @example
 * const server = createServer(nodeWebhook(receiver));
 */
export function nodeWebhook<Request extends IncomingMessage = IncomingMessage>(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: ServerResponse) => Promise<void> {
  checkWebhookOptions("nodeWebhook()", receiver, options);
  return nodeHandler("nodeWebhook()", receiver, options);
}

/** As `nodeWebhook()`, for adapters that have checked their receiver and options. `owner` is the adapter's name in messages. */
export function nodeHandler<Request extends IncomingMessage>(
  owner: string,
  receiver: WebhookReceiver,
  options: WebhookOptions<Request>,
): (request: Request, response: ServerResponse) => Promise<void> {
  const answers = new NodeAnswers(receiver.logger);
  return (request, response) => {
    const refused = answers.refuseWrongArguments(owner, request, response);
    if (refused !== null) return refused;
    const answer = answerTo(receiver, convert(request), request, options);
    if (answer instanceof Promise) return answer.then((settled) => answers.send(settled, request, response));
    return answers.send(answer, request, response);
  };
}

/**
 * Creates the listener of an inspector for `http.createServer`. It answers every request itself, one outside the
 * inspector's path with 404. Its promise settles when the response is written or its connection has closed, and never rejects.
 *
 * @throws SetupError `invalid_option` when called with anything but Node's request and response, because then nothing can be answered
 * @example
 * const server = createServer(nodeInspector(inspector));
 */
export function nodeInspector<Request extends IncomingMessage = IncomingMessage>(
  inspector: Mountable<Request>,
): (request: Request, response: ServerResponse) => Promise<void> {
  const answers = new NodeAnswers(inspector.logger);
  return (request, response) => {
    const refused = answers.refuseWrongArguments("nodeInspector()", request, response);
    if (refused !== null) return refused;
    const asked = toInspectorRequest({ native: request, request, response, url: request.url ?? "" });
    return inspector.handle(asked).then((answer) => sendInspectorAnswer(answers, answer, request, response));
  };
}
