/** Locks lanes and reads what is in them: the lanes first, their events in a later statement, or wake-ups are lost. */
import type { LaneEvent, LaneState } from "../../inbox/lanes/state.ts";
import type { LaneKey } from "../../inbox/record.ts";
import { outcomeWord, stateWord, statusWord, TAG, tagWord } from "../codes.ts";
import { arrayOf } from "./arrays.ts";
import { named } from "./columns.ts";
import { GAP, NEW_EVENT, NEW_LANE } from "./flush-statement.ts";
import type { Names } from "./names.ts";
import { both, type Session } from "./session.ts";
import { bytesText, textBytes } from "./text.ts";

/** What a lane says of the event that is leased. */
export interface LeaseRow {
  readonly epoch: number;
  readonly leased: number | null;
  readonly leased_epoch: number | null;
  readonly leased_attempts: number | null;
  readonly leased_started: number | null;
}

export interface LaneRow extends LeaseRow {
  readonly id: number;
  readonly client: number;
  readonly tag: number;
  readonly message: Buffer;
  readonly status: number;
  readonly ready_at: number | null;
  readonly cursor: number | null;
  readonly gap_since: number | null;
  readonly holder: number | null;
  readonly peer: Buffer | null;
  readonly reference: Buffer | null;
}

export interface EventRow {
  readonly id: number;
  readonly lane: number;
  readonly seq: number;
  readonly kind: number;
  readonly state: number;
  readonly outcome: number | null;
  readonly finished: number | null;
  readonly attempts: number;
  readonly started: number | null;
  readonly late: boolean;
  readonly forced: boolean;
  readonly duplicates: number;
  readonly conflict: boolean;
  readonly gap_wait: number;
  readonly occurred: number;
  readonly signed: number;
  readonly accepted: number;
  readonly error_code: string | null;
  readonly error: string | null;
  readonly digest: Buffer;
  readonly trace: string | null;
  readonly has_body: boolean;
}

interface GapRow {
  readonly lane: number;
  readonly lo: number;
  readonly hi: number;
  readonly skipped: number;
  readonly filled: number | null;
}

/**
 * What is read of a lane, an event and a gap, by name: where a later version adds a column, the server refuses each prepared statement
 * that reads all of them.
 */
export const laneColumns = (table: string): string => named(NEW_LANE, table);
export const eventColumns = (table: string): string => named(NEW_EVENT, table);

/**
 * Sorted, so that two transactions never wait for each other; a statement of its own, so that what follows sees what others
 * did. Each key is looked up by itself: a join could be planned as a scan of all lanes while their number is not known.
 */
const LOCK = `select ${laneColumns("l")} from {}.lane l where l.id = any(array(
    select unnest($1::bigint[]) union
    select k.id from unnest($2::int[], $3::smallint[], $4::bytea[]) as w (client, tag, message)
    cross join lateral (
      select id from {}.lane where client = w.client and tag = w.tag and message = w.message limit 1) k
  )) order by l.id for update`;

/** The ids of a message's lanes, of any client and tag; each is looked up by itself, as above. */
export const LANES_OF_MESSAGE = (message: string): string => `select k.id from {}.client c
  cross join unnest('{${Object.values(TAG).join(",")}}'::smallint[]) as t (tag)
  cross join lateral (
    select id from {}.lane where client = c.id and tag = t.tag and message = ${message}::bytea limit 1) k`;

const EVENTS = `select ${eventColumns("e")} from {}.event e where lane = any($1::bigint[])`;

const GAPS = `select ${named(GAP, "g")} from {}.gap g where lane = any($1::bigint[])`;

export type Key = Pick<LaneRow, "client" | "tag" | "message">;

export function keyText({ client, tag, message }: Key): string {
  return `${client} ${tag} ${message.toString("latin1")}`;
}

export function keyOf(names: Names, lane: LaneKey): Key {
  return { client: names.clientId(lane.apiClientId), tag: TAG[lane.tag], message: textBytes(lane.messageId) };
}

/** Locks the lanes with these ids and keys that exist. */
export function lockLanes(session: Session, ids: readonly number[], keys: readonly Key[]): Promise<readonly LaneRow[]> {
  const values = [
    arrayOf("bigint", ids),
    arrayOf(
      "int",
      keys.map(({ client }) => client),
    ),
    arrayOf(
      "smallint",
      keys.map(({ tag }) => tag),
    ),
    arrayOf(
      "bytea",
      keys.map(({ message }) => message),
    ),
  ];
  return session.rows<LaneRow>("lock", LOCK, values);
}

/** The lanes of locked rows, with their events and gaps. */
export async function readLanes(session: Session, names: Names, rows: readonly LaneRow[]): Promise<LaneState[]> {
  if (rows.length === 0) return [];
  const ids = [
    arrayOf(
      "bigint",
      rows.map(({ id }) => id),
    ),
  ];
  const [eventRows, gapRows] = await both(
    session,
    () => session.rows<EventRow>("events", EVENTS, ids),
    () => session.rows<GapRow>("gaps", GAPS, ids),
  );
  // Sorted here: asked to, the planner may read all events in the order of their ids.
  const events = eventRows.toSorted((a, b) => a.id - b.id);
  await names.learn(session, { clients: rows.map(({ client }) => client), kinds: events.map(({ kind }) => kind) });
  const lanes = new Map(rows.map((row) => [row.id, toLane(names, row)]));
  for (const row of events) {
    const lane = lanes.get(row.lane);
    if (lane !== undefined) lane.events.push(toEvent(lane, row, names.kind(row.kind)));
  }
  for (const { lane, lo, hi, skipped, filled } of gapRows.toSorted((a, b) => a.hi - b.hi)) {
    lanes.get(lane)?.gaps.push({ from: lo, to: hi, skippedAt: skipped, filledAt: filled });
  }
  for (const row of rows) {
    const lane = lanes.get(row.id);
    if (lane === undefined) continue;
    for (const event of lane.events) if (takeLease(event, row)) lane.leased = event;
  }
  return [...lanes.values()];
}

/** What a lane is, without what it holds. */
export function laneFacts(row: LaneRow, apiClientId: string) {
  return {
    id: row.id,
    key: { apiClientId, tag: tagWord(row.tag), messageId: bytesText(row.message) },
    cursor: row.cursor,
    status: statusWord(row.status),
    readyAt: row.ready_at,
    gapSince: row.gap_since,
    epoch: row.epoch,
    peer: nullableText(row.peer),
    externalReference: nullableText(row.reference),
  };
}

/** Field by field: with a spread, what is later written to a lane changes the shape of all of them, at 10 µs each. */
function toLane(names: Names, row: LaneRow): LaneState {
  const { id, key, cursor, status, readyAt, gapSince, epoch, peer, externalReference } = laneFacts(
    row,
    names.client(row.client),
  );
  return {
    id,
    key,
    cursor,
    status,
    readyAt,
    gapSince,
    epoch,
    peer,
    externalReference,
    holder: row.holder === null ? null : String(row.holder),
    leased: null,
    events: [],
    gaps: [],
    attempts: [],
  };
}

export function toEvent(lane: LaneState, row: EventRow, eventType: string): LaneEvent {
  return {
    id: row.id,
    lane,
    sequence: row.seq,
    eventType,
    state: stateWord(row.state),
    outcome: outcomeWord(row.outcome),
    late: row.late,
    forced: row.forced,
    occurredAt: row.occurred,
    signedAt: row.signed,
    acceptedAt: row.accepted,
    startedAt: row.started,
    finishedAt: row.finished,
    attempts: row.attempts,
    duplicates: row.duplicates,
    conflict: row.conflict,
    errorCode: row.error_code,
    error: row.error,
    trace: row.trace,
    digest: row.digest,
    gapWaitMs: row.gap_wait,
    hasBody: row.has_body,
  };
}

/** An event that is leased takes its attempts from its lane, which has them until the lease ends. @returns whether it is */
export function takeLease(event: LaneEvent, lane: LeaseRow): boolean {
  if (event.id !== lane.leased) return false;
  if (lane.leased_epoch === lane.epoch) {
    event.attempts = lane.leased_attempts ?? event.attempts;
    event.startedAt = lane.leased_started;
  }
  return true;
}

export function nullableBytes(text: string | null): Buffer | null {
  return text === null ? null : textBytes(text);
}

function nullableText(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytesText(bytes);
}
