/** Turns a verified body into what the inbox takes: an event with its place, or a quarantined body. */
import { hash } from "node:crypto";
import { lanePlaceOf, sha256 } from "../events/identity.ts";
import { isKnownEvent, type WebhookEvent } from "../events/types.ts";
import type { NewEvent, NewQuarantine } from "../inbox/record.ts";
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import { type Match, scopeOf } from "../signature/verify.ts";

/** Strict W3C `traceparent`, version 00, neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** What was verified about one delivery. */
export interface Verified {
  readonly match: Match;
  /** Epoch milliseconds: the verified timestamp, or now for an unsigned delivery. */
  readonly signedAt: number;
  readonly trace: string | null;
}

/** The delivery's trace context, when it is strictly valid: anything else would be repeated into logs and traces. */
export function readTrace(headers: HeaderSource): string | null {
  const text = readHeader(headers, "traceparent");
  return text !== undefined && TRACEPARENT.test(text) ? text : null;
}

export function newEvent(
  event: WebhookEvent,
  raw: Uint8Array,
  { signedAt, trace }: Omit<Verified, "match">,
  gapWaitMs: (event: WebhookEvent) => number,
): NewEvent {
  const { lane, sequence } = lanePlaceOf(event, () => hash("sha256", raw, "hex"));
  return {
    lane,
    sequence,
    eventType: event.eventType,
    occurredAt: Number.isSafeInteger(event.occurredAt) ? (event.occurredAt as number) : signedAt,
    signedAt,
    gapWaitMs: lane.tag === "outbound" ? gapWaitMs(event) : 0,
    digest: sha256(raw),
    raw,
    trace,
    peer: peerOf(event),
    externalReference: isKnownEvent(event) && event.direction === "outbound" ? event.data.externalReference : null,
  };
}

export function newQuarantine(reason: string, raw: Uint8Array, { match, signedAt, trace }: Verified): NewQuarantine {
  const { slot, key } = match;
  return { reason, slot, signer: key.signer, scope: scopeOf(key), signedAt, digest: sha256(raw), raw, trace };
}

/** Names an event's identity for the cache of committed ones; the parts cannot run into each other. */
export function identityKey({ lane, sequence, eventType }: NewEvent): string {
  return `${lane.tag} ${sequence} ${eventType.length} ${lane.apiClientId.length} ${eventType}${lane.apiClientId}${lane.messageId}`;
}

/** The other party's number. */
function peerOf(event: WebhookEvent): string | null {
  if (!isKnownEvent(event)) return null;
  return event.direction === "outbound" ? event.data.to : event.data.from;
}
