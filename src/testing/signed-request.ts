/** Signed deliveries, and ones that were tampered with. */

import { refuseUnknownOptions } from "../internal/options.ts";
import type { IncomingWebhook } from "../receiver/incoming.ts";
import { type SignOptions, signPayload } from "../signature/sign.ts";
import type { HeaderSource } from "../signature/verify.ts";

/** The default secret of `signedRequest` and `deliver`: `createReceiver({ secrets: TEST_SECRET, … })`. */
export const TEST_SECRET = "whsec_for_tests_0123456789abcdef";

export type SignedRequestOptions = Partial<Pick<SignOptions, "secret" | "timestamp" | "unit" | "encoding">>;

/** The names of `SignedRequestOptions`. */
export const SIGNING_OPTIONS = [
  "secret",
  "timestamp",
  "unit",
  "encoding",
] as const satisfies (keyof SignedRequestOptions)[];

/** One delivery, ready for `fetch(url, request)`, for Fastify's `inject` as its `payload`, and for supertest's `send(String(body))`. */
export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Record<string, string>;
  /** A Buffer, as `signedRequest` and `tampered` make it: Fastify's `inject` writes any other bytes as JSON. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/**
 * Signs `content`: an event is written as JSON, bytes and texts are used as they are.
 *
 * @example
 * await fetch(url, signedRequest(fixtures.inbound()));
 */
export function signedRequest(
  content: object | string | Uint8Array,
  options: SignedRequestOptions = {},
): SignedRequest {
  refuseUnknownOptions("signedRequest()", options, SIGNING_OPTIONS);
  const body = bytesOf(content);
  const signature = signPayload({ secret: TEST_SECRET, ...options, body });
  return { method: "POST", headers: { "content-type": "application/json", ...signature }, body };
}

/** The same request with one bit of its body flipped, which a receiver that verifies the raw bytes refuses (RCV-1). */
export function tampered(request: SignedRequest, bit = 0): SignedRequest {
  const body = Buffer.from(request.body);
  const index = (bit >> 3) % Math.max(1, body.length);
  body[index] = (body[index] ?? 0) ^ (1 << (bit & 7));
  return { ...request, body };
}

/** A request as an adapter passes it to `receiver.handle`, without HTTP. */
export function incomingOf({ method, headers, body }: SignedRequest): IncomingWebhook {
  const source: HeaderSource = headers;
  return {
    method,
    headers: source,
    readBody(reading) {
      reading.received(body.byteLength);
      return { ok: true, bytes: body };
    },
  };
}

function bytesOf(content: object | string | Uint8Array): Uint8Array<ArrayBuffer> {
  if (content instanceof Uint8Array) return Buffer.from(content);
  return Buffer.from(typeof content === "string" ? content : JSON.stringify(content));
}
