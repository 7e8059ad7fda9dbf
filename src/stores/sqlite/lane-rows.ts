/** Answers the lane rules from prepared statements: a lane is a row, and its events are looked up one by one. */
import type { Missing } from "../../inbox/gap.ts";
import { LaneRules } from "../../inbox/lane.ts";
import type { Heads, Lane, LaneEntry, LanePort } from "../../inbox/lane-port.ts";
import type { Mutable } from "../../inbox/lane-state.ts";
import type { EventId, EventState, LaneId, Outcome } from "../../inbox/record.ts";
import type { Failure } from "../../inbox/store.ts";
import { KEEP, keepOf, OUTCOME, STATE, STATUS, stateWord, statusWord, TAG } from "../database.ts";
import type { EntryRow, HeadRow, InTurnRow, KeyedLaneRow, LaneRow } from "./statements.ts";
import type { Ledger, Work } from "./transaction.ts";

/** A lane's row as the rules change it. */
export interface SqliteLane extends Lane {
  readonly client: number;
  readonly tag: number;
  readonly message: string;
  /** 1 while its number or its reference is not known. */
  readonly bare: number;
  /** See the schema. */
  below: number;
  /** What the database holds of it. */
  readonly stored: LaneRow;
}

/** An event's row as far as the rules read it. */
export type SqliteEntry = Mutable<LaneEntry>;

/** The lanes of one transaction. */
export class SqliteLanes implements LanePort<SqliteLane, SqliteEntry> {
  readonly now: number;
  readonly firstSequence: number | "any";
  readonly holder: number;
  readonly tally: Ledger;
  readonly work: Work;
  readonly rules = new LaneRules<SqliteLane, SqliteEntry>(this);

  constructor(work: Work) {
    this.work = work;
    this.now = work.now;
    this.firstSequence = work.facts.firstSequence;
    this.holder = work.facts.holder;
    this.tally = work.ledger;
  }

  lane(id: LaneId): SqliteLane | undefined {
    const row = this.work.sql.laneById.get(id);
    return row === undefined ? undefined : toLane(row, row);
  }

  isOrdered({ tag }: SqliteLane): boolean {
    return tag === TAG.outbound;
  }

  /** Looks below the cursor only while something may be there. */
  heads(lane: SqliteLane): Heads<SqliteEntry> {
    const { sql } = this.work;
    const from = lane.below === 1 || lane.cursor === null ? Number.MIN_SAFE_INTEGER : lane.cursor;
    const head = toHead(sql.head.get(lane.id, from), false);
    const late = lane.below === 1 ? toHead(sql.lateHead.get(lane.id), true) : null;
    const isBelow = late !== null || (head !== null && lane.cursor !== null && head.sequence < lane.cursor);
    lane.below = isBelow ? 1 : 0;
    return { head, late };
  }

  event(_lane: SqliteLane, id: EventId): SqliteEntry | null {
    const row = this.work.sql.entry.get(id);
    return row === undefined ? null : toEntry(row);
  }

  isSettledAt(lane: SqliteLane, sequence: number): boolean {
    return this.work.sql.settledAt.get(lane.id, sequence) !== undefined;
  }

  /** A lane without a cursor has no gap: the first gap comes with the first lease. */
  gapEndingAt(lane: SqliteLane, sequence: number): Missing | null {
    if (lane.tag !== TAG.outbound || lane.cursor === null) return null;
    return this.work.sql.gapBefore.get(lane.id, sequence) ?? null;
  }

  inTurn(lane: SqliteLane): readonly InTurnRow[] {
    return this.work.sql.inTurn.all(lane.id);
  }

  /** Writes nothing if nothing changed: most lanes stay as they are when an event arrives. */
  save(lane: SqliteLane): void {
    const { stored, readyAt, cursor, gapSince, epoch, holder, leased, below, id } = lane;
    const status = STATUS[lane.status];
    if (status === stored.status && readyAt === stored.readyAt && cursor === stored.cursor && below === stored.below) {
      if (gapSince === stored.gapSince && epoch === stored.epoch && leased === stored.leased) return;
    }
    this.work.sql.updateLane.run(status, readyAt, cursor, gapSince, epoch, holder, leased, below, id);
    this.tally.gauge("blocked", Number(status === STATUS.blocked) - Number(stored.status === STATUS.blocked));
    stored.status = status;
    stored.readyAt = readyAt;
    stored.cursor = cursor;
    stored.gapSince = gapSince;
    stored.epoch = epoch;
    stored.leased = leased;
    stored.below = below;
  }

  addGap(lane: SqliteLane, { from, to }: Missing): void {
    this.work.sql.insertGap.run(lane.id, to, from, this.now);
  }

  fillGaps(lane: SqliteLane, sequence: number): void {
    this.work.sql.fillGaps.run(this.now, lane.id, sequence, sequence);
  }

  start(_lane: SqliteLane, event: SqliteEntry): void {
    event.attempts++;
    this.work.sql.startEvent.run(this.now, event.id);
  }

  takeBackAttempt(_lane: SqliteLane, event: SqliteEntry): void {
    event.attempts--;
    this.work.sql.releaseEvent.run(event.id);
  }

  addAttempt(_lane: SqliteLane, { id, attempts }: SqliteEntry, { code, message, durationMs }: Failure): void {
    this.work.sql.insertAttempt.run(id, attempts, this.now, durationMs, code, message);
  }

  fail(_lane: SqliteLane, event: SqliteEntry, { code, message }: Pick<Failure, "code" | "message">): void {
    this.work.sql.failEvent.run(code, message, event.id);
  }

  finish(lane: SqliteLane, event: SqliteEntry, state: Exclude<EventState, "pending">, outcome: Outcome | null): void {
    const { id, hasBody } = event;
    const keep = keepOf({ state, outcome, hasBody });
    this.work.sql.finishEvent.run(STATE[state], outcome === null ? null : OUTCOME[outcome], keep, this.now, id);
    this.#enter(event, state);
    this.tally.finished(id);
    // The cursor may pass a pending event, such as one of sequence 0.
    if (state === "discarded") lane.below = 1;
  }

  reopen(lane: SqliteLane, event: SqliteEntry): void {
    this.work.sql.reopenEvent.run(event.id);
    this.#enter(event, "pending");
    // It may lie below the cursor.
    lane.below = 1;
  }

  #enter(event: SqliteEntry, state: EventState): void {
    this.tally.gauge("pending", Number(state === "pending") - Number(event.state === "pending"));
    this.tally.gauge("dead", Number(state === "dead") - Number(event.state === "dead"));
    event.state = state;
  }

  endGapWait(_lane: SqliteLane, event: SqliteEntry): void {
    this.work.sql.endGapWait.run(event.id);
  }

  erase({ id }: SqliteLane): number {
    const { db } = this.work;
    for (const text of ERASE) db.prepare(text).run(id);
    const { changes: discarded } = db.prepare(DISCARD_PENDING).run(STATE.discarded, KEEP.identity, this.now, id);
    db.prepare(ERASE_ERRORS).run(KEEP.identity, id);
    this.tally.gauge("pending", -discarded);
    return discarded;
  }
}

const OF_LANE = "event in (select id from oncehook_event where lane = ?)";
const ERASE = [
  `delete from oncehook_body where ${OF_LANE}`,
  `delete from oncehook_conflict where ${OF_LANE}`,
  `update oncehook_attempt set error = '' where ${OF_LANE}`,
  "update oncehook_lane set peer = null, reference = null where id = ?",
];
const DISCARD_PENDING = "update oncehook_event set state = ?, keep = ?, finished = ? where lane = ? and state = 0";
const ERASE_ERRORS = "update oncehook_event set error = null, keep = iif(state = 2, keep, ?) where lane = ?";

/** Field by field, like every object of which there are many: see decision 22. */
export function toLane(stored: LaneRow, { client, message }: Pick<KeyedLaneRow, "client" | "message">): SqliteLane {
  const { id, tag, cursor, readyAt, gapSince, epoch, holder, leased, below, bare } = stored;
  const status = statusWord(stored.status);
  return { id, client, tag, message, bare, cursor, status, readyAt, gapSince, epoch, holder, leased, below, stored };
}

function toHead(row: HeadRow | undefined, late: boolean): SqliteEntry | null {
  if (row === undefined) return null;
  const { id, sequence, gapWaitMs, occurredAt, acceptedAt, attempts } = row;
  const [forced, state, finishedAt, hasBody] = [row.forced === 1, "pending", null, true] as const;
  return { id, sequence, late, forced, gapWaitMs, occurredAt, acceptedAt, state, finishedAt, attempts, hasBody };
}

export function toEntry(row: EntryRow): SqliteEntry {
  const { id, sequence, gapWaitMs, occurredAt, acceptedAt, finishedAt, attempts } = row;
  const [late, forced, hasBody, state] = [row.late === 1, row.forced === 1, row.hasBody === 1, stateWord(row.state)];
  return { id, sequence, late, forced, gapWaitMs, occurredAt, acceptedAt, state, finishedAt, attempts, hasBody };
}
