/** The adapter for Next.js: app routes, pages API routes, and what a development reload needs. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { SetupError, type SourceView } from "../src/index.ts";
import type { Mountable } from "../src/tools/inspector/index.ts";
import { logDrainFailure } from "./drain.ts";
import { fetchInspector, fetchWebhook } from "./fetch.ts";
import { checkWebhookOptions, type WebhookOptions } from "./mounting.ts";
import { nodeHandler } from "./node.ts";

export { type DrainRouteOptions, drainRoute } from "./drain.ts";

export type { WebhookOptions };

export interface NextWebhookOptions extends WebhookOptions<Request> {
  /**
   * `"after"` (default): if the receiver is not running, handles ready events after the response, in `after()` of
   * `next/server`. `"off"`: something else drains, for instance a cron on `drainRoute`.
   */
  readonly drain?: "after" | "off";
}

/** The part of a receiver, or of one of its sources, that this adapter uses. */
export interface NextReceiver extends Pick<SourceView, "handle" | "logger" | "key" | "running" | "drain"> {
  takeOver(previous: never): void;
}

/** A route handler of the app router. */
export type NextRoute = (request: Request) => Promise<Response>;

/** The exports of an app route. */
export type NextRoutes = Readonly<Record<"GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS", NextRoute>>;

/**
 * Creates the exports of an app route (`app/webhooks/route.ts`). Export GET too, and any other method, so that it gets the
 * receiver's 405. The file must also contain `export const runtime = "nodejs"`. Register the receiver's handlers first: on a
 * reload in development the receiver takes over the inbox and the worker of its predecessor with the same name and store.
 *
 * @throws SetupError `invalid_option` for a missing receiver, an unknown option or an unknown `drain`
 * @example
 * export const { GET, POST, PUT } = nextWebhook(receiver);
 */
export function nextWebhook(receiver: NextReceiver, options: NextWebhookOptions = {}): NextRoutes {
  checkWebhookOptions("nextWebhook()", receiver, options, ["drain"]);
  const { drain = "after", ...names } = options;
  if (drain !== "after" && drain !== "off")
    throw new SetupError("invalid_option", 'Option "drain" must be "after" or "off".');
  keepAcrossReloads(receiver);
  const handle = fetchWebhook(receiver, names);
  const route: NextRoute = async (request) => {
    const response = await handle(request);
    if (drain === "after" && response.ok && !receiver.running) await drainAfterResponse(receiver);
    return response;
  };
  return routesTo(route);
}

/** One route for every method, so that unsupported ones get 405. */
function routesTo(route: NextRoute): NextRoutes {
  return { GET: route, HEAD: route, POST: route, PUT: route, PATCH: route, DELETE: route, OPTIONS: route };
}

/** The event is already stored, so a failure here costs only time: the next request or cron drains it. */
async function drainAfterResponse(receiver: NextReceiver): Promise<void> {
  const failed = (message: string) => (error: unknown) => logDrainFailure(receiver.logger, error, message);
  try {
    // Loaded inside the call, so that this file also loads without Next.js, as in a unit test. With the file extension: Next.js
    // has no export map, and Node.js, which loads this package when it is external, does not find "next/server".
    const { after } = await import("next/server.js");
    after(() => receiver.drain().then(() => undefined, failed(NOT_DRAINED)));
  } catch (error) {
    failed(NO_AFTER)(error);
  }
}

const NOT_DRAINED = "Draining after the response failed; accepted events wait for the next drain.";
const NO_AFTER = `${NOT_DRAINED} It needs after() of Next.js 15.1 or later. With an older version, set drain: "off" and use drainRoute.`;

/**
 * Creates a pages API route (`pages/api/webhooks.ts`). Without `export const config = { api: { bodyParser: false } }` in that
 * file Next.js parses the body first, and every request gets 500 `raw_body_unavailable`. It does not drain: start the
 * receiver, or point a cron at `drainRoute`.
 *
 * @throws SetupError `invalid_option` for a missing receiver or an unknown option
 * @example
 * export const config = { api: { bodyParser: false } };
 * export default nextPagesWebhook(receiver);
 */
export function nextPagesWebhook<Request extends IncomingMessage = IncomingMessage>(
  receiver: NextReceiver,
  options: WebhookOptions<Request> = {},
): (request: Request, response: ServerResponse) => Promise<void> {
  checkWebhookOptions("nextPagesWebhook()", receiver, options);
  keepAcrossReloads(receiver);
  // Next.js treats the end of the promise as the end of the request.
  return nodeHandler("nextPagesWebhook()", receiver, options);
}

/**
 * Creates the exports of the app route that serves an inspector: `app/inspector/[[...path]]/route.ts` for the path
 * `/inspector`. The file must also contain `export const runtime = "nodejs"` and `export const dynamic = "force-dynamic"`.
 *
 * @example
 * export const { GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS } = nextInspector(inspector);
 */
export function nextInspector(inspector: Mountable<Request>): NextRoutes {
  return routesTo(fetchInspector(inspector));
}

const RECEIVERS = Symbol.for("oncehook.receivers");
/** All receivers in memory share this address, which does not identify an inbox. */
const MEMORY_SUFFIX = "@memory:";

/** The latest receiver of each name and store, by `receiver.key`. */
type KnownReceivers = Map<string, unknown>;

/**
 * Keeps one inbox and one worker when Next.js evaluates a module again, on a reload or once for each of its bundles: the newest
 * receiver of a name and store takes over the inbox and worker of its predecessor, with its own handlers, which must be registered
 * before. Nothing happens for another copy of this package, whose internals this one cannot see.
 */
function keepAcrossReloads(receiver: NextReceiver): void {
  if (receiver.key.endsWith(MEMORY_SUFFIX)) return;
  const known = knownReceivers();
  const previous = known.get(receiver.key);
  if (previous === receiver) return;
  // The same key means the same kind of receiver and store.
  if (previous instanceof receiver.constructor) receiver.takeOver(previous as never);
  known.set(receiver.key, receiver);
}

/** Lives outside the module's scope, because a reload clears that. */
function knownReceivers(): KnownReceivers {
  const holder = globalThis as { [RECEIVERS]?: KnownReceivers };
  holder[RECEIVERS] ??= new Map();
  return holder[RECEIVERS];
}
