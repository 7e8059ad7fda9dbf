/** A publisher that posts events to an application in any language, signed with a secret of its own. */

import { OncehookError, PermanentError, RetryAfter } from "../errors.ts";
import { backoffMs } from "../inbox/gap.ts";
import { systemClock, systemRandom } from "../internal/clock.ts";
import { atFirstUse } from "../internal/environment.ts";
import { hasCredentials } from "../internal/network.ts";
import { invalidOption, refuseUnknownOptions } from "../internal/options.ts";
import { USER_AGENT } from "../internal/package.ts";
import { checkSecretText } from "../signature/secret.ts";
import { HmacKey } from "../signature/sign.ts";
import { type AnswerHead, poster } from "./http-exchange.ts";
import type { ForwardedMessage } from "./message.ts";
import type { Publisher } from "./publisher.ts";

export interface HttpPublisherOptions {
  /** Where events are posted: an `http://` or `https://` URL without a user name and password. Private addresses are welcome. */
  readonly url: string | URL;
  /** What each request is signed with: a text of at least 16 bytes, and not the webhook's secret, which is the service's. */
  readonly secret: string;
}

/** Answers of 4xx that time can mend: request time-out, conflict, too early, too many requests. */
const PASSING: readonly number[] = [408, 409, 425, 429];
/** What `Retry-After` may ask for at most. */
const LONGEST_RETRY_AFTER_MS = 3_600_000;

/**
 * Makes a publisher for `forward` and `passthrough` that posts each event to an application: its exact bytes as the body, and as headers
 * those of the message, `oncehook-id` and `oncehook-key` (see `ForwardedMessage`), and `oncehook-timestamp` (epoch milliseconds) with
 * `oncehook-signature`, the HMAC-SHA256 over `<timestamp>.<body>` in hex, as the service signs.
 *
 * A 2xx means handled. A 4xx but 408, 409, 425 and 429 is permanent: the event becomes a dead letter. Everything else, redirects
 * included, is tried again with the inbox's waits, or later if `Retry-After` asks for it, by an hour at most. An answer is waited for
 * until `handlerTimeoutMs`; its body is not read.
 *
 * @throws SetupError `invalid_option` or `invalid_secret`, in `next build` from `publish` if one is not set; from `publish`, `PermanentError`, `RetryAfter`, or `OncehookError`
 * `target_refused` for an answer that is no 2xx
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
