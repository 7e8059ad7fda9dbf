/** The adapter for Fastify 5. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { loggerOption, refuseUnknownOptions, SetupError, type WebhookEvent } from "../src/index.ts";
import type { InspectorAnswer, Mountable } from "../src/tools/inspector/index.ts";
import {
  answerTo,
  type Conversion,
  checkWebhookOptions,
  createRequestVerifier,
  type SourceVerifyOptions,
  type WebhookOptions,
  type WebhookReceiver,
  type WebhookVerifyOptions,
} from "./mounting.ts";
import { isOver, isWhole, sendInspectorAnswer, toInspectorRequest } from "./node-inspector.ts";
import { boundTaking, NodeAnswers, readNodeBody, type WholeAnswer } from "./node-io.ts";

export type { SourceVerifyOptions, WebhookOptions, WebhookReceiver, WebhookVerifyOptions };

export interface FastifyWebhookOptions extends WebhookOptions<FastifyRequest> {
  /** What `createReceiver()` returns. */
  readonly receiver: WebhookReceiver;
  /** The route's path, below the prefix of the surrounding scope. */
  readonly path: string;
}

/** Options that Fastify adds to those of every plugin. */
const FASTIFY_OPTIONS = ["prefix", "logLevel", "logSerializers"];

/**
 * The Fastify plugin. It registers `path` for all methods in a scope of its own, so that the application's parsers stay as
 * they are. Hooks of the surrounding scope run as on any route. The body reaches the receiver unread, so `bodyLimit` does not
 * apply and a malformed Content-Type causes no 415. A refusal that closes the connection bypasses `onSend`,
 * because Fastify cannot answer a request whose body is not read; `onResponse` and the log see it.
 *
 * @throws SetupError (as a rejection of the registration) `invalid_option` for a missing receiver, for a path that begins
 * without a slash, and for an unknown option
 * @example
 * await app.register(fastifyWebhook, { receiver, path: "/webhooks" });
 */
export async function fastifyWebhook(app: FastifyInstance, options: FastifyWebhookOptions): Promise<void> {
  const { receiver, path } = options;
  checkWebhookOptions("fastifyWebhook()", receiver, options, ["receiver", "path", ...FASTIFY_OPTIONS]);
  checkPath(path, app.prefix);
  // A scope of its own, even if this plugin is wrapped in fastify-plugin: the raw parser must not leak to other routes.
  const answers = new NodeAnswers(receiver.logger);
  await app.register(async (scope) => {
    leaveBodiesUnread(scope);
    scope.all(path, (request, reply) => {
      const answer = answerTo(receiver, convert(request), request, options);
      if (answer instanceof Promise) void answer.then((settled) => send(answers, settled, request, reply));
      else send(answers, answer, request, reply);
    });
  });
}

/** Fastify's own message names no option, and below a prefix it silently accepts "webhooks" as "/apiwebhooks". */
function checkPath(path: unknown, prefix: string): void {
  const isPath = typeof path === "string" && (/^[/*]/.test(path) || (path === "" && prefix !== ""));
  if (isPath) return;
  throw new SetupError(
    "invalid_option",
    'Option "path" of fastifyWebhook() must be the path of the route, with a slash before it: path: "/webhooks".',
    { fields: { option: "path" } },
  );
}

declare module "fastify" {
  interface FastifyRequest {
    /** The parsed event, set by `fastifyVerify`. */
    webhookEvent?: WebhookEvent;
    /** The parsed event of another source, set by `fastifyVerify({ source })`. */
    sourceEvent?: object;
  }
}

/**
 * Creates a preHandler that verifies and parses and stores nothing: it sets `request.webhookEvent` and leaves the bytes in
 * `request.body`, or answers itself. It needs the body unread: call `leaveBodiesUnread` in the scope of its routes.
 * Retries and replays within the tolerance (5 minutes by default) pass again, and nothing is ordered. Set-up mistakes are logged to
 * `logger`, not to Fastify's log: pass `app.log` to have them there.
 *
 * @throws SetupError for a wrong option or secret
 * @example
 * app.register(async (scope) => {
 *   leaveBodiesUnread(scope);
 *   scope.post("/webhooks", { preHandler: fastifyVerify({ secrets: secret }) }, handler);
 * });
 */
export function fastifyVerify(
  options: WebhookVerifyOptions<FastifyRequest> | SourceVerifyOptions<FastifyRequest>,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  const verify = createRequestVerifier("fastifyVerify()", options);
  const answers = new NodeAnswers(loggerOption(options.logger));
  return async (request, reply) => {
    const result = await verify(convert(request), request);
    if (!result.ok) return send(answers, result.answer, request, reply);
    Object.assign(request, "source" in options ? { sourceEvent: result.event } : { webhookEvent: result.event });
    request.body = result.bytes;
    return undefined;
  };
}

/**
 * Removes all parsers from `scope`, so that its routes get their bodies as unread streams, whatever the Content-Type. Pass
 * the scope of a plugin that is not wrapped in `fastify-plugin`. Routes outside stay as they are.
 */
export function leaveBodiesUnread(scope: FastifyInstance): void {
  removeParsers(scope);
  scope.addHook("onRequest", hideContentType);
}

function removeParsers(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, payload, done) => {
    // A stream that a preParsing hook put in place of the request can fail unread, because a refusal comes before the body.
    payload.on("error", () => {});
    done(null, payload);
  });
}

/** Fastify answers 415 to a malformed Content-Type before any parser runs. The service does not promise any Content-Type. */
function hideContentType(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  request.headers["content-type"] = "application/octet-stream";
  done();
}

function convert(request: FastifyRequest): Conversion {
  const stream = bodyStream(request);
  return {
    method: request.method,
    headers: request.headers,
    url: request.originalUrl,
    readBody: (reading) => readNodeBody(stream, request, reading),
  };
}

/** A preParsing hook may have replaced the request by another stream; a GET has no parsed body. */
function bodyStream({ body, raw }: FastifyRequest): Readable {
  return body instanceof Readable ? body : raw;
}

function send(answers: NodeAnswers, answer: WholeAnswer, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (answer.close) void answers.send(answer, request.raw, reply.hijack().raw);
  else answers.begin(request.raw, reply.raw, () => sendWhole(answer, reply));
  return reply;
}

function sendWhole({ status, headers, body }: WholeAnswer, reply: FastifyReply): void {
  reply.code(status).headers(headers).send(body);
  boundTaking(reply.raw);
}

export interface FastifyInspectorOptions {
  /** What `createInspector()` returns. */
  readonly inspector: Mountable<FastifyRequest>;
}

/**
 * The Fastify plugin that serves an inspector at its own `path`, the path that browsers request, in a scope of its own. Hooks of
 * the surrounding scope run as on any route. Streams bypass `onSend`; `onResponse` and the log see them. They end
 * when the application begins to close, because it would wait for them.
 *
 * @throws SetupError (as a rejection of the registration) `invalid_option` for an unknown option, or if the inspector's path is not
 * below the prefix
 * @example
 * await app.register(fastifyInspector, { inspector });
 */
export async function fastifyInspector(app: FastifyInstance, options: FastifyInspectorOptions): Promise<void> {
  refuseUnknownOptions("fastifyInspector()", options, ["inspector", ...FASTIFY_OPTIONS]);
  const { inspector } = options;
  const path = pathBelow(app.prefix, inspector.path);
  const closing = new AbortController();
  const answers = new NodeAnswers(inspector.logger);
  // Fastify waits for all answers before `onClose`, and bulk work may take hours.
  app.addHook("preClose", async () => closing.abort());
  await app.register(async (scope) => {
    removeParsers(scope);
    for (const route of [path || "/", `${path}/*`]) {
      scope.all(route, (request, reply) => {
        const asked = inspectorRequest(request, reply, closing.signal);
        void inspector.handle(asked).then((answer) => sendShown(answers, answer, request, reply));
      });
    }
  });
}

/** The inspector's path without the prefix that Fastify adds to each route of a scope. */
function pathBelow(prefix: string, path: string): string {
  if (path === prefix || path.startsWith(`${prefix}/`)) return path.slice(prefix.length);
  throw new SetupError(
    "invalid_option",
    `The inspector's path "${path}" is not below the prefix "${prefix}": give createInspector() the path that browsers ask for.`,
  );
}

/** A request for the inspector, whose signal also aborts when the application closes. */
function inspectorRequest(request: FastifyRequest, reply: FastifyReply, closing: AbortSignal) {
  const { raw, originalUrl: url } = request;
  const exchange = { native: request, request: raw, response: reply.raw, url, stream: bodyStream(request) };
  const asked = toInspectorRequest(exchange);
  return {
    ...asked,
    // Created on first use, because each one stays registered with `closing`.
    get signal() {
      return AbortSignal.any([asked.signal, closing]);
    },
  };
}

function sendShown(answers: NodeAnswers, answer: InspectorAnswer, request: FastifyRequest, reply: FastifyReply): void {
  if (isWhole(answer) && isOver(request.raw)) send(answers, { ...answer, close: false }, request, reply);
  else void sendInspectorAnswer(answers, answer, request.raw, reply.hijack().raw);
}
