/** Locks lanes, reads them, and finds due ones. Lanes are locked first and their events read in a later statement; otherwise wake-ups are lost. */

import { FRESH_MS, PLACES, TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import { isShared, type NamedLaneKey } from "../../inbox/lane-key.ts";
import type { LaneEvent, LaneState } from "../../inbox/lane-state.ts";
import type { EventBody, NewEvent } from "../../inbox/record.ts";
import { isConflict, MOST_BYTES, NO_BOUND } from "../../inbox/store-rules.ts";
import { ORDER, orderCode, orderWord, outcomeWord, stateWord, statusWord } from "../database.ts";
import {
  arrayOf,
  bytesId,
  bytesTenant,
  bytesText,
  columnNames,
  columns,
  idBytes,
  tenantBytes,
  textBytes,
  transposed,
  unnested,
  type Values,
} from "./encoding.ts";
import { both, CLOCK, type PgSession } from "./session.ts";
import { GAP, NEW_LANE, WHOLE_EVENT } from "./statements.ts";

/** The columns of a lane about its leased event. */
export interface LeaseRow {
  readonly token: number;
  readonly leased: number | null;
  readonly leased_attempts: number | null;
  readonly leased_started: number | null;
}

export interface PgLaneRow extends LeaseRow {
  readonly id: number;
  readonly name: Buffer | null;
  readonly source: string;
  readonly tenant: Buffer;
  readonly ord: number;
  readonly status: number;
  readonly ready_at: number | null;
  readonly cursor: number | null;
  readonly gap_since: number | null;
  readonly holder: number | null;
  readonly peer: Buffer | null;
  readonly reference: Buffer | null;
}

export interface PgEventRow {
  readonly id: number;
  readonly lane: number;
  readonly seq: number;
  readonly type: Buffer;
  readonly source: string;
  readonly tenant: Buffer;
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
  readonly untimed: boolean | null;
  readonly own_id: Buffer | null;
}

interface GapRow {
  readonly lane: number;
  readonly lo: number;
  readonly hi: number;
  readonly skipped: number;
  readonly filled: number | null;
}

/**
 * Columns are read by name: when a later version adds a column, the server refuses each prepared statement
 * that reads `*`.
 */
export const laneColumns = (table: string): string => columnNames(NEW_LANE, table);
export const eventColumns = (table: string): string => columnNames(WHOLE_EVENT, table);

const LANE_KEY = columns("name bytea, source text, tenant bytea, ord smallint");
const OWN_ID = columns("own_id bytea, source text, tenant bytea");
const WITH_OWN_ID = "own_id = w.own_id and source = w.source and tenant = w.tenant";

/**
 * Sorted, so that two transactions never wait for each other. A statement of its own, so that the next one sees what others
 * did. Each key is looked up by itself: a join could be planned as a scan of all lanes while their number is unknown.
 */
const LOCK = `select ${laneColumns("l")} from {}.lane l where l.id = any(array(
    select unnest($1::bigint[]) union
    select k.id from ${unnested(LANE_KEY, 1)} as w (${columnNames(LANE_KEY)})
    cross join lateral (
      select id from {}.lane where name = w.name and source = w.source and tenant = w.tenant and ord = w.ord limit 1) k
    union select k.lane from ${unnested(OWN_ID, 1 + LANE_KEY.length)} as w (${columnNames(OWN_ID)})
    cross join lateral (select lane from {}.event where ${WITH_OWN_ID} limit 1) k
  )) order by l.id for update`;

const EVENTS = `select ${eventColumns("e")} from {}.event e where lane = any($1::bigint[])`;
const CURSOR = columns("lane bigint, cursor bigint");
const PLACE = columns("lane bigint, seq bigint");
/** More events of one lane than a claim can end (`ENDED_PER_CLAIM`). */
const MOST_ENDED = 300;
/** `state + 0`, which no index but that of these events has: the planner could take that of all open events. */
const PENDING = `select ${eventColumns("e")} from {}.event e where lane = w.lane and shared and state + 0 = 0`;
/**
 * Of lanes that may hold many events of another source, only what the rules look at: the leased one, the lowest pending ones from the cursor
 * on and below it, the one that was held back first, those with the ids of `OWN_ID`, and the last one of each position of `PLACE`. Some may come twice.
 */
const FEW_EVENTS = `select k.* from ${unnested(CURSOR, 0)} as w (${columnNames(CURSOR)}) cross join lateral (
    (${PENDING} and seq >= w.cursor order by seq, id limit ${MOST_ENDED})
    union all (${PENDING} and seq < w.cursor order by seq, id limit ${MOST_ENDED})
    union all (${PENDING} and gap_wait > 0 and seq >= w.cursor and not forced order by id limit 1)) k
  union all select ${eventColumns("e")} from {}.event e where id = any($${CURSOR.length + 1}::bigint[])
  union all select k.* from ${unnested(OWN_ID, CURSOR.length + 1)} as w (${columnNames(OWN_ID)}) cross join lateral (
    select ${eventColumns("e")} from {}.event e where ${WITH_OWN_ID}) k
  union all select k.* from ${unnested(PLACE, CURSOR.length + 1 + OWN_ID.length)} as w (${columnNames(PLACE)}) cross join lateral (
    select ${eventColumns("e")} from {}.event e where lane = w.lane and seq >= w.seq and seq < w.seq + ${PLACES}
    order by seq desc limit 1) k`;

/** An event that may come into a lane of several: what is read of the lane for it. */
export type Expected = Pick<NewEvent, "lane" | "ownId" | "sequence">;

const GAPS = `select ${columnNames(GAP, "g")} from {}.gap g where lane = any($1::bigint[])`;

function ownIdsOf(events: readonly Expected[]): Values[] {
  return events.flatMap(({ lane, ownId }) =>
    ownId === undefined ? [] : [[idBytes(ownId), lane.source, tenantBytes(lane.tenant)]],
  );
}

/** Locks the existing lanes with these ids and keys, and those of the events that are known. */
export function lockLanes(
  session: PgSession,
  ids: readonly number[],
  keys: readonly NamedLaneKey[],
  events: readonly Expected[],
): Promise<readonly PgLaneRow[]> {
  const rows = keys.map(({ source, tenant, name, order }): Values => {
    return [textBytes(name), source, tenantBytes(tenant), orderCode(order)];
  });
  const values = [arrayOf("bigint", ids), ...transposed(LANE_KEY, rows), ...transposed(OWN_ID, ownIdsOf(events))];
  return session.rows<PgLaneRow>("lock", LOCK, values);
}

/**
 * The lanes of locked rows, with their events and gaps.
 *
 * @param expected - what comes, and into which lanes by their ids: of lanes of several without a sequence the rest is left out. Null for all
 *   events
 */
/** What comes into a transaction's lanes. */
export interface Expectation {
  readonly events: readonly Expected[];
  /** By the id of their lane. */
  readonly byLane: ReadonlyMap<number, readonly Expected[]>;
}

export async function readLanes(
  session: PgSession,
  rows: readonly PgLaneRow[],
  expected: Expectation | null = null,
): Promise<LaneState[]> {
  if (rows.length === 0) return [];
  const isLong = ({ ord }: PgLaneRow) => expected !== null && isShared({ order: orderWord(ord) });
  const long = rows.filter(isLong);
  const whole = long.length === 0 ? rows : rows.filter((row) => !isLong(row));
  const ids = [arrayOf("bigint", idsIn(whole))];
  const [eventRows, gapRows] = await both(
    session,
    () => session.rows<PgEventRow>("events", EVENTS, ids),
    () => session.rows<GapRow>("gaps", GAPS, ids),
  );
  const few = expected === null || long.length === 0 ? [] : await readFew(session, long, expected);
  // Sorted here, because with `order by` the planner may read all events in the order of their ids.
  const events = [...eventRows, ...few].sort((a, b) => a.id - b.id);
  const lanes = new Map(rows.map((row) => [row.id, toLane(row)]));
  for (const row of events) {
    const lane = lanes.get(row.lane);
    if (lane !== undefined) lane.events.push(eventOfRow(lane, row));
  }
  for (const { lane, lo, hi, skipped, filled } of gapRows.toSorted((a, b) => a.hi - b.hi)) {
    lanes.get(lane)?.gaps.push({ from: lo, to: hi, skippedAt: skipped, filledAt: filled });
  }
  for (const row of rows) {
    const lane = lanes.get(row.id);
    if (lane === undefined) continue;
    for (const event of lane.events) takeLease(event, row);
  }
  return [...lanes.values()];
}

/** The events of long lanes that the rules look at. */
async function readFew(
  session: PgSession,
  lanes: readonly PgLaneRow[],
  { events, byLane }: Expectation,
): Promise<readonly PgEventRow[]> {
  const leased = lanes.flatMap((lane) => lane.leased ?? []);
  const found = new Map<number, PgEventRow>();
  let ownIds = ownIdsOf(events);
  let places = lanes
    .filter(({ ord }) => ord === ORDER.position)
    .flatMap(({ id }) => (byLane.get(id) ?? []).map(({ sequence }) => [id, sequence * PLACES] as const));
  do {
    const rows = await session.rows<PgEventRow>("few_events", FEW_EVENTS, [
      ...transposed(
        CURSOR,
        lanes.map(({ id, cursor }) => [id, cursor ?? Number.MIN_SAFE_INTEGER]),
      ),
      arrayOf("bigint", leased),
      ...transposed(OWN_ID, ownIds),
      ...transposed(PLACE, places),
    ]);
    for (const row of rows) found.set(row.id, row);
    // A position whose places are all taken goes on behind it.
    const isTaken = (lane: number, seq: number) => rows.some((row) => row.lane === lane && row.seq === seq);
    places = places
      .map(([lane, from]) => [lane, from + PLACES] as const)
      .filter(([lane, from]) => isTaken(lane, from - 1));
    ownIds = [];
  } while (places.length > 0);
  return [...found.values()];
}

export function idsIn(rows: readonly { readonly id: number }[]): number[] {
  return rows.map(({ id }) => id);
}

export function keyOfRow({ source, tenant, name, ord }: Pick<PgLaneRow, "source" | "tenant" | "name" | "ord">) {
  return { source, tenant: bytesTenant(tenant), name: nullableText(name), order: orderWord(ord) };
}

/** The facts of a lane, without its events and gaps. */
export function laneFacts(row: PgLaneRow) {
  return {
    id: row.id,
    key: keyOfRow(row),
    cursor: row.cursor,
    status: statusWord(row.status),
    readyAt: row.ready_at,
    gapSince: row.gap_since,
    peer: nullableText(row.peer),
    externalReference: nullableText(row.reference),
  };
}

/** Field by field: with a spread, a later write to a lane changes the hidden class of all lanes, at 10 µs each. */
function toLane(row: PgLaneRow): LaneState {
  const { id, key, cursor, status, readyAt, gapSince, peer, externalReference } = laneFacts(row);
  return {
    id,
    key,
    cursor,
    status,
    readyAt,
    gapSince,
    token: row.token,
    peer,
    externalReference,
    holder: row.holder,
    leased: row.leased,
    events: [],
    gaps: [],
    attempts: [],
  };
}

export function eventOfRow(lane: LaneState, row: PgEventRow): LaneEvent {
  return {
    id: row.id,
    lane,
    ownId: row.own_id === null ? null : bytesId(row.own_id),
    sequence: row.seq,
    eventType: bytesText(row.type),
    state: stateWord(row.state),
    outcome: outcomeWord(row.outcome),
    late: row.late,
    forced: row.forced,
    occurredAt: row.occurred,
    signedAt: row.signed,
    untimed: row.untimed === true,
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

/** Copies the attempts of a leased event from its lane, which keeps them until the lease ends. */
export function takeLease(event: LaneEvent, lane: LeaseRow): void {
  if (event.id !== lane.leased || lane.leased_attempts === null) return;
  event.attempts = lane.leased_attempts;
  event.startedAt = lane.leased_started;
}

function nullableText(bytes: Buffer | null): string | null {
  return bytes === null ? null : bytesText(bytes);
}

/**
 * The rows of `page` in the order of `place`, and none after the one with which their sizes reach `bytes`. The length of a `bytea` is in its
 * header, also if it is stored apart and compressed: of the other rows no body is read.
 */
export const upToBytes = (page: string, place: string, size: string, bytes: string | number): string =>
  `select * from (select page.*, sum(${size}) over (order by ${place} rows unbounded preceding) - ${size} as before
    from (${page}) page) wanted where before < ${bytes} order by ${place}`;

const BODIES = upToBytes(
  `select w.place, b.* from unnest($1::bigint[]) with ordinality as w (event, place)
    cross join lateral (select event, raw, head from {}.body where event = w.event limit 1) b`,
  "place",
  "octet_length(raw)",
  "$2::bigint",
);

/** Reads bodies in the order of `events`, and none after the one that reaches `maxBytes`. Those that are pruned are left out. */
export async function readBodies(
  session: PgSession,
  events: readonly number[],
  maxBytes = NO_BOUND,
): Promise<ReadonlyMap<number, EventBody>> {
  if (events.length === 0) return new Map();
  const rows = await session.rows<EventBody & { event: number }>("bodies", BODIES, [
    arrayOf("bigint", events),
    maxBytes,
  ]);
  return new Map(rows.map(({ event, raw, head }) => [event, { raw, head }]));
}

/** The indexes of the incoming events whose identity is stored with other content. A pruned body cannot be compared. */
export async function conflictsAmong(
  session: PgSession,
  incoming: readonly NewEvent[],
  known: (event: NewEvent, index: number) => LaneEvent | undefined,
): Promise<ReadonlySet<number>> {
  const suspects = incoming.flatMap((event, index) => {
    const first = known(event, index);
    if (first === undefined || !first.hasBody || Buffer.compare(first.digest, event.digest) === 0) return [];
    return [{ index, first, event }];
  });
  const differing = new Set<number>();
  for (let at = 0; at < suspects.length; ) {
    const ids = suspects.slice(at).map(({ first }) => first.id);
    const bodies = await readBodies(session, ids, MOST_BYTES);
    const compared = bodies.size === 0 ? suspects.length : ids.findLastIndex((id) => bodies.has(id)) + 1;
    for (const { index, first, event } of suspects.slice(at, at + compared))
      if (isConflict(event, first.digest, bodies.get(first.id))) differing.add(index);
    at += compared;
  }
  return differing;
}

// Finding due lanes, without waiting for those that other transactions have locked.

/** The time for `inRanges`: the parameter, or the server's clock when it is null. */
const AT = (parameter: string): string => `with c as (select coalesce(${parameter}::bigint, ${CLOCK}) as now)`;

/**
 * Lanes that are due from `from` on. Times further ahead than any wait, because the clock went back, are due too. Two separate ranges,
 * so that the index bounds both: a single condition would be tested on every waiting lane.
 */
const inRanges = (from: string, inRange: (range: string) => string): string =>
  `${inRange(`ready_at >= ${from}::bigint and ready_at <= (select now from c)`)}
  union all ${inRange(`ready_at > (select now + ${TOO_FAR_AHEAD_MS} from c)`)}`;

const DUE = (which: string) => `${AT("$1")} ${inRanges("$4", (range) => inRange(which, range))}`;
const inRange = (which: string, range: string) => `select * from (select ${laneColumns("l")} from {}.lane l
  where ${which} and ${range} and id not in (select unnest($3::bigint[]))
  order by ready_at, id limit $2::int for update skip locked) due`;
const WAITING = DUE("status >= 3");
const LEASED = DUE("status = 2");
/** As `isFresh()`; both comparisons, so that the index of lanes that wait is used. */
const FRESH = `${AT("$1")} ${inRange(
  "status >= 3 and status <= 4",
  `ready_at > (select now - ${FRESH_MS} from c) and ready_at <= (select now from c)`,
)}`;

interface DueRequest {
  /** Epoch milliseconds; null for the server's clock. */
  readonly now: number | null;
  readonly limit: number;
  /** Expired leases instead of ordinary lanes. */
  readonly recover: boolean;
  /** Lanes that this transaction has already locked. */
  readonly seen: readonly number[];
  /** The least `ready_at`, epoch milliseconds. */
  readonly from: number;
}

/**
 * Locks due lanes, the oldest first; up to as many more may follow whose time is too far ahead. Fewer than `limit` means all due lanes from
 * `from` on that no other transaction has locked.
 */
export function lockDue(
  session: PgSession,
  { now, limit, recover, seen, from }: DueRequest,
): Promise<readonly PgLaneRow[]> {
  const [name, text] = recover ? ["claim_expired", LEASED] : ["claim_due", WAITING];
  return session.rows<PgLaneRow>(name, text, [now, limit, arrayOf("bigint", seen), from]);
}

/** Locks up to `limit` fresh lanes that are due, the oldest first: see `ClaimRequest.fresh`. */
export function lockFresh(session: PgSession, now: number | null, limit: number): Promise<readonly PgLaneRow[]> {
  return session.rows<PgLaneRow>("claim_fresh", FRESH, [now, limit, arrayOf("bigint", [])]);
}

const SOONEST = `select (select min(ready_at) from {}.lane where status >= 3) as waiting,
  (select max(ready_at) from {}.lane where status >= 3) as farthest,
  (select min(ready_at) from {}.lane where status = 2) as leased,
  (select max(ready_at) from {}.lane where status = 2) as longest`;

/** Milliseconds until a lane is due: 0 for now, null for none waiting. */
export async function nextDue(session: PgSession, now: number): Promise<number | null> {
  const [row] = await session.rows<Record<"waiting" | "farthest" | "leased" | "longest", number | null>>(
    "soonest",
    SOONEST,
  );
  const times = [row?.waiting, row?.farthest, row?.leased, row?.longest].filter((at) => typeof at === "number");
  if (times.length === 0) return null;
  const soonest = Math.min(...times);
  return soonest <= now || Math.max(...times) > now + TOO_FAR_AHEAD_MS ? 0 : soonest - now;
}

// Numbers for new lanes and events, and expired leases: one statement, sent once the lanes are locked.

const EXPIRED = inRanges("$5", (range) => `(select id from {}.lane where status = 2 and ${range} limit $4::int)`);

/** The arrays are returned as text: as rows, each number would be parsed with the overhead of a row. */
const NUMBERS = `${AT("$3")}
  select array(select nextval('{}.lane_id') from generate_series(1, $1::int))::text as lanes,
    array(select nextval('{}.event_id') from generate_series(1, $2::int))::text as events,
    array(${EXPIRED})::text as expired`;

/** The value of `expiredFrom` that finds no lease. */
export const NONE_EXPIRED = Number.MAX_SAFE_INTEGER;

interface Wanted {
  readonly lanes: number;
  readonly events: number;
  /** Epoch milliseconds; null for the server's clock. */
  readonly now: number | null;
  /** The most lanes that the transaction may lock; one expired lease more is asked for. */
  readonly held: number;
  /** The least end of an expired lease, epoch milliseconds. */
  readonly expiredFrom: number;
}

export interface Numbers {
  /** Ascending. */
  readonly lanes: readonly number[];
  /** Ascending. */
  readonly events: readonly number[];
  /** Lanes with an expired lease: includes at least one that this transaction has not locked, if there is one. */
  readonly expired: readonly number[];
}

export async function newNumbers(session: PgSession, wanted: Wanted): Promise<Numbers> {
  const { lanes, events, now, held, expiredFrom } = wanted;
  const values = [lanes, events, now, held + 1, expiredFrom];
  const [row] = await session.rows<Record<keyof Numbers, string>>("numbers", NUMBERS, values);
  if (row === undefined) throw new RangeError("The sequences returned no numbers.");
  return { lanes: listed(row.lanes), events: listed(row.events), expired: listed(row.expired) };
}

/** The numbers of a text such as `{1,2}`. */
export function listed(text: string): readonly number[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",").map(Number);
}

export function numberAt(numbers: readonly number[], index: number): number {
  const number = numbers[index];
  if (number === undefined) throw new RangeError("There are fewer numbers than requested.");
  return number;
}
