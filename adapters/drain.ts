/** A route that drains the inbox when a cron calls it, for deployments without a running worker. */
import { createHash, timingSafeEqual } from "node:crypto";
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
import { closing } from "./fetch-io.ts";

const SHORTEST_SECRET_BYTES = 16;
/** What a header carries as it is: a byte above ASCII is another letter to each sender (RFC 9110, section 5.5). */
const HEADER_TEXT = new RegExp(`^[\\t\\x20-\\x7e]{${SHORTEST_SECRET_BYTES},}$`);

export interface DrainRouteOptions {
  /**
   * What the cron sends as `Authorization: Bearer <secret>`: at least 16 bytes of ASCII. A variable that is not set is refused, but in
   * `next build` only at the first request. A function is called at the first request, and again after it failed.
   */
  readonly secret: string | undefined | (() => string | undefined | Promise<string | undefined>);
  /** Passed to `receiver.drain`: milliseconds after which no further event is begun. 1 to 86,400,000. */
  readonly budgetMs?: number;
  /** Passed to `receiver.drain`: events handled at most. 1 to 86,400,000. */
  readonly limit?: number;
}

/**
 * Makes the exports of an app route that a cron calls. It answers 200 with what was drained, 202 `busy` while an earlier
 * call of this process is still at it, 401 without the secret, 503 when the store or the function `secret` fails, 500 for a mistake in
 * the set-up, such as no handlers; the log says which. Retries and gaps are as punctual as the cron.
 *
 * @throws SetupError `invalid_secret` when the secret is missing, blank, shorter than 16 bytes, or nothing that a header can carry
 * @throws SetupError `invalid_option` for what is no receiver, for an unknown option, or one beyond its bounds
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
      // Digests have one length, so the comparison tells nothing, not even how long the secret is.
      if (!timingSafeEqual(digest(request.headers.get("authorization") ?? ""), expected)) return refused(request);
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
function readOnce(read: () => unknown): () => Promise<Buffer> {
  let reading: Promise<Buffer> | undefined;
  return () => {
    reading ??= (async () => expectedFor(await read()))().catch((error: unknown) => {
      reading = undefined;
      throw error;
    });
    return reading;
  };
}

function expectedFor(secret: unknown): Buffer {
  return digest(`Bearer ${checked(secret)}`);
}

function checked(secret: unknown): string {
  // Header values arrive trimmed: a secret read with a newline at its end could never match.
  if (typeof secret === "string" && secret === secret.trim() && HEADER_TEXT.test(secret)) return secret;
  throw new SetupError(
    "invalid_secret",
    `Option "secret" of drainRoute() must be a text of at least ${SHORTEST_SECRET_BYTES} bytes of ASCII, without line breaks and without white space around it. Is its environment variable set?`,
  );
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** With the request whose body, if it has one, was not read. */
function failed(error: unknown, unread?: Request): Response {
  const [status, content] =
    error instanceof SetupError
      ? ([500, { error: "misconfigured" }] as const)
      : ([503, { error: "unavailable" }] as const);
  return json(status, content, (unread?.body ?? null) === null ? {} : closing({}));
}

/** Nobody reads the body that it may have. */
function refused({ body }: Request): Response {
  const headers = { "www-authenticate": "Bearer" };
  return json(401, { error: "unauthorized" }, body === null ? headers : closing(headers));
}

function json(status: number, content: object, headers: Readonly<Record<string, string>> = {}): Response {
  return Response.json(content, { status, headers: { "cache-control": "no-store", ...headers } });
}

// What the log says of a drain that failed.

/** Our own errors are told whole, for they name the fix and hold nothing secret; of others no more than their kind. */
export function logDrainFailure(logger: Logger, error: unknown, message: string): void {
  if (error instanceof OncehookError) return logger.error({ code: error.code }, `${message} ${error.message}`);
  const { at } = errorPlaceOf(error);
  logger.error({ reason: error instanceof Error ? error.name : typeof error, ...(at && { at }) }, message);
}
