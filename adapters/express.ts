/** The adapter for Express 4.21 and 5. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NextFunction, Request, Response } from "express";
import { loggerOption, type WebhookEvent } from "../src/index.ts";
import type { Mountable } from "../src/inspector/index.ts";
import { nodeHandler } from "./node.ts";
import { sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { convert, NodeAnswers } from "./node-io.ts";
import {
  checkWebhookOptions,
  createRequestVerifier,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
} from "./options.ts";

export type { WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

declare global {
  // The way to add to Express's own request type, as its typings provide for.
  namespace Express {
    interface Request {
      /** Set by `expressVerify`: what was signed, parsed. */
      webhookEvent?: WebhookEvent;
    }
  }
}

/**
 * Makes the Express handler for one receiver. Mount it with `app.all`, so that other methods get their 405, and before any
 * body parser. It answers every request itself, and never calls `next`: Express 4 leaves a rejected handler hanging. Its
 * promise settles when the response is written out or its connection has closed, and never rejects. In a NestJS controller return it.
 *
 * @throws SetupError `invalid_option` for what is no receiver, and for an unknown option
 * @example
 * app.all("/webhooks", expressWebhook(receiver));
 */
export function expressWebhook(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: Response) => Promise<void> {
  checkWebhookOptions("expressWebhook()", { receiver, options });
  return nodeHandler("expressWebhook()", receiver, options);
}

/**
 * Keeps the exact bytes for routes behind a global JSON parser: the `verify` function of `express.json`. Prefer to mount
 * the receiver before the parser. This keeps a second copy of every JSON body of the application, and the parser answers some
 * deliveries before the receiver sees them: 413 above its `limit` (default 100 kB), 400 for a body that is not JSON, 415 for an
 * unknown charset.
 *
 * @example
 * app.use(express.json({ verify: captureRawBody, limit: "256kb" }));
 */
export function captureRawBody(
  request: IncomingMessage & { rawBody?: unknown },
  _response: ServerResponse,
  bytes: Buffer,
): void {
  request.rawBody = bytes;
}

/**
 * Makes a middleware that verifies and parses, and keeps nothing: it sets `req.webhookEvent` and `req.rawBody` and calls
 * `next()`, or answers itself (401, 413, 415, 400, 500, 503). Its promise settles then, and never rejects. Every retry and replay within the tolerance (5 minutes by
 * default) passes again, and nothing is ordered: a receiver does that. What is wrong with the set-up goes to `logger`.
 *
 * @throws SetupError for a wrong option or secret
 * @example
 * app.post("/webhooks", expressVerify({ secrets: secret }), (req, res) => { … });
 */
export function expressVerify(
  options: WebhookVerifyOptions<Request>,
): (request: Request, response: Response, next: NextFunction) => Promise<void> {
  const verify = createRequestVerifier("expressVerify()", options);
  const answers = new NodeAnswers(loggerOption(options.logger));
  return (request, response, next) =>
    verify(convert(request), request).then((result) => {
      if (!result.ok) return answers.send(result.answer, request, response);
      Object.assign(request, { webhookEvent: result.event, rawBody: result.bytes });
      return next();
    });
}

/**
 * Makes a middleware that serves an inspector at its own `path`, as browsers ask for it, and leaves everything else to
 * `next()`. Mount it with `app.use`, behind what tells `authorize` who asks, such as a session; a JSON parser may stand
 * before it. Where it answers itself, its promise settles when the response is written out or its connection has closed.
 *
 * @example
 * app.use(expressInspector(inspector));
 */
export function expressInspector(
  inspector: Mountable<Request>,
): (request: Request, response: Response, next: NextFunction) => Promise<void> | void {
  const answers = new NodeAnswers(inspector.logger);
  return (request, response, next) => {
    const url = request.originalUrl;
    if (!isBelow(inspector.path, url)) return next();
    const asked = toInspectorRequest({ native: request, request, response, url });
    return inspector.handle(asked).then((answer) => sendInspectorAnswer(answers, answer, { request, response }));
  };
}

function isBelow(path: string, url: string): boolean {
  return url.startsWith(path) && ["", "/", "?"].includes(url.charAt(path.length));
}
