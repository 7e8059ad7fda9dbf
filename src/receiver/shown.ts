/** Records of an inbox as plain JSON, with what may not be shown left out: for the command line and the inspector. */
import { identityOf, type LaneKey, publicId } from "../inbox/lane-key.ts";
import { type ShownFields, shownFields, shownText } from "../inbox/masking.ts";
import type {
  EventBody,
  EventId,
  EventSummary,
  LaneRecord,
  LaneSummary,
  QuarantineRecord,
  QuarantineSummary,
} from "../inbox/record.ts";
import { MAX_DEPTH } from "../internal/json.ts";
import { maskNumbers } from "../internal/logger.ts";
import { type ExportedBody, exportedBody } from "./operator.ts";

/** A body that is masked, or in full. */
export type ShownBody = { readonly masked: unknown } | ExportedBody;

export function eventShape(event: EventSummary, reveal: boolean) {
  const { lane, ownId, digest: _digest, trace: _trace, untimed: _untimed, ...facts } = event;
  const isPublic = reveal || ownId === null || publicId(ownId) !== null;
  const identity = isPublic ? identityOf(event) : null;
  return { ...facts, ...keyShape(lane, reveal), ownId: isPublic ? ownId : null, identity };
}

export type EventShape = ReturnType<typeof eventShape>;

/** Unless bodies are revealed, a name is left out if it is the digest of a body. */
function keyShape({ source, tenant, name, order }: LaneKey, reveal: boolean) {
  return { source, tenant, lane: reveal ? name : publicId(name), order };
}

/** A number or a reference of a lane. */
function shown(text: string | null, reveal: boolean): string | null {
  return text === null || reveal ? text : maskNumbers(text);
}

/** How much of a body is shown: all of it, or the fields at these paths. */
export type BodyView = { readonly reveal: boolean; readonly shows: readonly string[] };

export function bodyShape(raw: Uint8Array | null, { reveal, shows }: BodyView): ShownBody | null {
  if (raw === null) return null;
  return reveal ? exportedBody(raw) : { masked: maskedBody(raw, shows) };
}

export function summaryShape({ id, key, newest, peer, externalReference, ...facts }: LaneSummary) {
  return {
    laneId: id,
    ...keyShape(key, false),
    ...facts,
    newest: { ...newest, ownId: publicId(newest.ownId) },
    peer: shown(peer, false),
    externalReference: shown(externalReference, false),
  };
}

export type SummaryShape = ReturnType<typeof summaryShape>;

/** The facts about a message, without its events. */
export function laneShape(lane: LaneRecord, reveal: boolean) {
  const { id, key, peer, externalReference, events: _events, gaps: _gaps, attempts: _, ...facts } = lane;
  return {
    laneId: id,
    ...keyShape(key, reveal),
    ...facts,
    peer: shown(peer, reveal),
    externalReference: shown(externalReference, reveal),
  };
}

/** The bodies to show: see `InboxOperator.bodies`. */
export type Bodies = ReadonlyMap<EventId, EventBody>;

/** One message with its events, gaps and attempts. With `only`, other events are left out. */
export function messageShape(
  lane: LaneRecord,
  bodies: Bodies,
  { only, ...view }: BodyView & { only?: number | undefined },
) {
  const { events, gaps, attempts } = lane;
  const isShown = (event: number) => only === undefined || event === only;
  return {
    ...laneShape(lane, view.reveal),
    events: events
      .filter((event) => isShown(event.id))
      .map((event) => ({
        ...eventShape(event, view.reveal),
        body: bodyShape(bodies.get(event.id)?.raw ?? null, view),
      })),
    gaps,
    attempts: attempts.filter(({ eventId }) => isShown(eventId)),
  };
}

export type MessageShape = ReturnType<typeof messageShape>;

export function quarantineShape(row: QuarantineSummary | QuarantineRecord) {
  const { id, reason, slot, source, tenant, kinds, state, replayedAs, signedAt, acceptedAt } = row;
  const bytes = "raw" in row ? (row.raw?.length ?? null) : row.bytes;
  return {
    ...{ id, reason, slot, source, tenant, kinds, state, replayedAs, signedAt, acceptedAt },
    ...{ digest: Buffer.from(row.digest).toString("hex"), hasBody: bytes !== null, bytes: bytes ?? 0 },
  };
}

export type ShownQuarantine = ReturnType<typeof quarantineShape>;

const HIDDEN = "[hidden]";

/**
 * The fields of a body's JSON at the paths `shows`, with a count of the others in each object. If it is not JSON, only its size. Levels deeper
 * than an event may have are left out: a quarantined body can have a hundred thousand, which would overflow the stack here and in
 * JSON.stringify.
 */
export function maskedBody(raw: Uint8Array, shows: readonly string[]): unknown {
  try {
    return masked(JSON.parse(Buffer.from(raw).toString()), shownFields(shows), MAX_DEPTH);
  } catch {
    return `[${raw.length} bytes that are not JSON]`;
  }
}

/** @param levels - how many more levels are shown */
function masked(value: unknown, field: ShownFields, levels: number): unknown {
  if (typeof value === "object" && value !== null) {
    if (levels === 0) return "[nested too deep to be shown]";
    if (Array.isArray(value)) return value.map((item) => masked(item, field, levels - 1));
    return maskedObject(value, field, levels);
  }
  if (!field.isShown) return HIDDEN;
  // Some digits of a larger number were lost when it was parsed.
  if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) return "[too large a number]";
  return typeof value === "string" ? shownText(value) : value;
}

/** Names of other fields are hidden too: they may be an address or a name of a person. */
function maskedObject(value: object, { below }: ShownFields, levels: number): object {
  const entries: [name: string, shown: unknown][] = [];
  let hidden = 0;
  for (const [name, item] of Object.entries(value)) {
    const field = below.get(name);
    if (field === undefined) hidden++;
    else entries.push([name, masked(item, field, levels - 1)]);
  }
  if (hidden > 0) entries.push([HIDDEN, hidden === 1 ? "1 field" : `${hidden} fields`]);
  return Object.fromEntries(entries);
}
