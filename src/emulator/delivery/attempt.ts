/** One attempt: the request as the readings and faults want it, sent, and what came of it. */
import { afterSigning, beforeSigning } from "../faults/attempt-faults.ts";
import type { AttemptAction } from "../faults/rule.ts";
import { withoutCredentials } from "../http/redaction.ts";
import type { Ground } from "../service.ts";
import type { Attempt, Delivery, EventRecord, FrozenSignature, Target } from "../state/records.ts";
import { countOf } from "./attempt-history.ts";
import { NO_TARGET } from "./plan.ts";
import { reserialised } from "./reserialise.ts";
import { signatureHeaders } from "./signature.ts";
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

export interface AttemptMade {
  readonly attempt: Attempt;
  /** What the delivery keeps for its retries (DLV-17). */
  readonly frozen: FrozenSignature | null;
}

/** Never rejects for what a receiver does. */
export async function makeAttempt(ground: Ground, transport: Transport, input: AttemptInput): Promise<AttemptMade> {
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
function atAfter({ time }: Ground, at: number, waitedMs: number): number {
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

function requestFor(ground: Ground, input: AttemptInput, target: Target): AttemptRequest {
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
function momentOf({ settings, time }: Ground, at: number): Moment {
  if (settings.timestampClock === "emulator") return { signedAt: at, aheadMs: 0 };
  // As it was at `at`: by now time may have been moved further, for others.
  return { signedAt: Math.floor(time.realNow()), aheadMs: time.aheadMs() - (time.now() - at) };
}

/** An attempt that somebody asked for is no retry: it is signed anew whatever the retries do. */
function signatureOf(
  { delivery, trigger }: AttemptInput,
  target: Target,
  { readings, moment }: { readonly readings: Ground["settings"]["readings"]; readonly moment: Moment },
): FrozenSignature & Frozen {
  const { retrySignature, overlapSigning } = readings;
  const fresh = { ...moment, secrets: inTurn(delivery, target.secrets ?? [], overlapSigning) };
  if (retrySignature === "fresh" || trigger !== "schedule") return { ...fresh, frozen: delivery.frozen };
  const frozen = delivery.frozen ?? fresh;
  return { ...frozen, frozen };
}

/** With "alternate", the deliveries begin in turn as well: else a frozen signature would always be the current secret's. */
function inTurn(
  delivery: Delivery,
  secrets: readonly string[],
  overlapSigning: Ground["settings"]["readings"]["overlapSigning"],
): readonly string[] {
  if (overlapSigning !== "alternate" || secrets.length < 2) return secrets;
  const number = Number(/\d+$/.exec(delivery.deliveryId)?.[0] ?? 1);
  return secrets.slice((number - 1 + countOf(delivery)) % secrets.length).slice(0, 1);
}

function bodyOf({ delivery, event }: AttemptInput, retryBody: "same" | "reserialised"): Buffer {
  // What is no longer kept counts as sent: it was, but for those that found no target.
  const sent = delivery.attempts.filter(({ url }) => url !== null).length + delivery.droppedAttempts;
  return Buffer.from(sent === 0 || retryBody === "same" ? event.body : reserialised(event.body, sent));
}
