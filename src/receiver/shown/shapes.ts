/** What an inbox keeps, as plain JSON with numbers and texts masked: what the command line prints and the inspector shows. */
import { identityOf, type LaneKey, publicId } from "../../events/identity.ts";
import type { EventRecord, LaneRecord, LaneSummary, QuarantineRecord } from "../../inbox/record.ts";
import { maskNumbers } from "../../internal/logger.ts";
import { type ExportedBody, exportedBody } from "../export-subject.ts";
import { maskedBody } from "./masked-body.ts";

/** What may be shown of a body. */
export type ShownBody = { readonly masked: unknown } | ExportedBody;

export function eventShape(event: EventRecord, reveal: boolean) {
  const { lane, laneId, raw, digest: _digest, trace: _trace, ...facts } = event;
  const isTold = reveal || publicId(lane) !== null;
  const identity = isTold ? identityOf(lane, event.sequence, event.eventType) : null;
  return { ...facts, lane: laneId, ...keyShape(lane, reveal), identity, hasBody: raw !== null };
}

export type EventShape = ReturnType<typeof eventShape>;

/** The id is empty where it is the digest of a body, unless bodies are revealed. */
export function keyShape(key: LaneKey, reveal: boolean): LaneKey {
  return reveal ? key : { ...key, messageId: publicId(key) ?? "" };
}

/** A number or a reference of a lane. */
function shown(text: string | null, reveal: boolean): string | null {
  return text === null || reveal ? text : maskNumbers(text);
}

export function bodyShape(raw: Uint8Array | null, reveal: boolean): ShownBody | null {
  if (raw === null) return null;
  return reveal ? exportedBody(raw) : { masked: maskedBody(raw) };
}

export function summaryShape({ id, key, peer, externalReference, epoch: _epoch, ...facts }: LaneSummary) {
  return {
    lane: id,
    ...keyShape(key, false),
    ...facts,
    peer: shown(peer, false),
    externalReference: shown(externalReference, false),
  };
}

export type SummaryShape = ReturnType<typeof summaryShape>;

/** What is kept of a message itself. */
export function laneShape(lane: LaneRecord, reveal: boolean) {
  const { id, key, peer, externalReference, epoch: _epoch, events: _events, gaps: _gaps, attempts: _, ...facts } = lane;
  return {
    lane: id,
    ...keyShape(key, reveal),
    ...facts,
    peer: shown(peer, reveal),
    externalReference: shown(externalReference, reveal),
  };
}

/** One message with all that is kept of it; `only` leaves the other events out. */
export function messageShape(lane: LaneRecord, { reveal, only }: { reveal: boolean; only?: number | undefined }) {
  const { events, gaps, attempts } = lane;
  const isMeant = (event: number) => only === undefined || event === only;
  return {
    ...laneShape(lane, reveal),
    events: events
      .filter((event) => isMeant(event.id))
      .map((event) => ({ ...eventShape(event, reveal), body: bodyShape(event.raw, reveal) })),
    gaps,
    attempts: attempts.filter(({ eventId }) => isMeant(eventId)),
  };
}

export type MessageShape = ReturnType<typeof messageShape>;

export function quarantineShape({ raw, digest, trace: _trace, signer: _signer, ...facts }: QuarantineRecord) {
  return { ...facts, digest: Buffer.from(digest).toString("hex"), hasBody: raw !== null, bytes: raw?.length ?? 0 };
}

export type QuarantineShape = ReturnType<typeof quarantineShape>;
