/** Turns a verified body into an inbox event with its lane and sequence, or into a quarantined body; and a quarantined body back. */
import { hash } from "node:crypto";
import { isKnownEvent, lanePlaceOf, parseEvent, sha256 } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import type { Page, QuarantineQuery } from "../inbox/store.ts";
import { type HeaderSource, type Match, readHeader, scopeCovers, scopeOf } from "../signature/verify.ts";

/** Strict W3C `traceparent`, version 00, neither id all zeros. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** What verification found out about one delivery. */
export interface Verified {
  readonly match: Match;
  /** Epoch milliseconds: the verified timestamp, or now for an unsigned delivery. */
  readonly signedAt: number;
  readonly trace: string | null;
}

/** The delivery's trace context, if it is strictly valid. Any other text must not reach logs and traces. */
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

/** An event's identity as one string, for the cache of committed ones. Lengths keep its parts apart. */
export function identityKey({ lane, sequence, eventType }: NewEvent): string {
  return `${lane.tag} ${sequence} ${eventType.length} ${lane.apiClientId.length} ${eventType}${lane.apiClientId}${lane.messageId}`;
}

/** The other party's number. */
function peerOf(event: WebhookEvent): string | null {
  if (!isKnownEvent(event)) return null;
  return event.direction === "outbound" ? event.data.to : event.data.from;
}

type QuarantinedEvent =
  | { readonly ok: true; readonly event: WebhookEvent; readonly raw: Uint8Array }
  | { readonly ok: false; readonly reason: "body_pruned" }
  | { readonly ok: false; readonly reason: "invalid_event"; readonly message: string };

/** Parses a quarantined body again: the event that its replay would accept, or the reason why it cannot be replayed. */
export function quarantinedEvent({ raw, scope }: QuarantineRecord): QuarantinedEvent {
  if (raw === null) return { ok: false, reason: "body_pruned" };
  const parsed = parseEvent(raw);
  if (!parsed.ok) return invalid(`The body is still not a valid event for this version of oncehook (${parsed.code}).`);
  if (scopeCovers(scope, parsed.event)) return { ok: true, event: parsed.event, raw };
  return invalid(
    "The secret that signed this body does not cover the event in it: it is for another direction or API client.",
  );
}

function invalid(message: string): QuarantinedEvent {
  return { ok: false, reason: "invalid_event", message };
}

/** An inbox or a store. */
interface Finder {
  findQuarantined(query: QuarantineQuery): Promise<Page<QuarantineRecord>>;
}

/** Finds a quarantined body by its id. */
export async function findQuarantinedById(inbox: Finder, id: number): Promise<QuarantineRecord | null> {
  // `after` must be a safe integer. No row has the largest one as its id.
  const { items } = await inbox.findQuarantined({ after: Math.min(id + 1, Number.MAX_SAFE_INTEGER), limit: 1 });
  // Pages are in descending order: the first row below the next id is the one with this id, if it exists.
  return items.find((row) => row.id === id) ?? null;
}
