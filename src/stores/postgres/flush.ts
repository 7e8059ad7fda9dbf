/** Writes what the decisions changed: every changed row once, in one statement. */
import type { LaneEvent, LaneState } from "../../inbox/lanes/state.ts";
import { KEEP, OUTCOME, STATE, STATUS } from "../codes.ts";
import { assigned, type Columns, named, transposed, unnested, type Values } from "./columns.ts";
import { LaneAppeared } from "./failures.ts";
import { keyOf, nullableBytes } from "./lanes.ts";
import type { Names } from "./names.ts";
import type { Session } from "./session.ts";
import { TALLY, type TallySheet } from "./tally.ts";
import { plainText } from "./text.ts";

const NEW_EVENT: Columns = [
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
const DUPLICATES = 8;
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
  ["peer", "bytea"],
  ["reference", "bytea"],
];
/** What never changes about a lane comes after its id, and is not written again. */
const NEW_LANE: Columns = [
  ["id", "bigint"],
  ["client", "int"],
  ["tag", "smallint"],
  ["message", "bytea"],
  ...LANE.slice(1),
];
const BODY: Columns = [
  ["event", "bigint"],
  ["raw", "bytea"],
];
const GAP: Columns = [
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

/**
 * The parts of the statement, each with the columns that its parameters fill. New lanes come first, sorted: here a transaction waits
 * for another one that is making the same lane, and makes none itself then.
 */
const PARTS = [
  {
    columns: NEW_LANE,
    write: (offset: number) => insert("lane", NEW_LANE, offset, "order by 2, 3, 4 on conflict do nothing"),
  },
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

const FLUSH = (() => {
  let offset = 0;
  const parts = PARTS.map(({ columns, write }, index) => {
    const text = `part${index} as (${write(offset)})`;
    offset += columns.length;
    return text;
  });
  return `with ${parts.join(",\n")},\ntally as (${TALLY(offset)})\nselect pg_current_xact_id()::text as number, (select count(*) from part0)::int as made`;
})();

export interface NewBody {
  readonly event: number;
  readonly raw: Uint8Array;
}

export interface NewConflict extends NewBody {
  readonly digest: Uint8Array;
  readonly signedAt: number;
  readonly at: number;
}

/** Lanes as they were read, so that what changed in them can be told. */
export class Snapshot {
  readonly #names: Names;
  /** Null for a lane that is not stored yet. */
  readonly #lanes = new Map<LaneState, Values | null>();
  readonly #events = new Map<LaneEvent, Values>();
  readonly #gaps = new Map<object, number | null>();

  constructor(names: Names) {
    this.#names = names;
  }

  /** To be called before the first decision about `lanes`. */
  take(lanes: Iterable<LaneState>): void {
    for (const lane of lanes) {
      this.#lanes.set(lane, laneValues(lane));
      for (const event of lane.events) this.#events.set(event, changing(event));
      for (const gap of lane.gaps) this.#gaps.set(gap, gap.filledAt);
    }
  }

  /** A lane that is to be made. */
  enter(lane: LaneState): void {
    this.#lanes.set(lane, null);
  }

  /**
   * Writes what differs from the snapshot. Attempts of the lanes are the new ones: old ones are not read. Resolves with the number of
   * the transaction, or null when nothing differs.
   *
   * @throws LaneAppeared when another transaction has made a lane meanwhile that is new to this one
   */
  async flush(
    session: Session,
    sheet: TallySheet,
    { bodies, conflicts }: { readonly bodies: readonly NewBody[]; readonly conflicts: readonly NewConflict[] },
  ): Promise<string | null> {
    const changed = this.#changed(sheet);
    const rows: readonly (readonly Values[])[] = [
      changed.newLanes,
      changed.newEvents,
      bodies.map(({ event, raw }) => [event, bytes(raw)]),
      changed.events,
      changed.lanes,
      changed.gaps,
      changed.attempts,
      conflicts.map(({ event, digest, signedAt, at, raw }) => [event, bytes(digest), signedAt, at, bytes(raw)]),
    ];
    if (rows.every(({ length }) => length === 0) && sheet.isBlank) return null;
    const parameters = PARTS.flatMap(({ columns }, index) => transposed(columns, rows[index] ?? []));
    const values = [...parameters, ...sheet.values()];
    const [row] = await session.rows<{ number: string; made: number }>("flush", FLUSH, values);
    if (row?.made !== changed.newLanes.length) throw new LaneAppeared();
    return row.number;
  }

  #changed(sheet: TallySheet) {
    const newLanes: Values[] = [];
    const newEvents: Values[] = [];
    const events: Values[] = [];
    const lanes: Values[] = [];
    const gaps: Values[] = [];
    const attempts: Values[] = [];
    for (const [lane, before] of this.#lanes) {
      const now = laneValues(lane);
      if (before === null) newLanes.push([lane.id, ...this.#keyOf(lane), ...now]);
      else if (!same(before, now)) lanes.push([lane.id, ...now]);
      sheet.gauge("blocked", Number(now[0] === STATUS.blocked) - Number(before?.[0] === STATUS.blocked));
      for (const event of lane.events) this.#addEvent(event, { newEvents, events, sheet });
      for (const gap of lane.gaps) {
        if (this.#gaps.has(gap) && this.#gaps.get(gap) === gap.filledAt) continue;
        gaps.push([lane.id, gap.from, gap.to, gap.skippedAt, gap.filledAt]);
      }
      for (const { eventId, attempt, at, durationMs, errorCode, error } of lane.attempts) {
        attempts.push([eventId, attempt, at, Math.round(durationMs), plainText(errorCode), plainText(error)]);
      }
    }
    // In the order in which repeats are locked, which wait for these rows and are waited for.
    events.sort((a, b) => Number(a[0]) - Number(b[0]));
    return { newLanes, newEvents, events, lanes, gaps, attempts };
  }

  #keyOf({ key }: LaneState): Values {
    const { client, tag, message } = keyOf(this.#names, key);
    return [client, tag, message];
  }

  #addEvent(event: LaneEvent, into: { newEvents: Values[]; events: Values[]; sheet: TallySheet }): void {
    const before = this.#events.get(event);
    const now = changing(event);
    const was = before?.[0];
    into.sheet.gauge("pending", Number(now[0] === STATE.pending) - Number(was === STATE.pending));
    into.sheet.gauge("dead", Number(now[0] === STATE.dead) - Number(was === STATE.dead));
    if (before === undefined) into.newEvents.push([...fixed(this.#names, event), ...now]);
    else if (!same(before, now))
      into.events.push([event.id, ...now.with(DUPLICATES, Number(now[DUPLICATES]) - Number(before[DUPLICATES]))]);
  }
}

function fixed(names: Names, event: LaneEvent): Values {
  const { id, lane, sequence, eventType, occurredAt, signedAt, acceptedAt, digest, trace } = event;
  return [id, lane.id, sequence, names.kindId(eventType), occurredAt, signedAt, acceptedAt, bytes(digest), trace];
}

function changing(event: LaneEvent): Values {
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

/** What pruning has still to do with an event. */
function keepOf({ state, outcome, hasBody }: LaneEvent): number | null {
  if (state === "pending") return null;
  if (state === "dead") return KEEP.dead;
  if (!hasBody) return KEEP.identity;
  return outcome === "handled" ? KEEP.handled : KEEP.other;
}

/** Waits come from the application too, with fractions of a millisecond, which an integer column refuses. */
function laneValues(lane: LaneState): Values {
  const { status, cursor, gapSince, epoch, holder, leased, peer, externalReference } = lane;
  const readyAt = lane.readyAt === null ? null : Math.round(lane.readyAt);
  const held = holder === null ? null : Number(holder);
  const named = [nullableBytes(peer), nullableBytes(externalReference)];
  return [STATUS[status], readyAt, cursor, gapSince, epoch, held, leased?.id ?? null, ...named];
}

function same(a: Values, b: Values): boolean {
  return a.every((value, index) => {
    const other = b[index];
    return (
      value === other ||
      (value instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(value, other) === 0)
    );
  });
}

function bytes(raw: Uint8Array): Buffer {
  return Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
}
