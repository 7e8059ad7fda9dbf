/** A route that drains the inbox when a cron calls it, for deployments without a running worker. */
import {
  atFirstUse,
  checkDrainOptions,
  type DrainResult,
  type Logger,
  OncehookError,
  type Receiver,
  refuseUnknownOptions,
  SetupError,
} from "../src/index.ts";
import { errorPlaceOf } from "../src/internal/foreign-error.ts";
import { isSameSecret } from "../src/internal/same-secret.ts";
import { closing } from "./fetch.ts";

const SHORTEST_SECRET_BYTES = 16;
/** Text that a header transports unchanged: senders encode characters above ASCII differently (RFC 9110, section 5.5). */
const HEADER_TEXT = new RegExp(`^[\\t\\x20-\\x7e]{${SHORTEST_SECRET_BYTES},}$`);

export interface DrainRouteOptions {
  /**
   * The secret that the cron sends as `Authorization: Bearer <secret>`: at least 16 bytes of ASCII. An unset variable is refused; in
   * `next build` not until the first request. A function is called at the first request, and again after it failed.
   */
  readonly secret: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** Passed to `receiver.drain`: milliseconds after which no further event is started. 1 to 86,400,000. Default: no bound. */
  readonly budgetMs?: number;
  /** Passed to `receiver.drain`: the most events to handle. 1 to 86,400,000. Default: no bound. */
  readonly limit?: number;
}

/**
 * Creates the exports of an app route for a cron. It answers 200 with the counts of the drain, 202 `busy` while an earlier
 * call in this process is still draining, and 401 without the secret. It answers 503 when the store or the function `secret` fails, and 500 for a
 * mistake in the set-up, such as missing handlers: the log says which. Retries and gaps are only as punctual as the cron.
 *
 * @throws SetupError `invalid_secret` when the secret is missing, blank, shorter than 16 bytes, or contains what a header cannot transport
 * @throws SetupError `invalid_option` for a missing receiver, an unknown option, or a value out of bounds
 * @example
 * export const { GET, POST } = drainRoute(receiver, { secret: process.env.CRON_SECRET });
 */
export function drainRoute(
  receiver: Pick<Receiver, "drain" | "logger">,
  options: DrainRouteOptions,
): Readonly<Record<"GET" | "POST", (request: Request) => Promise<Response>>> {
  if (typeof (receiver as Partial<typeof receiver> | undefined)?.drain !== "function") {
    throw new SetupError("invalid_option", "drainRoute() takes the receiver that createReceiver() makes.");
  }
  refuseUnknownOptions("drainRoute()", options, ["secret", "budgetMs", "limit"]);
  const { secret, ...limits } = options;
  checkDrainOptions(limits);
  const readExpected =
    typeof secret === "function" ? readOnce(secret) : atFirstUse([secret], () => expectedFor(secret));
  let isReadable = true;
  let draining: Promise<DrainResult> | undefined;
  const route = async (request: Request): Promise<Response> => {
    try {
      const read = readExpected();
      const expected = read instanceof Promise ? await read : read;
      if (!isSameSecret(request.headers.get("authorization") ?? "", expected)) return refused(request);
      isReadable = true;
    } catch (error) {
      // Logged once, because anyone can send such a request.
      if (isReadable)
        logDrainFailure(receiver.logger, error, "drainRoute could not read its secret; nothing was drained.");
      isReadable = false;
      return failed(error, request);
    }
    if (draining !== undefined) return json(202, { outcome: "busy" });
    try {
      draining = receiver.drain(limits);
      return json(200, { outcome: "drained", ...(await draining) });
    } catch (error) {
      logDrainFailure(receiver.logger, error, "drainRoute could not drain; accepted events wait for the next call.");
      return failed(error);
    } finally {
      draining = undefined;
    }
  };
  return { GET: route, POST: route };
}

/** Calls `read` at the first use, and again after a failure. */
function readOnce(read: () => unknown): () => Promise<string> {
  let reading: Promise<string> | undefined;
  return () => {
    reading ??= (async () => expectedFor(await read()))().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

function expectedFor(secret: unknown): string {
  return `Bearer ${checked(secret)}`;
}

function checked(secret: unknown): string {
  // Header values arrive trimmed: a secret read with a newline at its end could never match.
  if (typeof secret === "string" && secret === secret.trim() && HEADER_TEXT.test(secret)) return secret;
  throw new SetupError(
    "invalid_secret",
    `Option "secret" of drainRoute() must be a text of at least ${SHORTEST_SECRET_BYTES} bytes of ASCII, without line breaks and without white space around it. Is its environment variable set?`,
  );
}

/** @param unread - the request, if its body was not read */
function failed(error: unknown, unread?: Request): Response {
  const [status, content] =
    error instanceof SetupError
      ? ([500, { error: "misconfigured" }] as const)
      : ([503, { error: "unavailable" }] as const);
  return json(status, content, (unread?.body ?? null) === null ? {} : closing({}));
}

/** The request's body, if any, is not read. */
function refused({ body }: Request): Response {
  const headers = { "www-authenticate": "Bearer" };
  return json(401, { error: "unauthorized" }, body === null ? headers : closing(headers));
}

function json(status: number, content: object, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(content, { status, headers: { "cache-control": "no-store", ...headers } });
}

/** Logs our own errors in full, because they name the fix and contain no secrets; of other errors only the kind and the place. */
export function logDrainFailure(logger: Logger, error: unknown, message: string): void {
  if (error instanceof OncehookError) return logger.error({ code: error.code }, `${message} ${error.message}`);
  const { at } = errorPlaceOf(error);
  logger.error({ reason: error instanceof Error ? error.name : typeof error, ...(at && { at }) }, message);
}
