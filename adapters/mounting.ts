/** What all adapters share: their options, passing a request to the receiver, verification alone, and how to fix a wrong mounting. */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  type Answer,
  answers,
  createVerifier,
  type IncomingWebhook,
  type Receiver,
  refuseUnknownOptions,
  SetupError,
  type SourceEvents,
  type SourceVerifierOptions,
  type UnverifiedWebhook,
  type VerifiedRequestOf,
  type VerifiedWebhook,
  type VerifierOptions,
} from "../src/index.ts";
import { errorPlaceOf } from "../src/internal/foreign-error.ts";

/** The part of a receiver that an adapter uses. */
export type WebhookReceiver = Pick<Receiver, "handle" | "logger">;

/** Options of every adapter; `Request` is the framework's own. */
export interface WebhookOptions<Request> {
  /**
   * Names the tenant whose secrets to use, for an async keyring. Nothing in the request is verified yet: derive it from the
   * host or the path, never from the body. Each secret of a tenant must say whose it is: `tenant`. Default: none.
   */
  readonly tenant?: (request: Request) => string | undefined;
  /** The name of the route the receiver is mounted on, for an async keyring. Default: none. */
  readonly route?: string;
}

/** A request as an adapter passes it to the receiver. */
export type Conversion = Pick<IncomingWebhook, "method" | "headers" | "url" | "readBody">;

const WEBHOOK_OPTIONS = ["tenant", "route"];

/**
 * Checks what the adapter `owner` was mounted with; `others` are options of this adapter alone.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option, naming the likely one
 */
export function checkWebhookOptions(
  owner: string,
  receiver: Partial<WebhookReceiver> | undefined,
  options: unknown,
  others: readonly string[] = [],
): void {
  if (typeof receiver?.handle !== "function") {
    throw new SetupError("invalid_option", `${owner} takes the receiver that createReceiver() makes, not its options.`);
  }
  refuseUnknownOptions(owner, options, [...WEBHOOK_OPTIONS, ...others]);
}

/**
 * @throws TypeError for anything but a string or undefined: the promise of an `async` function would be one tenant for everyone. Also
 *   throws what `tenant` throws
 */
function tenantOf<Request>(
  tenant: ((request: Request) => string | undefined) | undefined,
  request: Request,
): string | undefined {
  const name: unknown = tenant?.(request);
  if (name === undefined || typeof name === "string") return name;
  throw new TypeError("tenant must return a string.");
}

/** Passes a request to the receiver. Neither throws nor rejects, whatever the application's `tenant` does. */
export function answerTo<Request>(
  receiver: WebhookReceiver,
  { method, headers, url, readBody }: Conversion,
  request: Request,
  options: WebhookOptions<Request>,
): Promise<Answer> | Answer {
  try {
    const tenant = tenantOf(options.tenant, request);
    return receiver.handle({ method, headers, url, readBody, tenant, route: options.route });
  } catch (error) {
    const reason = error instanceof Error ? error.name : typeof error;
    const message = "The adapter's tenant option threw or did not return a string: the request was answered with 500.";
    const { at } = errorPlaceOf(error);
    receiver.logger.error({ reason, ...(at && { at }) }, message);
    return answers.unread(answers.MISCONFIGURED);
  }
}

/** Options of the `…Verify` functions, for applications with their own inbox; `Request` is the framework's own. */
export interface WebhookVerifyOptions<Request> extends VerifierOptions {
  /**
   * Names the tenant whose secrets to use, when `secrets` is a function. Nothing in the request is verified yet. Each secret of a
   * tenant must name its `apiClientId`.
   */
  readonly tenant?: (request: Request) => string | undefined;
}

/** A typed record, so that no option is forgotten. */
const VERIFY_OPTIONS: Readonly<Record<keyof WebhookVerifyOptions<never>, true>> = {
  secrets: true,
  toleranceMs: true,
  timestampFormat: true,
  encoding: true,
  maxBodyBytes: true,
  logger: true,
  tenant: true,
};

/** The same for a source besides the messaging service. */
export interface SourceVerifyOptions<Request, E extends SourceEvents = SourceEvents> extends SourceVerifierOptions<E> {
  /** Names the tenant whose secrets to use, when the source's `secrets` is a function. Nothing in the request is verified yet. */
  readonly tenant?: (request: Request) => string | undefined;
}

const SOURCE_VERIFY_OPTIONS: Readonly<Record<keyof SourceVerifyOptions<never>, true>> = {
  source: true,
  logger: true,
  tenant: true,
};

/**
 * Creates the function behind a `…Verify`. It never rejects, whatever the application's `tenant` does.
 *
 * @throws SetupError for a wrong option or secret, at creation
 */
export function createRequestVerifier<Request>(
  owner: string,
  options: WebhookVerifyOptions<Request>,
): (incoming: Conversion, request: Request) => Promise<VerifiedWebhook>;
export function createRequestVerifier<Request, E extends SourceEvents>(
  owner: string,
  options: SourceVerifyOptions<Request, E>,
): (incoming: Conversion, request: Request) => Promise<VerifiedRequestOf<E["any"]>>;
export function createRequestVerifier<Request>(
  owner: string,
  options: WebhookVerifyOptions<Request> | SourceVerifyOptions<Request>,
): (incoming: Conversion, request: Request) => Promise<VerifiedRequestOf<object>>;
export function createRequestVerifier<Request>(
  owner: string,
  options: WebhookVerifyOptions<Request> | SourceVerifyOptions<Request>,
): (incoming: Conversion, request: Request) => Promise<VerifiedRequestOf<object>> {
  const known = "source" in Object(options) ? SOURCE_VERIFY_OPTIONS : VERIFY_OPTIONS;
  refuseUnknownOptions(owner, options, Object.keys(known));
  const { tenant: nameOf, ...policy } = options;
  const verify: (incoming: UnverifiedWebhook) => Promise<VerifiedRequestOf<object>> =
    "source" in policy ? createVerifier(policy) : createVerifier(policy);
  return (incoming, request) =>
    verify({
      ...incoming,
      // Read after the headers were checked. The verifier handles an exception as any other set-up mistake.
      get tenant() {
        try {
          return tenantOf(nameOf, request);
        } catch (error) {
          throw tenantThrew(owner, error);
        }
      },
    });
}

/** The error's own message may quote the request. */
function tenantThrew(owner: string, error: unknown): SetupError {
  const kind = error instanceof Error ? error.name : typeof error;
  return new SetupError("invalid_option", `Option "tenant" of ${owner} threw or did not return a string (${kind}).`, {
    cause: error,
  });
}

// Mistakes in mounting: the fix is written in the terms of the host that the request seems to come from.

/** Any value that a host may pass; its properties are inspected and never trusted. */
type Unknown = Readonly<Record<string, unknown>>;

export interface WrongArguments {
  readonly fix: string;
  /** Node's own pair inside the host's objects, so that the request can be answered. */
  readonly exchange: { readonly request: IncomingMessage; readonly response: ServerResponse } | null;
}

/** Where hosts keep Node's request and response in the arguments of their handlers. */
const PLACES: readonly {
  readonly fix: string;
  find(request: Unknown, response: Unknown): { readonly request: unknown; readonly response: unknown };
}[] = [
  {
    fix: "In Koa: await hook(ctx.req, ctx.res).",
    find: (request, response) => ({ request: request.req, response: response.res ?? request.res }),
  },
  {
    fix: "In Fastify: register fastifyWebhook of oncehook/fastify.",
    find: (request, reply) => ({ request: request.raw, response: reply.raw }),
  },
  {
    fix: 'In hapi: await hook(request.raw.req, request.raw.res), return h.abandon, and give the route payload: { parse: false, output: "stream" }.',
    find: ({ raw }) => ({ request: looked(raw).req, response: looked(raw).res }),
  },
  {
    fix: "In h3 and Nitro: await hook(event.node.req, event.node.res).",
    find: ({ node }) => ({ request: looked(node).req, response: looked(node).res }),
  },
];

/** Null when they are Node's own. */
export function wrongNodeArguments(request: unknown, response: unknown): WrongArguments | null {
  if (isNodeRequest(request) && isNodeResponse(response)) return null;
  for (const { fix, find } of PLACES) {
    const found = find(looked(request), looked(response));
    if (isNodeRequest(found.request) && isNodeResponse(found.response))
      return { fix, exchange: { request: found.request, response: found.response } };
  }
  const fix = isFetchRequest(request)
    ? "It got a fetch Request: use oncehook/fetch."
    : "Pass both: hook(request, response).";
  return { fix, exchange: null };
}

/** How to pass the fetch `Request`; null when it was passed. */
export function wrongFetchArgument(request: unknown): string | null {
  if (isFetchRequest(request)) return null;
  const { raw, req, node, request: inner } = looked(request);
  if (isFetchRequest(raw) || isFetchRequest(looked(req).raw)) return "In Hono: handle(c.req.raw).";
  if (isFetchRequest(req)) return "In h3 and Nitro: handle(event.req).";
  if (isNodeRequest(looked(node).req)) return "In h3 1 and Nitro 2: handle(toWebRequest(event)).";
  if (isFetchRequest(inner)) return "In Elysia, SvelteKit, Astro and React Router: handle(context.request).";
  if (isNodeRequest(request)) return "It got a request of node:http: use oncehook/node, or oncehook/express.";
  return "Pass the Request itself.";
}

/** How to leave the bytes of a Node request to the receiver, when something else has read them. */
export function parsedBodyFix(kept: object): string {
  const { rawBody, body, raw, server, cookies, query } = looked(kept);
  if (typeof rawBody === "string") return STRING_RAW_BODY;
  if (typeof body === "string") return STRING_BODY;
  if (raw !== undefined && server !== undefined) return FASTIFY;
  if (isExpressRequest(kept)) return EXPRESS;
  return cookies !== undefined && query !== undefined ? NEXT_PAGES : NODE;
}

const STRING_RAW_BODY =
  "request.rawBody is a string, whose bytes may not be those that were signed. Keep the bytes there, as a Buffer.";
const STRING_BODY =
  'request.body is a string, so its bytes are gone. Replace express.text() by express.raw({ type: "*/*" }).';
const FASTIFY =
  "In Fastify a hook or parser read it: call leaveBodiesUnread(scope) in the scope of the routes of fastifyVerify, and read no bodies in " +
  "preParsing hooks. In NestJS: register fastifyWebhook with app.register() before app.listen().";
const EXPRESS =
  'In Express: mount the receiver before express.json() and other body parsers, or keep the bytes: express.json({ verify: captureRawBody, limit: "256kb" }). ' +
  "In NestJS: mount it with app.use() in main.ts, or pass { rawBody: true } to NestFactory.create().";
const NEXT_PAGES = "A Next.js pages route needs: export const config = { api: { bodyParser: false } }.";
const NODE =
  'In Koa: mount the receiver before koa-bodyparser. In hapi: give the route payload: { parse: false, output: "stream" }. ' +
  "In h3 and Nitro: call no readBody() before it. Elsewhere: keep the bytes as a Buffer in request.rawBody.";

/** The same for a fetch `Request`, which does not reveal its host. */
export const READ_REQUEST_FIX =
  "Something read request.body before the receiver. In Hono: call no c.req.json(), c.req.text() or validator before it. In Elysia: give the route " +
  '{ parse: "none" }. In Next.js: call no request.json() before it. Elsewhere: pass a request.clone() made before the body was read.';

/** Includes NestJS, which uses Express by default. */
export function isExpressRequest(request: object): boolean {
  const { app, res } = looked(request);
  return typeof app === "function" && res !== undefined;
}

function isNodeRequest(value: unknown): value is IncomingMessage {
  const { on, method, headers } = looked(value);
  return typeof on === "function" && typeof method === "string" && typeof headers === "object";
}

function isNodeResponse(value: unknown): value is ServerResponse {
  const { writeHead, end } = looked(value);
  return typeof writeHead === "function" && typeof end === "function";
}

function isFetchRequest(value: unknown): value is Request {
  const { method, headers } = looked(value);
  return typeof method === "string" && typeof looked(headers).get === "function";
}

const NOTHING: Unknown = {};

function looked(value: unknown): Unknown {
  return typeof value === "object" && value !== null ? (value as Unknown) : NOTHING;
}
