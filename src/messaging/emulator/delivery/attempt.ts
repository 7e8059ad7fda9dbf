/** One attempt: the request as the readings and faults want it, sent, and what came of it. */

import { SIGNATURE_HEADER, signPayload, TIMESTAMP_HEADER } from "../../../sources/messaging/sign.ts";
import { secretBytes } from "../../../sources/secret.ts";
import type { AttemptAction } from "../faults.ts";
import { withoutCredentials } from "../http/request-log.ts";
import type { EmulatorParts } from "../service.ts";
import type { Attempt, Delivery, EventRecord, FrozenSignature, Target } from "../state/records.ts";
import type { Readings } from "../unspecified.ts";
import type { Outgoing, Transport } from "./transport.ts";

export interface AttemptInput {
  readonly delivery: Delivery;
  readonly event: EventRecord;
  /** Null when there is none. */
  readonly target: Target | null;
  readonly trigger: Attempt["trigger"];
  /** Epoch ms on the emulator's clock. */
  readonly at: number;
  readonly actions: readonly AttemptAction[];
  /** Whether an answer waits for its end (DLV-20), perhaps one that a receiver's handler asked for. */
  readonly isAwaited: boolean;
}

interface AttemptMade {
  readonly attempt: Attempt;
  /** What the delivery keeps for its retries (DLV-17). */
  readonly frozen: FrozenSignature | null;
}

/** Never rejects for what a receiver does. */
export async function makeAttempt(
  ground: EmulatorParts,
  transport: Transport,
  input: AttemptInput,
): Promise<AttemptMade> {
  const { delivery, target, trigger, actions } = input;
  if (target === null) return { attempt: withoutTarget(trigger, input.at), frozen: delivery.frozen };
  const { systemClock } = ground.settings;
  const asked = systemClock.monotonic();
  let request = requestFor(ground, input, target);
  let begun = asked;
  const renew = () => {
    begun = systemClock.monotonic();
    if (begun - asked >= 1)
      request = requestFor(ground, { ...input, at: atAfter(ground, input.at, begun - asked) }, target);
    return request.outgoing;
  };
  const outcome = await (input.isAwaited
    ? transport.sendBesides(request.outgoing)
    : transport.send(request.outgoing, renew));
  const { at, outgoing, frozen } = request;
  const attempt = {
    trigger,
    at,
    durationMs: Math.round((systemClock.monotonic() - begun) * ground.time.rate),
    url: withoutCredentials(outgoing.url),
    requestHeaders: outgoing.headers,
    status: outcome.status,
    error: outcome.error,
    responseHeaders: outcome.headers,
    responseBody: outcome.body,
    faults: actions.map(({ type }) => type),
  };
  return { attempt, frozen };
}

/** The emulator's time, so many real milliseconds after `at`. */
function atAfter({ time }: EmulatorParts, at: number, waitedMs: number): number {
  return at + Math.floor(waitedMs * time.rate);
}

/** How a missing target shows in the log (DLV-2). */
export function withoutTarget(trigger: Attempt["trigger"], at: number): Attempt {
  return {
    trigger,
    at,
    durationMs: 0,
    url: null,
    requestHeaders: {},
    status: null,
    error: NO_TARGET,
    responseHeaders: {},
    responseBody: "",
    faults: [],
  };
}

/** A request as it is at a moment. */
interface AttemptRequest extends Frozen {
  readonly at: number;
  readonly outgoing: Outgoing;
}

function requestFor(ground: EmulatorParts, input: AttemptInput, target: Target): AttemptRequest {
  const { readings } = ground.settings;
  const moment = momentOf(ground, input.at);
  const { signedAt, aheadMs, secrets, frozen } = signatureOf(input, target, { readings, moment });
  // A signature that was kept has grown older by what the emulator's time was moved ahead since, and by nothing else.
  const timestamp = signedAt - (moment.aheadMs - aheadMs);
  const signing = beforeSigning({ body: bodyOf(input, readings.retryBody), timestamp, secrets }, input.actions);
  const outgoing = {
    url: target.url,
    method: readings["webhooks.method"],
    headers: { "content-type": readings["webhooks.contentType"], ...signatureHeaders(signing, readings) },
    body: signing.body,
    dribbleMs: null,
  };
  return { at: input.at, outgoing: afterSigning(outgoing, input.actions), frozen };
}

interface Frozen {
  readonly frozen: FrozenSignature | null;
}

type Moment = Pick<FrozenSignature, "signedAt" | "aheadMs">;

/** Now, on the clock that signatures carry. */
function momentOf({ settings, time }: EmulatorParts, at: number): Moment {
  if (settings.timestampClock === "emulator") return { signedAt: at, aheadMs: 0 };
  // As it was at `at`: by now time may have been moved further, for others.
  return { signedAt: Math.floor(time.realNow()), aheadMs: time.aheadMs() - (time.now() - at) };
}

/** A requested attempt is not a retry: it is signed anew, whatever the retries do. */
function signatureOf(
  { delivery, trigger }: AttemptInput,
  target: Target,
  { readings, moment }: { readonly readings: EmulatorParts["settings"]["readings"]; readonly moment: Moment },
): FrozenSignature & Frozen {
  const { retrySignature, overlapSigning } = readings;
  const fresh = { ...moment, secrets: inTurn(delivery, target.secrets ?? [], overlapSigning) };
  if (retrySignature === "fresh" || trigger !== "schedule") return { ...fresh, frozen: delivery.frozen };
  const frozen = delivery.frozen ?? fresh;
  return { ...frozen, frozen };
}

/** With "alternate", the deliveries begin in turn as well: otherwise a frozen signature would always be the current secret's. */
function inTurn(
  delivery: Delivery,
  secrets: readonly string[],
  overlapSigning: EmulatorParts["settings"]["readings"]["overlapSigning"],
): readonly string[] {
  if (overlapSigning !== "alternate" || secrets.length < 2) return secrets;
  const number = Number(/\d+$/.exec(delivery.deliveryId)?.[0] ?? 1);
  return secrets.slice((number - 1 + countOf(delivery)) % secrets.length).slice(0, 1);
}

function bodyOf({ delivery, event }: AttemptInput, retryBody: "same" | "reserialised"): Buffer {
  // A delivery that is no longer kept counts as sent: it was, unless it found no target.
  const sent = delivery.attempts.filter(({ url }) => url !== null).length + delivery.droppedAttempts;
  return Buffer.from(sent === 0 || retryBody === "same" ? event.body : reserialised(event.body, sent));
}

// The attempts that a delivery keeps: few enough, and short enough, that a receiver's long answers do not fill the memory.

const MOST_ATTEMPTS = 100;
/** Of an answer that is not the newest. */
const OLDER_ANSWER_BYTES = 1_024;
const CUT_MARK = " [cut]";

type History = Pick<Delivery, "attempts" | "droppedAttempts">;

/**
 * A delivery's attempts with one more: only the newest has its whole answer. Of more than 100, the oldest that somebody asked for
 * goes; the scheduled ones, five at the most, stay.
 */
export function withAttempt({ attempts, droppedAttempts }: History, attempt: Attempt): History {
  const all = [...attempts.slice(0, -1), ...attempts.slice(-1).map(withCutAnswer), attempt];
  if (all.length <= MOST_ATTEMPTS) return { attempts: all, droppedAttempts };
  const oldest = all.findIndex(({ trigger }) => trigger !== "schedule");
  return { attempts: all.toSpliced(Math.max(0, oldest), 1), droppedAttempts: droppedAttempts + 1 };
}

/** How many were made, with those that are no longer kept. */
export function countOf({ attempts, droppedAttempts }: History): number {
  return attempts.length + droppedAttempts;
}

/** An answer that was cut before is short enough. */
function withCutAnswer(attempt: Attempt): Attempt {
  const bytes = Buffer.from(attempt.responseBody);
  if (bytes.length <= OLDER_ANSWER_BYTES) return attempt;
  // A character that the limit cuts in two is left out.
  const kept = bytes.subarray(0, OLDER_ANSWER_BYTES - CUT_MARK.length);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(kept, { stream: true });
  return { ...attempt, responseBody: text + CUT_MARK };
}

// What an attempt makes of its delivery: delivered, due again, or failed for good (DLV-6, DLV-7).

/** From a failed attempt to the retry after it. */
const RETRY_DELAYS_MS = [60_000, 300_000, 900_000, 3_600_000] as const;

/** The least time from an attempt to anything it brings about. */
export const SOONEST_RETRY_MS = Math.min(...RETRY_DELAYS_MS);

/** What an attempt's `error` says when there was no target (DLV-2). */
const NO_TARGET = "NO_TARGET";
const ENDED_WITHOUT_TARGET = { state: "no_target", nextAttemptAt: null } as const;

/**
 * The delivery after an attempt. Only scheduled attempts move its plan; any successful one ends it, and one that found no target
 * does so without having been made (DLV-2).
 */
export function afterAttempt(
  delivery: Delivery,
  attempt: Attempt,
  { retryFrom }: Pick<Readings, "retryFrom">,
): Delivery {
  if (attempt.error === NO_TARGET) {
    return {
      ...delivery,
      ...withAttempt(delivery, attempt),
      ...(attempt.trigger === "schedule" ? ENDED_WITHOUT_TARGET : {}),
    };
  }
  const scheduledAttempts = delivery.scheduledAttempts + (attempt.trigger === "schedule" ? 1 : 0);
  const counted = { ...delivery, ...withAttempt(delivery, attempt), scheduledAttempts };
  if (succeeded(attempt)) return { ...counted, state: "delivered", nextAttemptAt: null };
  if (attempt.trigger !== "schedule") return counted;
  const nextAttemptAt = retryAt(counted, retryFrom);
  return { ...counted, state: nextAttemptAt === null ? "failed" : "pending", nextAttemptAt };
}

/** A 2xx answer; anything else, a redirect, a time-out or a reset too, is a failure (DLV-7, DLV-19). */
function succeeded({ status }: Pick<Attempt, "status">): boolean {
  return status !== null && status >= 200 && status <= 299;
}

/** After a failed scheduled attempt, the newest one; null after the last retry. */
function retryAt({ attempts, scheduledAttempts }: Delivery, retryFrom: Readings["retryFrom"]): number | null {
  const origin = retryFrom === "first" ? attempts.find(({ trigger }) => trigger === "schedule") : attempts.at(-1);
  const delayMs = RETRY_DELAYS_MS[scheduledAttempts - 1];
  return origin === undefined || delayMs === undefined ? null : origin.at + origin.durationMs + delayMs;
}

// The two headers of a signed attempt, in the spelling that the readings choose (DLV-5, DLV-12 to DLV-14, DLV-16).

/** What is signed, when, and with what: a signature of each secret, the first one's first. */
interface Signing {
  readonly body: Buffer;
  /** Epoch ms. */
  readonly timestamp: number;
  readonly secrets: readonly string[];
}

/** None without secrets (DLV-4). */
function signatureHeaders(
  { body, timestamp, secrets }: Signing,
  readings: Pick<Readings, "signatureEncoding" | "timestampUnit" | "secretEncoding">,
): Record<string, string> {
  const { signatureEncoding: encoding, timestampUnit: unit, secretEncoding } = readings;
  const signed = secrets.map((secret) =>
    signPayload({ body, timestamp, unit, encoding, secret: keyOf(secret, secretEncoding) }),
  );
  const [first] = signed;
  if (first === undefined) return {};
  return {
    [TIMESTAMP_HEADER]: first[TIMESTAMP_HEADER],
    [SIGNATURE_HEADER]: signed.map((headers) => headers[SIGNATURE_HEADER]).join(", "),
  };
}

/**
 * A text that is none of the encoding counts by its UTF-8 bytes: the routes take any secret (WHK-24), and an attempt that is
 * signed in a way the receiver can reproduce helps more than one that is not made.
 */
function keyOf(secret: string, encoding: Readings["secretEncoding"]): { secret: string; encoding: typeof encoding } {
  try {
    const usable = secretBytes("secret", secret, encoding).length > 0;
    return { secret, encoding: usable ? encoding : "utf8" };
  } catch {
    return { secret, encoding: "utf8" };
  }
}

// The same JSON content in other bytes, as a retry may repeat it (DLV-8).

/**
 * Another spelling of `json` for each `variant` from 1: keys in reverse order, and so many spaces of indentation (at most 10).
 * What has none, being no JSON or nested too deeply, stays as it is: an imported state can hold any text, and its deliveries
 * must come to their end.
 */
function reserialised(json: string, variant: number): string {
  try {
    return JSON.stringify(reversed(JSON.parse(json)), null, Math.min(variant, 10));
  } catch {
    return json;
  }
}

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([name, field]) => [name, reversed(field)]),
  );
}

// What goes wrong with one attempt: before it is signed, and after. An unsigned attempt has no signature to spoil.

/** Signed as it should be, but of another time, with another secret, or over bytes that are no UTF-8. */
function beforeSigning(signing: Signing, actions: readonly AttemptAction[]): Signing {
  return actions.reduce(spoilSigning, signing);
}

function spoilSigning(signing: Signing, action: AttemptAction): Signing {
  const { body, timestamp, secrets } = signing;
  switch (action.type) {
    case "invalidUtf8":
      return { ...signing, body: withInvalidUtf8(body) };
    case "wrongSecret":
      return { ...signing, secrets: secrets.map((secret) => `not ${secret}`) };
    case "staleTimestamp":
      return { ...signing, timestamp: Math.max(0, timestamp - action.ms) };
    case "futureTimestamp":
      return { ...signing, timestamp: timestamp + action.ms };
    default:
      return signing;
  }
}

/** Signed as it should be, and spoilt on its way. */
function afterSigning(outgoing: Outgoing, actions: readonly AttemptAction[]): Outgoing {
  return actions.reduce(spoilOutgoing, outgoing);
}

function spoilOutgoing(outgoing: Outgoing, action: AttemptAction): Outgoing {
  const { headers } = outgoing;
  switch (action.type) {
    case "corruptBody":
      return { ...outgoing, body: withFlippedBit(outgoing.body) };
    case "badSignature":
      return { ...outgoing, headers: withBadSignature(headers) };
    case "missingHeader":
      return {
        ...outgoing,
        headers: without(headers, [action.header === "timestamp" ? TIMESTAMP_HEADER : SIGNATURE_HEADER]),
      };
    case "unsigned":
      return { ...outgoing, headers: without(headers, [TIMESTAMP_HEADER, SIGNATURE_HEADER]) };
    case "dribble":
      return { ...outgoing, dribbleMs: action.ms };
    case "contentType":
      return { ...outgoing, headers: { ...headers, "content-type": action.value } };
    default:
      return outgoing;
  }
}

/** A byte that UTF-8 does not have, inside the last text: lenient decoders still find JSON there. */
function withInvalidUtf8(body: Buffer): Buffer {
  const end = Math.max(0, body.lastIndexOf('"'));
  return Buffer.concat([body.subarray(0, end), Buffer.of(0xff), body.subarray(end)]);
}

function withFlippedBit(body: Buffer): Buffer {
  const middle = body.length >> 1;
  return Buffer.concat([body.subarray(0, middle), Buffer.of((body[middle] ?? 0) ^ 1), body.subarray(middle + 1)]);
}

/** Signatures of the right form, each with another first character; so none of two is good. */
function withBadSignature(headers: Outgoing["headers"]): Outgoing["headers"] {
  const signature = headers[SIGNATURE_HEADER];
  if (signature === undefined) return headers;
  const spoilt = signature.replace(/(^|, )((?:sha256|v1)=)?(.)/g, (_, separator, prefix = "", first) => {
    return `${separator}${prefix}${first === "0" ? "1" : "0"}`;
  });
  return { ...headers, [SIGNATURE_HEADER]: spoilt };
}

function without(headers: Outgoing["headers"], names: readonly string[]): Outgoing["headers"] {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
}
