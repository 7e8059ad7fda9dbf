/** What an inbox keeps, as plain JSON with numbers and texts masked: what the command line prints and the inspector shows. */
import { identityOf, type LaneKey, publicId } from "../events/identity.ts";
import { MAX_DEPTH } from "../events/parse.ts";
import { shownText } from "../inbox/masking.ts";
import type { EventRecord, LaneRecord, LaneSummary, QuarantineRecord } from "../inbox/record.ts";
import { maskNumbers } from "../internal/logger.ts";
import { type ExportedBody, exportedBody } from "./export-subject.ts";

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

// What a body says, without the numbers and texts in it: what may be seen unless somebody asks for more.

/** Times and places: whatever else has seven digits may be somebody's number. */
const PLAIN_NUMBERS = new Set(["occurredAt", "timestamp", "sequence"]);

/**
 * Its JSON with numbers masked to their last two digits and texts left out; of anything else only the size. What nests deeper than an event may is
 * left out too: a quarantined body may have a hundred thousand levels, for which neither this nor what writes JSON has the stack.
 */
export function maskedBody(raw: Uint8Array): unknown {
  try {
    return masked(JSON.parse(Buffer.from(raw).toString()), "", MAX_DEPTH);
  } catch {
    return `[${raw.length} bytes that are no JSON]`;
  }
}

/** `levels` are those that are still shown. */
function masked(value: unknown, key: string, levels: number): unknown {
  if (typeof value === "string") return shownText(value, key);
  if (typeof value === "number") return PLAIN_NUMBERS.has(key) ? value : maskedNumber(value);
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return "[nested too deep to be shown]";
  if (Array.isArray(value)) return value.map((item) => masked(item, key, levels - 1));
  const entries = Object.entries(value).map(([name, item]) => [maskNumbers(name), masked(item, name, levels - 1)]);
  return Object.fromEntries(entries);
}

function maskedNumber(value: number): number | string {
  const written = `${value}`;
  const shown = maskNumbers(written);
  return shown === written ? value : shown;
}
