/** A publisher that posts events to an application in any language, signed with a secret of its own. */
import { type ClientRequest, type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { OncehookError, PermanentError, RetryAfter } from "../../errors.ts";
import { backoffMs } from "../../inbox/gap.ts";
import { systemClock, systemRandom } from "../../internal/clock.ts";
import { hasCredentials } from "../../internal/network.ts";
import { invalidOption, refuseUnknownOptions } from "../../internal/options.ts";
import { USER_AGENT } from "../../internal/package.ts";
import { atFirstUse } from "../../internal/process.ts";
import { HmacKey } from "../../sources/hmac-key.ts";
import { checkSecretText } from "../../sources/secret.ts";
import type { ForwardedMessage, Publisher } from "./publisher.ts";

export interface HttpPublisherOptions {
  /** Where events are posted: an `http://` or `https://` URL without a user name and password. Private addresses are welcome. */
  readonly url: string | URL;
  /** What each request is signed with: a text of at least 16 bytes, and not the webhook's secret, which is the service's. */
  readonly secret: string;
}

/** Answers of 4xx that a retry can help: request time-out, conflict, too early, too many requests. */
const PASSING: readonly number[] = [408, 409, 425, 429];
/** What `Retry-After` may ask for at most. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;

/**
 * Makes a publisher for `forward` and `passthrough` that posts each event to an application, with its exact bytes as the body. The headers
 * are those of the message, `oncehook-id` and `oncehook-key` (see `ForwardedMessage`), `oncehook-timestamp` (epoch milliseconds) and
 * `oncehook-signature`: the HMAC-SHA256 over `<timestamp>.<body>` in hex, as the service signs.
 *
 * A 2xx means handled. A 4xx but 408, 409, 425 and 429 is permanent: the event becomes a dead letter. Everything else, redirects
 * included, is tried again with the inbox's waits, or later if `Retry-After` asks for it, by an hour at most. An answer is waited for
 * until `handlerTimeoutMs`; its body is not read.
 *
 * @throws SetupError `invalid_option` or `invalid_secret`, in `next build` from `publish` if one is not set; from `publish`, `PermanentError`, `RetryAfter`, or `OncehookError`
 * `target_refused` for an answer that is not a 2xx
 * @example
 * const handler = forward(httpPublisher({ url: "http://127.0.0.1:8000/events", secret: process.env.FORWARD_SECRET ?? "" }));
 * receiver.onAny(handler).onLate(handler);
 */
export function httpPublisher(options: HttpPublisherOptions): Publisher {
  refuseUnknownOptions("httpPublisher()", options, ["url", "secret"]);
  const { url, secret } = options;
  const target = atFirstUse([url, secret], () => ({
    post: poster(urlOption(url)),
    key: new HmacKey(Buffer.from(checkSecretText("secret", secret, "utf8"))),
  }));
  return {
    async publish(message) {
      const { post, key } = target();
      const { body, signal, attempt } = message;
      judge(await post({ headers: headersOf(message, key), body, signal }), attempt);
    },
  };
}

/** The value is never shown: an address may hold a password. */
function urlOption(value: unknown): URL {
  const text = value instanceof URL ? value.href : value;
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw invalidOption("url", "must be an http:// or https:// URL", value);
  if (hasCredentials(url))
    throw invalidOption("url", "must hold no user name and password: the application verifies the signature", value);
  return url;
}

function headersOf({ id, key, headers, body }: ForwardedMessage, secret: HmacKey): Record<string, string> {
  const timestamp = `${systemClock.now()}`;
  return {
    "content-type": "application/json",
    "user-agent": USER_AGENT,
    ...headers,
    "oncehook-id": id,
    "oncehook-key": key,
    "oncehook-timestamp": timestamp,
    "oncehook-signature": secret.digest(`${timestamp}.`, body).toString("hex"),
  };
}

function judge({ status, retryAfter }: AnswerHead, attempt: number | null): void {
  if (status >= 200 && status < 300) return;
  const answered = `The application answered ${status}`;
  if (status >= 400 && status < 500 && !PASSING.includes(status)) throw new PermanentError(`${answered}.`);
  const wishMs = retryAfterMs(retryAfter);
  if (wishMs === null) throw new OncehookError("target_refused", `${answered}.`, { fields: { status } });
  // Never sooner than without it: an application that asks for a second each time would be through with its attempts in twelve.
  const waitMs = Math.max(wishMs, backoffMs(attempt ?? 1, systemRandom));
  throw new RetryAfter(waitMs, `${answered} and asked for a retry in ${Math.ceil(wishMs / 1_000)} s.`);
}

/** Seconds, or a date (RFC 9110, 10.2.3); null for neither. */
function retryAfterMs(text: string | undefined): number | null {
  if (text === undefined) return null;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - systemClock.now();
  return Number.isNaN(ms) ? null : Math.min(Math.max(ms, 0), LONGEST_RETRY_AFTER_MS);
}

// One POST to an application, and the head of its answer; nothing of the answer's body is kept.

interface Post {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** What is looked at of an answer. */
interface AnswerHead {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** Of an answer's body this much is read, for so long, so that its connection can serve again; then the connection is cut. */
const DRAIN_BYTES = 64 * 1024;
const DRAIN_MS = 1_000;

/** Makes the function that posts to `url` over connections that are kept. It follows no redirect and uses no proxy. */
function poster(url: URL): (post: Post) => Promise<AnswerHead> {
  // Agents of our own: the global ones follow proxy variables if Node is set up so.
  const options = { keepAlive: true, scheduling: "lifo" } as const;
  const isSecure = url.protocol === "https:";
  const agent = isSecure ? new SecureAgent(options) : new PlainAgent(options);
  const open = ({ headers, body, signal }: Post, through: PlainAgent | false) => {
    const sent = {
      method: "POST",
      headers: { ...headers, "content-length": `${body.length}` },
      agent: through,
      signal,
    };
    return isSecure ? secureRequest(url, sent) : plainRequest(url, sent);
  };
  return async (post) => {
    const request = open(post, agent);
    try {
      return await exchange(request, post.body);
    } catch (error) {
      if (!request.reusedSocket || !isCut(error)) throw error;
      // The application ended an idle connection while the request was on its way. Whether it saw the request is unknown, as with any
      // failure; a new connection settles it, and no other kept one is tried: the event may be what ends them.
      return exchange(open(post, false), post.body);
    }
  };
}

function exchange(request: ClientRequest, body: Uint8Array): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    let answered = false;
    request.on("error", reject);
    // For what ends without an error, such as an answer that switches protocols.
    request.on("close", () => {
      if (!answered) reject(new Error("The application ended the connection without an answer."));
    });
    request.on("response", (response) => {
      const { statusCode = 0, headers } = response;
      answered = true;
      drain(response, request);
      resolve({ status: statusCode, retryAfter: headers["retry-after"] });
    });
    request.end(body);
  });
}

function drain(response: IncomingMessage, request: ClientRequest): void {
  let left = DRAIN_BYTES;
  const cut = () => request.destroy();
  const limit = systemClock.setTimeout(cut, DRAIN_MS);
  response.on("data", (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  // The status has said all: how the body ends changes nothing.
  response.on("error", () => {});
  response.on("close", () => limit.cancel());
}

function isCut(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}
