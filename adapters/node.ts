/** The adapter for `node:http`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Mountable } from "../src/inspector/index.ts";
import { sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { convert, NodeAnswers } from "./node-io.ts";
import { answerTo, checkWebhookOptions, type WebhookOptions, type WebhookReceiver } from "./options.ts";

export type { WebhookOptions, WebhookReceiver };

/**
 * Makes the listener for `http.createServer`, and for every host that passes Node's own request and response on. It answers
 * every request itself. Its promise settles when the response is written out or its connection has closed, and never rejects: a host
 * that answers when its handler is done must return or await it. The exact bytes come from the request's stream, or from a
 * `Uint8Array` in `request.rawBody` or `request.body` if something else read them first.
 *
 * @throws SetupError `invalid_option` for what is no receiver, and for an unknown option; and for each call with something
 * else than Node's request and response, where there is nothing to answer
 * @example
 * const server = createServer(nodeWebhook(receiver));
 */
export function nodeWebhook<Request extends IncomingMessage = IncomingMessage>(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: ServerResponse) => Promise<void> {
  checkWebhookOptions("nodeWebhook()", { receiver, options });
  return nodeHandler("nodeWebhook()", receiver, options);
}

/** The same for adapters that have checked what they were mounted with, and are called `owner`. */
export function nodeHandler<Request extends IncomingMessage>(
  owner: string,
  receiver: WebhookReceiver,
  options: WebhookOptions<Request>,
): (request: Request, response: ServerResponse) => Promise<void> {
  const answers = new NodeAnswers(receiver.logger);
  return (request, response) => {
    const refused = answers.refuseWrongArguments(owner, request, response);
    if (refused !== null) return refused;
    const answer = answerTo(receiver, convert(request), { request, options });
    if (answer instanceof Promise) return answer.then((settled) => answers.send(settled, request, response));
    return answers.send(answer, request, response);
  };
}

/**
 * Makes the listener of an inspector for `http.createServer`. It answers every request itself, one outside of the
 * inspector's path with 404. Its promise settles when the response is written out or its connection has closed, and never rejects.
 *
 * @throws SetupError `invalid_option` for each call with something else than Node's request and response, where there is
 * nothing to answer

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
    return inspector.handle(asked).then((answer) => sendInspectorAnswer(answers, answer, { request, response }));
  };
}
