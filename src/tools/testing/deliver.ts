/** Signed requests, as the service sends them; and `deliver`, which delivers one without HTTP and waits until it is settled. */

import { OncehookError } from "../../errors.ts";
import type { EventSummary, LaneRecord, LaneStatus } from "../../inbox/record.ts";
import { sleep, systemClock } from "../../internal/clock.ts";
import { sha256 } from "../../internal/json.ts";
import { invalidOption, refuseUnknownOptions } from "../../internal/options.ts";
import { type Answer, accepted, type IncomingWebhook } from "../../receiver/incoming.ts";
import type { Receiver } from "../../receiver/receiver.ts";
import type { HeaderSource } from "../../sources/headers.ts";
import { parseEvent, placeOf } from "../../sources/messaging/parse.ts";
import { type SignOptions, signPayload } from "../../sources/messaging/sign.ts";
import {
  isFormOf,
  isSignedSource,
  SIGNED_SOURCES,
  type SignedSource,
  sourceHeaders,
  TEST_SECRETS,
} from "./source-requests.ts";

/**
 * - `handled`, `unhandled`, `filtered`, `dead`, `late`, `discarded`: how the event ended.
 * - `retrying`: its handler failed and it is tried again later; advance the clock and `receiver.drain()`.
 * - `waiting`: it waits behind another event of its message, or, with `gaps: "wait"`, for a missing sequence.
 * - `quarantined`: the body is not an event.
 */
export type DeliveredState =
  | "handled"
  | "unhandled"
  | "filtered"
  | "dead"
  | "late"
  | "discarded"
  | "retrying"
  | "waiting"
  | "quarantined";

/** What became of an event that `deliver()` passed to a receiver. */
export interface Delivered {
  readonly state: DeliveredState;
  /** The answer that the service would have received. */
  readonly answer: Answer;
  /** The stored event without its body. Null if the body was quarantined, or if the event was filtered and has no order. */
  readonly record: EventSummary | null;
}

export interface DeliverOptions extends SignedRequestOptions {
  /** How long to wait for a receiver that was started, milliseconds. Default 5,000. */
  readonly timeoutMs?: number;
  /**
   * `"release"` (default): the event is handled although earlier events of its message are missing; `ctx.missing` names them.
   * `"wait"`: it waits for them, as it would in production.
   */
  readonly gaps?: "release" | "wait";
}

const POLL_MS = 5;
const FILTERED = accepted("filtered").body;

/**
 * Signs `content`, passes it to the receiver and waits until its claim has ended. A receiver that was not started is drained; then the
 * wait for a handler ends 30 s after the receiver's `handlerTimeoutMs`, by its clock.
 *
 * @throws OncehookError when the receiver refuses the request, naming the likely reason
 * @example
 * const receiver = createReceiver({ secrets: TEST_SECRET, store: memoryStore({ volatile: true }) });
 * receiver.on("message.delivery", handler);
 * const { state } = await deliver(receiver, fixtures.delivery());
 */
export async function deliver<Tx>(
  receiver: Receiver<Tx>,
  content: object | string | Uint8Array,
  options: DeliverOptions = {},
): Promise<Delivered> {
  refuseUnknownOptions("deliver()", options, [...SIGNING_OPTIONS, "timeoutMs", "gaps"]);
  const { timeoutMs = 5_000, gaps = "release", ...signing } = options;
  const request = signedRequest(content, { timestamp: receiver.clock.now(), ...signing });
  const answer = await receiver.handle(incomingOf(request));
  if (answer.status !== 200 && answer.status !== 503) throw refused(answer);
  const deadline = systemClock.monotonic() + timeoutMs;
  for (;;) {
    if (!receiver.running) await receiver.drain();
    const { lane, record } = await look(receiver, request.body);
    if (lane === "quarantined") return { state: "quarantined", answer, record: null };
    if (record === null && answer.body === FILTERED) return { state: "filtered", answer, record };
    if (lane === null || record === null) throw notStored(answer);
    const state = stateOf(record, lane.status);
    if (state === "waiting" && lane.status === "gap" && gaps === "release")
      await receiver.inbox.releaseGap(lane.id, { by: "deliver()" });
    else if (state !== null) return { state, answer, record };
    else if (systemClock.monotonic() > deadline) throw notSettled(timeoutMs);
    else await sleep(systemClock, POLL_MS);
  }
}

/** The stored event and its lane. */
async function look<Tx>(
  receiver: Receiver<Tx>,
  body: Uint8Array,
): Promise<{ lane: LaneRecord | null | "quarantined"; record: EventSummary | null }> {
  const parsed = parseEvent(body);
  if (!parsed.ok) return { lane: "quarantined", record: null };
  const { event } = parsed;
  const { lane: key, ownId, sequence } = placeOf(event, () => sha256(body).toString("hex"));
  const { source, tenant } = key;
  const lane = await receiver.inbox.lane(ownId === undefined ? key : { source, tenant, id: ownId });
  const record = lane?.events.find((one) => one.sequence === sequence && one.eventType === event.eventType);
  return { lane, record: record ?? null };
}

function stateOf(record: EventSummary, lane: LaneStatus): DeliveredState | null {
  if (record.state === "done") return record.outcome ?? "handled";
  if (record.state !== "pending") return record.state;
  if (lane === "leased" || lane === "ready" || lane === "idle") return null;
  return record.attempts > 0 ? "retrying" : "waiting";
}

function refused({ status, body }: Answer): OncehookError {
  const hint = status === 401 ? " Give the receiver TEST_SECRET, or pass { secret } to deliver()." : "";
  return new OncehookError("invalid_option", `The receiver answered ${status} ${body}.${hint}`);
}

function notSettled(timeoutMs: number): OncehookError {
  return new OncehookError("wait_timeout", `The event was not settled within ${timeoutMs} ms.`);
}

function notStored({ status, body }: Answer): OncehookError {
  return new OncehookError("store_unavailable", `The event was not stored; the receiver answered ${status} ${body}.`);
}

/** The default secret of `signedRequest` and `deliver`: `createReceiver({ secrets: TEST_SECRET, … })`. */
export const TEST_SECRET = "whsec_for_tests_0123456789abcdef";

export type SignedRequestOptions = Partial<Pick<SignOptions, "secret" | "timestamp" | "unit" | "encoding">>;

/** The names of `SignedRequestOptions`. */
const SIGNING_OPTIONS = ["secret", "timestamp", "unit", "encoding"] as const satisfies (keyof SignedRequestOptions)[];

/** One delivery, ready for `fetch(url, request)`, for Fastify's `inject` as its `payload`, and for supertest's `send(String(body))`. */
export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Record<string, string>;
  /** A Buffer, as `signedRequest` and `tampered` make it: Fastify's `inject` writes any other bytes as JSON. */
  readonly body: Uint8Array<ArrayBuffer>;
}

/** A request of another source. */
export interface SourceRequestOptions {
  /** The preset of oncehook/sources that the request is for. */
  readonly source: SignedSource;
  /** Default: the one of `TEST_SECRETS`. */
  readonly secret?: string;
  /** Epoch milliseconds. Default now. */
  readonly timestamp?: number;
  /** The type of the event, where a header has it: GitHub's event, Shopify's topic. Default `push`, `orders/create`. */
  readonly type?: string;
  /** The delivery's id, where a header has it. */
  readonly id?: string;
  /** The URL that Twilio signs, with its query. Default `https://example.com/webhooks`. With `bodySHA256` in its query the body is JSON. */
  readonly url?: string;
}

const SOURCE_OPTIONS = [
  "source",
  "secret",
  "timestamp",
  "type",
  "id",
  "url",
] as const satisfies readonly (keyof SourceRequestOptions)[];

/**
 * Signs `content`: an event is written as its provider writes it, bytes and texts are used as they are. With `source`, as another provider signs it.
 *
 * @throws SetupError for an unknown option or source
 * @example
 * await fetch(url, signedRequest(fixtures.inbound()));
 * await fetch(url, signedRequest(fixtures.stripe(), { source: "stripe" }));
 */
export function signedRequest(
  content: object | string | Uint8Array,
  options: SignedRequestOptions | SourceRequestOptions = {},
): SignedRequest {
  if ("source" in options) return sourceRequest(content, options);
  const body = bytesOf(content);
  refuseUnknownOptions("signedRequest()", options, SIGNING_OPTIONS);
  const signature = signPayload({ secret: TEST_SECRET, ...options, body });
  return { method: "POST", headers: { ...JSON_TYPE, ...signature }, body };
}

const JSON_TYPE = { "content-type": "application/json" };

function sourceRequest(content: object | string | Uint8Array, options: SourceRequestOptions): SignedRequest {
  refuseUnknownOptions("signedRequest()", options, SOURCE_OPTIONS);
  const { source, type, id, timestamp = systemClock.now(), url = "https://example.com/webhooks" } = options;
  if (!isSignedSource(source)) throw invalidOption("source", `must be one of ${SIGNED_SOURCES.join(", ")}`, source);
  const isEvent = typeof content === "object" && !(content instanceof Uint8Array);
  const body = bytesOf(isEvent && isFormOf(source, url) ? `${new URLSearchParams({ ...content })}` : content);
  const signing = { type, id, timestamp, url, secret: options.secret ?? TEST_SECRETS[source] };
  return { method: "POST", headers: { ...JSON_TYPE, ...sourceHeaders(source, body, signing) }, body };
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
