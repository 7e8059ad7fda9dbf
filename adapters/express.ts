/** The adapter for Express 4.21 and 5. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { NextFunction, Request, Response } from "express";
import { loggerOption, type WebhookEvent } from "../src/index.ts";
import type { Mountable } from "../src/tools/inspector/index.ts";
import {
  checkWebhookOptions,
  createRequestVerifier,
  type SourceVerifyOptions,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
} from "./mounting.ts";
import { nodeHandler } from "./node.ts";
import { sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { convert, NodeAnswers } from "./node-io.ts";

export type { SourceVerifyOptions, WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

declare global {
  // The extension point that Express's typings provide.
  namespace Express {
    interface Request {
      /** The parsed event, set by `expressVerify`. */
      webhookEvent?: WebhookEvent;
      /** The parsed event of another source, set by `expressVerify({ source })`. */
      sourceEvent?: object;
    }
  }
}

/**
 * Creates the Express handler for one receiver. Mount it with `app.all`, so that other methods get 405, and before any
 * body parser. It answers every request itself and never calls `next`, because Express 4 leaves a rejected handler hanging. Its
 * promise settles when the response is written or its connection has closed, and never rejects. In a NestJS controller return it.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option
 * @example
 * app.all("/webhooks", expressWebhook(receiver));
 */
export function expressWebhook(
  receiver: WebhookReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: Response) => Promise<void> {
  checkWebhookOptions("expressWebhook()", receiver, options);
  return nodeHandler("expressWebhook()", receiver, options);
}

/**
 * Keeps the exact bytes for routes behind a global JSON parser: the `verify` function of `express.json`. Prefer to mount
 * the receiver before the parser. This function keeps a second copy of every JSON body of the application. The parser answers some
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
 * Creates a middleware that verifies and parses and stores nothing: it sets `req.webhookEvent` (with `source`: `req.sourceEvent`) and
 * `req.rawBody` and calls `next()`, or answers itself (401, 413, 415, 400, 500, 503, and 2xx to a handshake). Its promise then settles, and never rejects. Retries and replays within the
 * tolerance (5 minutes by default) pass again, and nothing is ordered: use a receiver for that. Set-up mistakes are logged to `logger`.
 *
 * @throws SetupError for a wrong option or secret
 * @example
 * app.post("/webhooks", expressVerify({ secrets: secret }), (req, res) => { … });
 */
export function expressVerify(
  options: WebhookVerifyOptions<Request> | SourceVerifyOptions<Request>,
): (request: Request, response: Response, next: NextFunction) => Promise<void> {
  const verify = createRequestVerifier("expressVerify()", options);
  const answers = new NodeAnswers(loggerOption(options.logger));
  return (request, response, next) =>
    verify(convert(request), request).then((result) => {
      if (!result.ok) return answers.send(result.answer, request, response);
      const event = "source" in options ? { sourceEvent: result.event } : { webhookEvent: result.event };
      Object.assign(request, event, { rawBody: result.bytes });
      return next();
    });
}

/**
 * Creates a middleware that serves an inspector at its own `path`, the path that browsers request, and passes everything else to
 * `next()`. Mount it with `app.use`, after the middleware that `authorize` needs, such as a session. A JSON parser may come
 * before it. If it answers itself, its promise settles when the response is written or its connection has closed.
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
    return inspector.handle(asked).then((answer) => sendInspectorAnswer(answers, answer, request, response));
  };
}

function isBelow(path: string, url: string): boolean {
  return url.startsWith(path) && ["", "/", "?"].includes(url.charAt(path.length));
}
