/** Everything an inbox holds on a person or a message: the answer to an access request. It finds what erasing takes away. */
import { isUtf8 } from "node:buffer";
import type { AttemptRecord, EventRecord, LaneKey, QuarantineRecord } from "../../inbox/record.ts";
import type { InboxStore, TransferredEvent, TransferredLane } from "../../inbox/store.ts";
import { createSubjectTest, type Subject } from "../../inbox/subject.ts";

const LANES_PER_PAGE = 250;
const QUARANTINED_PER_PAGE = 100;

/** A body as JSON can hold it: as text, or in base64 if it is no UTF-8. */
export type ExportedBody = { readonly text: string } | { readonly base64: string };

/** An event with what its message's lane tells. Times are epoch milliseconds. */
export interface ExportedEvent
  extends Omit<EventRecord, "laneId" | "lane" | "raw" | "digest" | "conflict" | "trace">,
    LaneKey {
  readonly kind: "event";
  /** The other party's number. */
  readonly peer: string | null;
  readonly externalReference: string | null;
  /** Null once pruned. */
  readonly body: ExportedBody | null;
  /** The first delivery of its identity that said something else. */
  readonly conflict: { readonly at: number; readonly body: ExportedBody } | null;
  readonly failedAttempts: readonly Omit<AttemptRecord, "eventId">[];
}

export interface ExportedQuarantine
  extends Pick<QuarantineRecord, "id" | "reason" | "state" | "signedAt" | "acceptedAt"> {
  readonly kind: "quarantined";
  readonly body: ExportedBody;
}

/** Plain JSON: `JSON.stringify` loses nothing of it. */
export type SubjectRecord = ExportedEvent | ExportedQuarantine;

/**
 * Reads the whole inbox: of a body that its lane does not tell of, only reading it shows whom it names. The event loop gets its
 * turn between two pages. What is left after erasing names nobody, and is not told.
 */
export async function* exportSubject(
  store: Pick<InboxStore, "export" | "findQuarantined">,
  subject: Subject,
): AsyncGenerator<SubjectRecord, void> {
  const { isAbout, isNamedIn } = createSubjectTest(subject);
  for (let after: number | undefined = 0; after !== undefined; ) {
    const lanes = await store.export(after, LANES_PER_PAGE);
    for (const lane of lanes) {
      if (!isAbout(lane, () => bodiesOf(lane))) continue;
      for (const event of lane.events) if (holdsData(lane, event)) yield exportedEvent(lane, event);
    }
    after = lanes.at(-1)?.id;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  for (let after: number | null | undefined; after !== null; ) {
    const limit = QUARANTINED_PER_PAGE;
    const page = await store.findQuarantined(after === undefined ? { limit } : { limit, after });
    for (const { id, reason, state, signedAt, acceptedAt, raw } of page.items) {
      if (raw === null || !isNamedIn(raw)) continue;
      yield { kind: "quarantined", id, reason, state, signedAt, acceptedAt, body: exportedBody(raw) };
    }
    after = page.next;
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
