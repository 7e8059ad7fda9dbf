/** Turns a verified body into what the inbox takes: an event with its place, or a quarantined body. */
import { hash } from "node:crypto";
import { lanePlaceOf, sha256 } from "../events/identity.ts";
import { isKnownEvent, type WebhookEvent } from "../events/types.ts";
import type { NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import type { Page, QuarantineQuery } from "../inbox/store.ts";
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import { type Match, scopeCovers, scopeOf } from "../signature/verify.ts";

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

// Reads a quarantined body again: what its replay would accept, and why it would accept nothing.

type QuarantinedEvent =
  | { readonly ok: true; readonly event: WebhookEvent; readonly raw: Uint8Array }
  | { readonly ok: false; readonly reason: "body_pruned" }
  | { readonly ok: false; readonly reason: "invalid_event"; readonly message: string };

export async function quarantinedEvent({ raw, scope }: QuarantineRecord): Promise<QuarantinedEvent> {
  if (raw === null) return { ok: false, reason: "body_pruned" };
  // Loaded here: a command that only looks needs no schema, which takes longer to load than the inbox to open.
  const { parseEvent } = await import("../events/parse.ts");
  const parsed = parseEvent(raw);
  if (!parsed.ok) return invalid(`The body is still no event to this version of oncehook (${parsed.code}).`);
  if (scopeCovers(scope, parsed.event)) return { ok: true, event: parsed.event, raw };
  return invalid(
    "The secret that signed this body does not vouch for the event in it: it covers another direction or API client.",
  );
}

function invalid(message: string): QuarantinedEvent {
  return { ok: false, reason: "invalid_event", message };
}

// Finds a quarantined body by its id.

/** What it needs of an inbox or a store. */
interface Finder {
  findQuarantined(query: QuarantineQuery): Promise<Page<QuarantineRecord>>;
}

export async function findQuarantined(inbox: Finder, id: number): Promise<QuarantineRecord | null> {
  // No row has the last of all ids, behind which no page could begin.
  const { items } = await inbox.findQuarantined({ after: Math.min(id + 1, Number.MAX_SAFE_INTEGER), limit: 1 });
  // What comes first behind the next id is the one itself, if it is there.
  return items.find((row) => row.id === id) ?? null;
}
