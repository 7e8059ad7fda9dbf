/** The columns of the tables, and the statements that write what a transaction decided. */
import { assigned, type Columns, named, transposed, unnested, type Values } from "./encoding.ts";
import { sqlState } from "./failures.ts";
import { TALLY, TALLY_WIDTH } from "./instances.ts";
import { areCurrent } from "./names.ts";
import type { Session } from "./session.ts";

// The statement that writes what a transaction decided.

export const NEW_EVENT: Columns = [
  ["id", "bigint"],
  ["lane", "bigint"],
  ["seq", "bigint"],
  ["kind", "int"],
  ["occurred", "bigint"],
  ["signed", "bigint"],
  ["accepted", "bigint"],
  ["digest", "bytea"],
  ["trace", "text"],
  ["state", "smallint"],
  ["outcome", "smallint"],
  ["keep", "smallint"],
  ["finished", "bigint"],
  ["attempts", "int"],
  ["started", "bigint"],
  ["late", "boolean"],
  ["forced", "boolean"],
  ["duplicates", "int"],
  ["conflict", "boolean"],
  ["gap_wait", "bigint"],
  ["error_code", "text"],
  ["error", "text"],
  ["has_body", "boolean"],
];
/** What never changes about an event comes first there, and is not written again. */
const FIXED = 9;
/** Among what changes. Others count repeats without holding the lane, so it is added to and not set. */
export const DUPLICATES = 8;
/** The first of two there that a lane keeps while its event is leased. */
export const ATTEMPTS = 4;
const EVENT: Columns = [["id", "bigint"], ...NEW_EVENT.slice(FIXED)];
const LANE: Columns = [
  ["id", "bigint"],
  ["status", "smallint"],
  ["ready_at", "bigint"],
  ["cursor", "bigint"],
  ["gap_since", "bigint"],
  ["epoch", "int"],
  ["holder", "int"],
  ["leased", "bigint"],
  ["leased_epoch", "int"],
  ["leased_attempts", "int"],
  ["leased_started", "bigint"],
  ["peer", "bytea"],
  ["reference", "bytea"],
];
/** What never changes about a lane comes after its id, and is not written again. */
export const NEW_LANE: Columns = [
  ["id", "bigint"],
  ["client", "int"],
  ["tag", "smallint"],
  ["message", "bytea"],
  ...LANE.slice(1),
];
/** What tells a lane from others: with no more than that it is idle. */
const KEY = NEW_LANE.slice(0, 4);
const BODY: Columns = [
  ["event", "bigint"],
  ["raw", "bytea"],
];
export const GAP: Columns = [
  ["lane", "bigint"],
  ["lo", "bigint"],
  ["hi", "bigint"],
  ["skipped", "bigint"],
  ["filled", "bigint"],
];
const ATTEMPT: Columns = [
  ["event", "bigint"],
  ["attempt", "int"],
  ["at", "bigint"],
  ["duration", "bigint"],
  ["error_code", "text"],
  ["error", "text"],
];
const CONFLICT: Columns = [
  ["event", "bigint"],
  ["digest", "bytea"],
  ["signed", "bigint"],
  ["at", "bigint"],
  ["raw", "bytea"],
];

const insert = (table: string, columns: Columns, offset: number, more = "") =>
  `insert into {}.${table} (${named(columns)}) select * from ${unnested(columns, offset)} ${more} returning 1`;
/** The first condition is there for the planner, which would scan the whole table while it does not know how many rows it has. */
const update = (table: string, columns: Columns, offset: number, assignments = assigned(columns)) =>
  `update {}.${table} t set ${assignments} from ${unnested(columns, offset)} as new (${named(columns)})
   where t.id = any($${offset + 1}::bigint[]) and t.id = new.id returning 1`;

const EVENT_ASSIGNED = assigned(EVENT).replace(
  "duplicates = new.duplicates",
  "duplicates = t.duplicates + new.duplicates",
);

/** Sorted: here a transaction waits for another one that is making the same lane. */
const SORTED = "order by 2, 3, 4";
/** Fails where somebody has made a lane: to go on instead takes the server 5 µs for each. */
const insertLanes = (offset: number): string => insert("lane", NEW_LANE, offset, SORTED);
const INSERT_LANES = insertLanes(0);
/** Makes those that nobody has made, idle. */
const MAKE_LANES = insert(
  "lane",
  KEY,
  0,
  // Not for a client whose name was pruned since it was looked up.
  `as new (${named(KEY)}) where exists (select 1 from {}.client c where c.id = new.client) ${SORTED} on conflict do nothing`,
);

/** The parts of the statement, each with the columns that its parameters fill. New lanes come first. */
const PARTS = [
  { columns: NEW_LANE, write: insertLanes },
  { columns: NEW_EVENT, write: (offset: number) => insert("event", NEW_EVENT, offset) },
  { columns: BODY, write: (offset: number) => insert("body", BODY, offset) },
  { columns: EVENT, write: (offset: number) => update("event", EVENT, offset, EVENT_ASSIGNED) },
  { columns: LANE, write: (offset: number) => update("lane", LANE, offset) },
  {
    columns: GAP,
    write: (offset: number) =>
      insert("gap", GAP, offset, "on conflict (lane, hi) do update set filled = excluded.filled"),
  },
  { columns: ATTEMPT, write: (offset: number) => insert("attempt", ATTEMPT, offset) },
  { columns: CONFLICT, write: (offset: number) => insert("conflict", CONFLICT, offset, "on conflict do nothing") },
] as const;

/** What Postgres calls the division by zero that ends the statement when a table has not kept what was made in it. */
const NOT_KEPT = "22012";
const TAKEN = "23505";

/** Whether `INSERT_LANES`, alone or in a statement that writes more, failed because somebody had made a lane. */
function isLaneTaken(error: unknown): boolean {
  return sqlState(error) === TAKEN && (error as { table?: unknown }).table === "lane";
}

/** Whether a statement that writes more failed because not all of its lanes were made. */
export function isLaneNotMade(error: unknown): boolean {
  return sqlState(error) === NOT_KEPT || isLaneTaken(error);
}

/** A statement that writes some of the parts, and what goes with it. */
interface FlushStatement {
  /** Tells it from those that write other parts. */
  readonly name: string;
  readonly text: string;
  readonly writesNames: boolean;
}

const statements = new Map<string, FlushStatement>();

/**
 * The statement for these rows of each part, in its order, and its parameters up to those of the tally. Parts without rows are left
 * out: Postgres would prepare to write to each of their tables. It answers with the number of the transaction, and
 * fails (`isLaneNotMade()`) unless all its lanes were made: a commit may be on its way already.
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

/** Whether lanes or events are made, which hold numbers of names: then the parameter of `areCurrent` follows those of the tally. */
function writesNames(shape: string): boolean {
  return shape[0] === "1" || shape[1] === "1";
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

// Writes new lanes ahead of the statement that writes everything else.

/** Another transaction made a lane that this one was about to make: it is run again, and finds it. */
export class LaneAppeared extends Error {
  /** All lanes that it was about to make, as `NEW_LANE`. */
  readonly lanes: readonly Values[];

  constructor(lanes: readonly Values[]) {
    super("A lane was made meanwhile.");
    this.lanes = lanes;
  }
}

/** As they are to be at the end of the transaction. @throws LaneAppeared */
export async function writeLanes(session: Session, lanes: readonly Values[]): Promise<void> {
  try {
    const made = await session.rows("write_lanes", INSERT_LANES, transposed(NEW_LANE, lanes));
    if (made.length === lanes.length) return;
  } catch (error) {
    if (!isLaneTaken(error)) throw error;
  }
  throw new LaneAppeared(lanes);
}

/**
 * Idle, outside of a transaction: holding no lane, it waits for whoever makes one of them without being waited for. If the turn that
 * wants them fails after all, they stay for its repetition.
 */
export async function makeLanes(session: Session, lanes: readonly Values[]): Promise<void> {
  await session.rows("make_lanes", MAKE_LANES, transposed(KEY, lanes));
}
