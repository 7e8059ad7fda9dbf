/** The columns of the tables, the rows to write into them, and the statements that write what a transaction decided. */
import type { LaneEvent } from "../../inbox/lane-state.ts";
import type { AttemptRecord } from "../../inbox/record.ts";
import { plainText } from "../../inbox/store-rules.ts";
import { keepOf, OUTCOME, STATE } from "../database.ts";
import {
  assigned,
  type Columns,
  columnNames,
  columns,
  nullableBytes,
  transposed,
  unnested,
  type Values,
} from "./encoding.ts";
import { sqlState } from "./failures.ts";
import { TALLY, TALLY_WIDTH } from "./instances.ts";
import { areCurrent, type Names } from "./names.ts";
import type { PgSession } from "./session.ts";

/** The columns of an event that never change; they are not written again. */
const FIXED = columns(
  "id bigint, lane bigint, seq bigint, kind int, occurred bigint, signed bigint, accepted bigint, digest bytea, trace text",
);
const CHANGING =
  columns(`state smallint, outcome smallint, keep smallint, finished bigint, attempts int, started bigint,
  late boolean, forced boolean, duplicates int, conflict boolean, gap_wait bigint, error_code text, error text, has_body boolean`);
/** Index into the changing values: the first of two that a lane keeps while its event is leased. */
export const ATTEMPTS = 4;
const NEW_EVENT: Columns = [...FIXED, ...CHANGING];
/** All columns. The last ones are for sources besides the messaging service, and null for its events. */
export const WHOLE_EVENT: Columns = [...NEW_EVENT, ...columns("untimed boolean, identity bytea")];
const EVENT: Columns = [...columns("id bigint"), ...CHANGING];
/** Identifies a lane. A lane with these columns alone is idle. */
const KEY = columns("id bigint, client int, tag smallint, message bytea");
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

/** The values of an event's columns that never change: the first ones of `NEW_EVENT`. */
export function fixedValues(names: Names, event: EventFacts, lane: number): Values {
  const { id, sequence, eventType, occurredAt, signedAt, acceptedAt, digest, trace } = event;
  return [id, lane, sequence, names.kindId(eventType), occurredAt, signedAt, acceptedAt, asBuffer(digest), trace];
}

/** The values of the columns of `WHOLE_EVENT` that `NEW_EVENT` does not have. Null if it has none. */
export function sourceValues({ untimed, identity }: EventFacts): Values | null {
  return untimed || identity !== null ? [untimed ? true : null, nullableBytes(identity)] : null;
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

const insert = (table: string, columns: Columns, offset: number, more = "") =>
  `insert into {}.${table} (${columnNames(columns)}) select * from ${unnested(columns, offset)} ${more} returning 1`;
/** The first condition is for the planner, which would scan the whole table while it does not know the number of rows. */
const update = (table: string, columns: Columns, offset: number) =>
  `update {}.${table} t set ${assigned(columns)} from ${unnested(columns, offset)} as new (${columnNames(columns)})
   where t.id = any($${offset + 1}::bigint[]) and t.id = new.id returning 1`;

/** Sorted, because a transaction waits here for another one that creates the same lane. */
const SORTED = "order by 2, 3, 4";
/** Fails when a lane exists already: `on conflict do nothing` would cost the server 5 µs for each lane. */
const insertLanes = (offset: number): string => insert("lane", NEW_LANE, offset, SORTED);
/** Creates the lanes that do not exist, idle. */
const MAKE_LANES = insert(
  "lane",
  KEY,
  0,
  // Skips a client whose name was pruned after it was looked up.
  `as new (${columnNames(KEY)}) where exists (select 1 from {}.client c where c.id = new.client) ${SORTED} on conflict do nothing`,
);

interface Part {
  readonly columns: Columns;
  readonly write: (offset: number) => string;
  /** Its rows contain numbers of names. */
  readonly names?: true;
}

/** The parts of the statement, each with the columns that its parameters fill. New lanes come first. */
const PARTS = [
  { columns: NEW_LANE, write: insertLanes, names: true },
  { columns: NEW_EVENT, write: (offset: number) => insert("event", NEW_EVENT, offset), names: true },
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
  { columns: WHOLE_EVENT, write: (offset: number) => insert("event", WHOLE_EVENT, offset), names: true },
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
  readonly writesNames: boolean;
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
    statement = { name: `flush ${shape}`, text: textFor(shape), writesNames: writesNames(shape) };
    statements.set(shape, statement);
  }
  const values = PARTS.flatMap(({ columns }, index) =>
    shape[index] === "1" ? transposed(columns, rows[index] ?? []) : [],
  );
  return { ...statement, values };
}

/** Then the parameter of `areCurrent` follows those of the tally. */
function writesNames(shape: string): boolean {
  return PARTS.some((part: Part, index) => part.names === true && shape[index] === "1");
}

function textFor(shape: string): string {
  const parts: string[] = [];
  let offset = 0;
  for (const [index, { columns, write }] of PARTS.entries()) {
    if (shape[index] === "0") continue;
    parts.push(`part${index} as (${write(offset)})`);
    offset += columns.length;
  }
  const names = writesNames(shape) ? `, ${areCurrent(offset + TALLY_WIDTH + 1)}` : "";
  const check = shape[0] === "1" ? ", 1 / ((select count(*) from part0) = cardinality($1::bigint[]))::int as made" : "";
  return `with ${[...parts, `tally as (${TALLY(offset)})`].join(",\n")}\nselect pg_current_xact_id()::text as number${check}${names}`;
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
  await session.rows("make_lanes", MAKE_LANES, transposed(KEY, lanes));
}
