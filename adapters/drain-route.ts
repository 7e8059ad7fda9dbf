/** A route that drains the inbox when a cron calls it, for deployments without a running worker. */
import { createHash, timingSafeEqual } from "node:crypto";
import { type DrainResult, type Receiver, refuseUnknownOptions, SetupError } from "../src/index.ts";

const SHORTEST_SECRET_BYTES = 16;

export interface DrainRouteOptions {
  /** What the cron sends as `Authorization: Bearer <secret>`. At least 16 bytes; a variable that is not set is refused. */
  readonly secret: string | undefined;
  /** Passed to `receiver.drain`: milliseconds after which no further event is begun. */
  readonly budgetMs?: number;
  /** Passed to `receiver.drain`: events handled at most. */
  readonly limit?: number;
}

/**
 * Makes the exports of an app route that a cron calls. It answers 200 with what was drained, 202 `busy` while an earlier
 * call of this process is still at it, 401 without the secret, 503 when the store fails. Retries and gaps are as
 * punctual as the cron.
 *
 * @throws SetupError `invalid_secret` when the secret is missing, blank or shorter than 16 bytes, `invalid_option` for an
 *   unknown option
 * @example
 * export const { GET, POST } = drainRoute(receiver, { secret: process.env.CRON_SECRET });
 */
export function drainRoute(
  receiver: Pick<Receiver, "drain" | "logger">,
  options: DrainRouteOptions,
): Readonly<Record<"GET" | "POST", (request: Request) => Promise<Response>>> {
  refuseUnknownOptions("drainRoute()", options, ["secret", "budgetMs", "limit"]);
  const { secret, ...limits } = options;
  const expected = digest(`Bearer ${checked(secret)}`);
  let draining: Promise<DrainResult> | undefined;
  const route = async (request: Request): Promise<Response> => {
    // Digests have one length, so the comparison tells nothing, not even how long the secret is.
    if (!timingSafeEqual(digest(request.headers.get("authorization") ?? ""), expected)) return refused();
    if (draining !== undefined) return json(202, { outcome: "busy" });
    try {
      draining = receiver.drain(limits);
      return json(200, { outcome: "drained", ...(await draining) });
    } catch (error) {
      const reason = error instanceof Error ? error.name : typeof error;
      receiver.logger.error({ reason }, "drainRoute could not drain; the next call tries again.");
      return json(503, { error: "unavailable" });
    } finally {
      draining = undefined;
    }
  };
  return { GET: route, POST: route };
}

function checked(secret: unknown): string {
  if (typeof secret === "string" && Buffer.byteLength(secret.trim()) >= SHORTEST_SECRET_BYTES) return secret;
  throw new SetupError(
    "invalid_secret",
    `Option "secret" of drainRoute() must be a text of at least ${SHORTEST_SECRET_BYTES} bytes.`,
  );
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function refused(): Response {
  return json(401, { error: "unauthorized" }, { "www-authenticate": "Bearer" });
}

function json(status: number, content: object, headers: Record<string, string> = {}): Response {
  return Response.json(content, { status, headers: { "cache-control": "no-store", ...headers } });
}
