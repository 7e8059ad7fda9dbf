/** What an engine is given of an event: its exact bytes, and the names by which engines order and deduplicate. */
import { hash } from "node:crypto";
import { identityOf, type LaneKey, lanePlaceOf, sha256 } from "../events/identity.ts";
import type { WebhookEvent } from "../events/types.ts";

/** One event on its way to an engine. */
export interface ForwardedMessage {
  /**
   * 64 hex digits that name the event, the same on every attempt and after every crash: the engine's deduplication id
   * (`Nats-Msg-Id`, `MessageDeduplicationId`, a job's id).
   */
  readonly id: string;
  /**
   * 64 hex digits that name the message's lane, the same for all its events: the partition key or group id, so that an
   * engine that keeps order by key keeps the message's.
   */
  readonly key: string;
  /** The body exactly as it was received and signed: UTF-8 JSON. */
  readonly body: Uint8Array;
  /**
   * Printable ASCII. `oncehook-event-type` (percent-encoded where it is not), `oncehook-sequence`, and where they apply
   * `oncehook-attempt`, `oncehook-replay`, `oncehook-late`, `oncehook-missing` (`2-3`) and `traceparent`.
   * A replayed event is late too when a later event of its message was handed out before: it must not turn a state back.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, parsed. */
  readonly event: WebhookEvent;
  /** What `key` is made of. */
  readonly lane: LaneKey;
  /** 0 for events that have no place in a sequence. */
  readonly sequence: number;
  /** 1 on the first hand-out of an event; null where nobody counts, as in `passthrough`. */
  readonly attempt: number | null;
  /** Aborts when nobody waits for the engine's answer any more. */
  readonly signal: AbortSignal;
}

/** What is known of one attempt to hand an event over, beside the event. */
export interface Circumstances {
  readonly signal: AbortSignal;
  readonly traceparent: string | null;
  /** 1 or more; null where nobody counts. */
  readonly attempt: number | null;
  readonly replay: boolean;
  /** A later event of its message was handed out before: it came late, or is a replay. */
  readonly late: boolean;
  readonly missing: { readonly from: number; readonly to: number } | null;
}

export function messageOf(event: WebhookEvent, body: Uint8Array, circumstances: Circumstances): ForwardedMessage {
  const { lane, sequence } = lanePlaceOf(event, () => sha256(body).toString("hex"));
  return {
    id: identityOf(lane, sequence, event.eventType),
    key: hash("sha256", JSON.stringify([lane.tag, lane.apiClientId, lane.messageId])),
    body,
    headers: headersOf(event.eventType, sequence, circumstances),
    event,
    lane,
    sequence,
    attempt: circumstances.attempt,
    signal: circumstances.signal,
  };
}

function headersOf(
  eventType: string,
  sequence: number,
  { attempt, replay, late, missing, traceparent }: Circumstances,
): Record<string, string> {
  return {
    "oncehook-event-type": printable(eventType),
    "oncehook-sequence": `${sequence}`,
    ...(attempt === null ? {} : { "oncehook-attempt": `${attempt}` }),
    ...(replay ? { "oncehook-replay": "true" } : {}),
    ...(late ? { "oncehook-late": "true" } : {}),
    ...(missing === null ? {} : { "oncehook-missing": `${missing.from}-${missing.to}` }),
    ...(traceparent === null ? {} : { traceparent }),
  };
}

/** An event type comes from outside: a line break in a header would begin another one. */
function printable(text: string): string {
  return text.replace(/[^!-$&-~]+/gu, (other) => encodeURIComponent(other));
}
