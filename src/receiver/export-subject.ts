/** Everything that an inbox holds about a person or a message: the answer to an access request. It finds what erasing would remove. */
import { isUtf8 } from "node:buffer";
import type {
  AttemptRecord,
  EventRecord,
  LaneId,
  LaneKey,
  QuarantineRecord,
  TransferredEvent,
  TransferredLane,
} from "../inbox/record.ts";
import type { InboxStore, LaneQuery } from "../inbox/store.ts";
import { createSubjectTest, type Subject } from "../inbox/subject.ts";
import { allPages } from "./bulk.ts";

const LANES_PER_LIST = 1_000;
const LANES_PER_PAGE = 250;
const QUARANTINED_PER_PAGE = 100;

/** A body as JSON can hold it: as text, or in base64 if it is not UTF-8. */
export type ExportedBody = { readonly text: string } | { readonly base64: string };

/** An event with the facts of its message's lane. Times are epoch milliseconds. */
export interface ExportedEvent
  extends Omit<EventRecord, "laneId" | "lane" | "raw" | "digest" | "conflict" | "trace">,
    LaneKey {
  readonly kind: "event";
  /** The other party's number. */
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** Null once pruned. */
  readonly body: ExportedBody | null;
  /** The first delivery with its identity and different content. */
  readonly conflict: { readonly at: number; readonly body: ExportedBody } | null;
  readonly failedAttempts: readonly Omit<AttemptRecord, "eventId">[];
}

export interface ExportedQuarantine
  extends Pick<QuarantineRecord, "id" | "reason" | "state" | "signedAt" | "acceptedAt"> {
  readonly kind: "quarantined";
  readonly body: ExportedBody;
}

/** Plain JSON: `JSON.stringify` loses nothing. */
export type SubjectRecord = ExportedEvent | ExportedQuarantine;

/** The methods of a store that it uses. */
export type SubjectStore = Pick<InboxStore, "export" | "find" | "findLanes" | "findQuarantined">;

/** Erased rows name nobody, and are not exported. The event loop runs between two pages. */
export async function* exportSubject(store: SubjectStore, subject: Subject): AsyncGenerator<SubjectRecord, void> {
  const { isAbout, isNamedIn } = createSubjectTest(subject);
  for await (const lane of lanesOf(store, await candidates(store, subject))) {
    if (!isAbout(lane, () => bodiesOf(lane))) continue;
    for (const event of lane.events) if (holdsData(lane, event)) yield exportedEvent(lane, event);
  }
  const quarantined = allPages((page) => store.findQuarantined({ ...page, limit: QUARANTINED_PER_PAGE }));
  for await (const { id, reason, state, signedAt, acceptedAt, raw } of quarantined) {
    if (raw === null || !isNamedIn(raw)) continue;
    yield { kind: "quarantined", id, reason, state, signedAt, acceptedAt, body: exportedBody(raw) };
  }
}

/** Lanes that may be about it, ascending: those whose fields show it, and those for which only the bodies can. */
async function candidates(store: SubjectStore, subject: Subject): Promise<readonly LaneId[]> {
  const ids = new Set<LaneId>();
  const take = async (query: Partial<LaneQuery>) => {
    for await (const { id } of allPages((page) => store.findLanes({ ...query, ...page, limit: LANES_PER_LIST })))
      ids.add(id);
  };
  await take({ tag: "unlaned" });
  if ("peer" in subject) {
    await take({ peer: subject.peer });
    await take({ peer: null });
  } else {
    const { messageId } = subject;
    for await (const { laneId } of allPages((page) => store.find({ messageId, ...page, limit: LANES_PER_LIST })))
      ids.add(laneId);
  }
  return [...ids].sort((a, b) => a - b);
}

/** Neighbouring ids are read together. */
async function* lanesOf(store: SubjectStore, ids: readonly LaneId[]): AsyncGenerator<TransferredLane> {
  const wanted = new Set(ids);
  for (let at = 0; at < ids.length; ) {
    const first = ids[at] ?? 0;
    let last = first;
    for (; (ids[at] ?? Number.POSITIVE_INFINITY) < first + LANES_PER_PAGE; at++) last = ids[at] ?? last;
    const lanes = await store.export(first - 1, last - first + 1);
    // If lanes in between were removed, the page has some of the next ones.
    yield* lanes.filter(({ id }) => id <= last && wanted.has(id));
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

function bodiesOf({ events }: TransferredLane): readonly Uint8Array[] {
  return events.flatMap(({ raw, conflicting }) => [raw, conflicting?.raw].filter((body) => body != null));
}

function attemptsOf({ attempts }: TransferredLane, { id }: TransferredEvent) {
  return attempts.filter(({ eventId }) => eventId === id).map(({ eventId: _eventId, ...facts }) => facts);
}

function holdsData(lane: TransferredLane, event: TransferredEvent): boolean {
  const { raw, error, conflicting } = event;
  if (lane.peer !== null || lane.externalReference !== null) return true;
  if (raw !== null || error !== null || conflicting !== null) return true;
  return attemptsOf(lane, event).some((attempt) => attempt.error !== "");
}

function exportedEvent(lane: TransferredLane, event: TransferredEvent): ExportedEvent {
  const {
    raw,
    conflicting,
    digest: _digest,
    conflict: _conflict,
    trace: _trace,
    gapWaitMs: _gapWaitMs,
    ...facts
  } = event;
  return {
    kind: "event",
    ...lane.key,
    ...facts,
    peer: lane.peer,
    externalReference: lane.externalReference,
    body: raw === null ? null : exportedBody(raw),
    conflict: conflicting === null ? null : { at: conflicting.at, body: exportedBody(conflicting.raw) },
    failedAttempts: attemptsOf(lane, event),
  };
}

export function exportedBody(raw: Uint8Array): ExportedBody {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  return isUtf8(bytes) ? { text: bytes.toString() } : { base64: bytes.toString("base64") };
}
