/** The columns of the tables, the rows to write into them, and the statements that write what a transaction decided. */
import { isShared } from "../../inbox/lane-key.ts";
import type { LaneEvent, LaneState } from "../../inbox/lane-state.ts";
import type { AttemptRecord, LaneKey } from "../../inbox/record.ts";
import { plainText } from "../../inbox/store-rules.ts";
import { keepOf, OUTCOME, STATE } from "../database.ts";
import {
  assigned,
  type Columns,
  columnNames,
  columns,
  idBytes,
  tenantBytes,
  textBytes,
  transposed,
  unnested,
  type Values,
} from "./encoding.ts";
import { sqlState } from "./failures.ts";
import { TALLY } from "./instances.ts";
import type { PgSession } from "./session.ts";

/** The columns of an event that never change; they are not written again. */
const FIXED = columns(
  "id bigint, lane bigint, seq bigint, type bytea, source text, tenant bytea, occurred bigint, signed bigint, accepted bigint, digest bytea, trace text",
);
const CHANGING =
  columns(`state smallint, outcome smallint, keep smallint, finished bigint, attempts int, started bigint,
  late boolean, forced boolean, duplicates int, conflict boolean, gap_wait bigint, error_code text, error text, has_body boolean`);
/** Index into the changing values: the first of two that a lane keeps while its event is leased. */
export const ATTEMPTS = 4;
const NEW_EVENT: Columns = [...FIXED, ...CHANGING];
/** All columns. The last ones are null by sequence. */
export const WHOLE_EVENT: Columns = [...NEW_EVENT, ...columns("untimed boolean, shared boolean, own_id bytea")];
const EVENT: Columns = [...columns("id bigint"), ...CHANGING];
/** Identifies a lane. A lane with these columns alone is idle. */
const KEY = columns("id bigint, name bytea, source text, tenant bytea, ord smallint");
const LANE_STATE = columns(`status smallint, ready_at bigint, cursor bigint, gap_since bigint, token bigint, holder int,
  leased bigint, leased_attempts int, leased_started bigint, peer bytea, reference bytea`);
export const NEW_LANE: Columns = [...KEY, ...LANE_STATE];
const LANE: Columns = [...columns("id bigint"), ...LANE_STATE];
const BODY = columns("event bigint, raw bytea");
/** A body with the headers that its source keeps. */
export const HEADED_BODY = columns("event bigint, raw bytea, head text");
export const GAP = columns("lane bigint, lo bigint, hi bigint, skipped bigint, filled bigint");
export const ATTEMPT = columns("event bigint, attempt int, at bigint, duration bigint, error_code text, error text");
export const CONFLICT = columns("event bigint, digest bytea, signed bigint, at bigint, raw bytea");

/** The facts of an event that its row stores. */
type EventFacts = Omit<LaneEvent, "lane">;
type LaneFacts = Pick<LaneState, "id" | "key">;

/** The values of an event's columns that never change: the first ones of `NEW_EVENT`. */
export function fixedValues(event: EventFacts, { id: lane, key }: LaneFacts): Values {
  const { id, sequence, eventType, occurredAt, signedAt, acceptedAt, digest, trace } = event;
  const owner = [key.source, tenantBytes(key.tenant)];
  const times = [occurredAt, signedAt, acceptedAt];
  return [id, lane, sequence, textBytes(eventType), ...owner, ...times, asBuffer(digest), trace];
}

/** The values of the columns of `WHOLE_EVENT` that `NEW_EVENT` does not have. Null if it has none. */
export function sourceValues({ untimed, ownId }: EventFacts, key: LaneKey): Values | null {
  if (!untimed && ownId === null) return null;
  return [untimed ? true : null, isShared(key) ? true : null, ownId === null ? null : idBytes(ownId)];
}

/** The values of an event's changing columns: the rest of `NEW_EVENT`. */
export function changingValues(event: EventFacts): Values {
  const { state, outcome, finishedAt, attempts, startedAt, late, forced, duplicates, conflict, gapWaitMs } = event;
  return [
    STATE[state],
    outcome === null ? null : OUTCOME[outcome],
    keepOf(event),
    finishedAt,
    attempts,
    startedAt,
    late,
    forced,
    duplicates,
    conflict,
    Math.round(gapWaitMs),
    event.errorCode === null ? null : plainText(event.errorCode),
    event.error === null ? null : plainText(event.error),
    event.hasBody,
  ];
}

/** The values of `ATTEMPT`. */
export function attemptValues({ eventId, attempt, at, durationMs, errorCode, error }: AttemptRecord): Values {
  return [eventId, attempt, at, Math.round(durationMs), plainText(errorCode), plainText(error)];
}

/** The same bytes as a `Buffer`, without a copy. */
export function asBuffer(raw: Uint8Array): Buffer {
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
}

/** Sorted, so that two transactions with the same ids never wait for each other. */
export const BY_OWN_ID = "order by own_id, source, tenant";

const insert = (table: string, columns: Columns, offset: number, more = "") =>
  `insert into {}.${table} (${columnNames(columns)})
   select * from ${unnested(columns, offset)} as new (${columnNames(columns)}) ${more} returning 1`;
/** The first condition is for the planner, which would scan the whole table while it does not know the number of rows. */
const update = (table: string, columns: Columns, offset: number) =>
  `update {}.${table} t set ${assigned(columns)} from ${unnested(columns, offset)} as new (${columnNames(columns)})
   where t.id = any($${offset + 1}::bigint[]) and t.id = new.id returning 1`;

/** Sorted, because a transaction waits here for another one that creates the same lane. */
const SORTED = "order by name, source, tenant, ord";
/** Fails when a lane exists already: `on conflict do nothing` would cost the server 5 µs for each lane. */
const insertLanes = (offset: number): string => insert("lane", NEW_LANE, offset, SORTED);
/** Creates the lanes that do not exist, idle. */
const MAKE_LANES = insert("lane", KEY, 0, `${SORTED} on conflict do nothing`);

interface Part {
  readonly columns: Columns;
  readonly write: (offset: number) => string;
}

/** The parts of the statement, each with the columns that its parameters fill. New lanes come first. */
const PARTS = [
  { columns: NEW_LANE, write: insertLanes },
  { columns: NEW_EVENT, write: (offset: number) => insert("event", NEW_EVENT, offset) },
  { columns: BODY, write: (offset: number) => insert("body", BODY, offset) },
  { columns: EVENT, write: (offset: number) => update("event", EVENT, offset) },
  { columns: LANE, write: (offset: number) => update("lane", LANE, offset) },
  {
    columns: GAP,
    write: (offset: number) =>
      insert("gap", GAP, offset, "on conflict (lane, hi) do update set filled = excluded.filled"),
  },
  { columns: ATTEMPT, write: (offset: number) => insert("attempt", ATTEMPT, offset) },
  { columns: CONFLICT, write: (offset: number) => insert("conflict", CONFLICT, offset, "on conflict do nothing") },
  { columns: HEADED_BODY, write: (offset: number) => insert("body", HEADED_BODY, offset) },
  { columns: WHOLE_EVENT, write: (offset: number) => insert("event", WHOLE_EVENT, offset, BY_OWN_ID) },
] as const satisfies readonly Part[];

/** The SQLSTATE of the division by zero that ends the statement when the table did not keep its new lanes. */
const NOT_KEPT = "22012";
const TAKEN = "23505";

/** Whether the insert of new lanes failed because one exists already. */
function isLaneTaken(error: unknown): boolean {
  return sqlState(error) === TAKEN && (error as { table?: unknown }).table === "lane";
}

/** Whether a statement that writes several parts failed because not all of its lanes were created. */
export function isLaneNotMade(error: unknown): boolean {
  return sqlState(error) === NOT_KEPT || isLaneTaken(error);
}

/** A statement that writes some of the parts. */
interface FlushStatement {
  /** Unique for the set of parts. */
  readonly name: string;
  readonly text: string;
}

const statements = new Map<string, FlushStatement>();

/**
 * The statement for the rows of each part, in the order of the parts, with its parameters up to those of the tally. Parts without
 * rows are left out, because Postgres would prepare to write to their tables. The statement returns the number of the transaction. It
 * fails (`isLaneNotMade()`) unless all its lanes were created, because the commit may already be on its way.
 */
export function flushStatement(rows: readonly (readonly Values[])[]): FlushStatement & { readonly values: Buffer[] } {
  const shape = PARTS.map((_part, index) => (rows[index]?.length ? "1" : "0")).join("");
  let statement = statements.get(shape);
  if (statement === undefined) {
    statement = { name: `flush ${shape}`, text: textFor(shape) };
    statements.set(shape, statement);
  }
  const values = PARTS.flatMap(({ columns }, index) =>
    shape[index] === "1" ? transposed(columns, rows[index] ?? []) : [],
  );
  return { ...statement, values };
}

function textFor(shape: string): string {
  const parts: string[] = [];
  let offset = 0;
  for (const [index, { columns, write }] of PARTS.entries()) {
    if (shape[index] === "0") continue;
    parts.push(`part${index} as (${write(offset)})`);
    offset += columns.length;
  }
  const check = shape[0] === "1" ? ", 1 / ((select count(*) from part0) = cardinality($1::bigint[]))::int as made" : "";
  return `with ${[...parts, `tally as (${TALLY(offset)})`].join(",\n")}\nselect pg_current_xact_id()::text as number${check}`;
}

/** Whether the insert of new events failed because one came with another transaction, perhaps in another lane. */
export function isEventTaken(error: unknown): boolean {
  return sqlState(error) === TAKEN && (error as { constraint?: unknown }).constraint === "event_own_id";
}

/** Another transaction accepted an event that this one was about to accept. It is run again and finds that event. */
export class EventAppeared extends Error {
  constructor(cause: unknown) {
    super("Another transaction accepted the event first.", { cause });
  }
}

/** Another transaction created a lane that this one was about to create. It is run again and finds that lane. */
export class LaneAppeared extends Error {
  /** All lanes that the transaction was about to create, as `NEW_LANE`. */
  readonly lanes: readonly Values[];

  constructor(lanes: readonly Values[]) {
    super("Another transaction created the lane first.");
    this.lanes = lanes;
  }
}

/**
 * Creates idle lanes outside a transaction: without a lock on a lane, it can wait for other transactions that create one of them while no
 * transaction waits for it. If the batch that needs the lanes fails, they stay for its repetition.
 */
export async function makeLanes(session: PgSession, lanes: readonly Values[]): Promise<void> {
  const named = lanes.filter(([, name]) => name !== null);
  await session.rows("make_lanes", MAKE_LANES, transposed(KEY, named));
}
