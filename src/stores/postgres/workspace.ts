/** The lanes of one transaction, locked and read, what is decided about them, and how that is written. */
import { type LaneEvent, type LaneState, type Moment, newLane } from "../../inbox/lane-state.ts";
import type { LaneKey } from "../../inbox/record.ts";
import { plainText } from "../../inbox/store-rules.ts";
import { keepOf, OUTCOME, STATE, STATUS } from "../database.ts";
import type { Values } from "./encoding.ts";
import { SHARED, TallySheet } from "./instances.ts";
import {
  type Key,
  keyOf,
  keyText,
  type LaneRow,
  lockLanes,
  type Numbers,
  nullableBytes,
  numberAt,
  readLanes,
} from "./lanes.ts";
import type { Names } from "./names.ts";
import type { OpenInbox } from "./open.ts";
import type { Session } from "./session.ts";
import { ATTEMPTS, DUPLICATES, flushStatement, isLaneNotMade, LaneAppeared, writeLanes } from "./statements.ts";

// The lanes of one transaction, locked and read, and what is decided about them until it is written.

/** Which lane is wanted, in the words of the database and in those of the contract. */
export interface WantedLane {
  readonly key: Key;
  readonly lane: LaneKey;
}

/** What a transaction stands on. */
interface Standing {
  readonly now: number;
  /** Of the instance's counters. */
  readonly slot: number;
  readonly names: Names;
}

export class Workspace {
  readonly inbox: OpenInbox;
  readonly session: Session;
  readonly names: Names;
  readonly moment: Moment;
  readonly sheet: TallySheet;
  readonly byId = new Map<number, LaneState>();
  readonly byKey = new Map<string, LaneState>();
  readonly #missing = new Map<string, WantedLane>();
  readonly #snapshot: Snapshot;
  readonly #bodies: NewBody[] = [];
  readonly #conflicts: NewConflict[] = [];

  constructor(inbox: OpenInbox, session: Session, { now, slot, names }: Standing) {
    this.inbox = inbox;
    this.session = session;
    this.names = names;
    this.sheet = new TallySheet(inbox.instance, slot);
    this.#snapshot = new Snapshot(names);
    const { firstSequence } = inbox.rules;
    this.moment = { now, firstSequence, holder: String(inbox.instance), tally: this.sheet };
  }

  /** Locks and reads lanes by id and by key. Those of `wanted` that are not there are made by `enter()`. */
  async lock(ids: readonly number[], wanted: readonly WantedLane[]): Promise<void> {
    await this.take(wanted, await lockWanted(this.session, ids, wanted));
  }

  /**
   * Reads what `lockWanted` has locked, and notes which lanes were not there; and other lanes that are locked. A wanted one that is only
   * among these was made meanwhile, and makes the transaction run again: numbers that were taken before are too low for its events.
   */
  async take(
    wanted: readonly WantedLane[],
    locked: readonly LaneRow[],
    others: readonly LaneRow[] = [],
  ): Promise<void> {
    for (const lane of wanted) this.#missing.set(keyText(lane.key), lane);
    for (const row of locked) this.#missing.delete(keyText(row));
    await this.add([...locked, ...others]);
  }

  /** Makes the lanes that are missing, with the numbers that it is given. They are written by `flush()`. */
  enter({ lanes }: Pick<Numbers, "lanes">): void {
    // In the order of arrival, by which lanes that are due at the same time are claimed.
    for (const [index, wanted] of [...this.#missing.values()].entries()) {
      const lane = newLane(numberAt(lanes, index), wanted.lane);
      this.#snapshot.enter(lane);
      this.byId.set(lane.id, lane);
      this.byKey.set(keyText(wanted.key), lane);
    }
    this.#missing.clear();
  }

  /** Reads the lanes of rows that this transaction has locked. */
  async add(rows: readonly LaneRow[]): Promise<void> {
    if (rows.length === 0) return;
    this.#keep(rows, await readLanes(this.session, this.names, rows));
  }

  #keep(rows: readonly LaneRow[], lanes: readonly LaneState[]): void {
    this.#snapshot.take(lanes);
    for (const lane of lanes) this.byId.set(lane.id, lane);
    for (const row of rows) {
      const lane = this.byId.get(row.id);
      if (lane !== undefined) this.byKey.set(keyText(row), lane);
    }
  }

  /** Bodies that belong to new events, or to what differs from a known one. */
  adds({
    bodies,
    conflicts,
  }: {
    readonly bodies: readonly NewBody[];
    readonly conflicts: readonly NewConflict[];
  }): void {
    this.#bodies.push(...bodies);
    this.#conflicts.push(...conflicts);
  }

  /** Writes the new lanes ahead of the rest, once everything is decided. */
  writeNewLanes(): Promise<void> {
    return this.#snapshot.writeNewLanes(this.session);
  }

  /** Writes what was decided. Resolves with the number of the transaction, or null when there was nothing to write. */
  flush(): Promise<string | null> {
    return this.#snapshot.flush(this.session, this.sheet, { bodies: this.#bodies, conflicts: this.#conflicts });
  }
}

/** Locks lanes by id and by key, those that exist. */
export async function lockWanted(
  session: Session,
  ids: readonly number[],
  wanted: readonly WantedLane[],
): Promise<readonly LaneRow[]> {
  if (ids.length + wanted.length === 0) return [];
  const keys = new Map(wanted.map(({ key }) => [keyText(key), key]));
  return lockLanes(session, [...new Set(ids)], [...keys.values()]);
}

/** @param slot - of the instance's counters */
export async function openWorkspace(inbox: OpenInbox, session: Session, slot = SHARED): Promise<Workspace> {
  const now = await inbox.timeToWrite(session);
  return new Workspace(inbox, session, { now, slot, names: inbox.names.on(session) });
}

// Writes what the decisions changed: every changed row once, in one statement.

interface NewBody {
  readonly event: number;
  readonly raw: Uint8Array;
}

interface NewConflict extends NewBody {
  readonly digest: Uint8Array;
  readonly signedAt: number;
  readonly at: number;
}

/** Lanes as they were read, so that what changed in them can be told. */
class Snapshot {
  readonly #names: Names;
  /** Null for a lane that is not stored yet. */
  readonly #lanes = new Map<LaneState, Values | null>();
  readonly #events = new Map<LaneEvent, Values>();
  /** Those that were leased when they were read. */
  readonly #leased = new Set<LaneEvent>();
  readonly #gaps = new Map<object, number | null>();
  /** New lanes that are stored already. */
  readonly #written = new Set<LaneState>();

  constructor(names: Names) {
    this.#names = names;
  }

  /** To be called before the first decision about `lanes`. */
  take(lanes: Iterable<LaneState>): void {
    for (const lane of lanes) {
      for (const event of lane.events) this.#events.set(event, changing(event));
      this.#lanes.set(lane, this.#laneValues(lane));
      if (lane.leased !== null) this.#leased.add(lane.leased);
      for (const gap of lane.gaps) this.#gaps.set(gap, gap.filledAt);
    }
  }

  /** A lane that is to be made. */
  enter(lane: LaneState): void {
    this.#lanes.set(lane, null);
  }

  /** Writes the new lanes ahead of the rest, once everything is decided. @throws LaneAppeared, as `flush()` */
  async writeNewLanes(session: Session): Promise<void> {
    const lanes = [...this.#lanes].flatMap(([lane, before]) => (before === null ? [lane] : []));
    if (lanes.length === 0) return;
    await writeLanes(
      session,
      lanes.map((lane) => this.#newLane(lane)),
    );
    for (const lane of lanes) this.#written.add(lane);
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
    const { name, text, values, writesNames } = flushStatement(rows);
    const parameters = [...values, ...sheet.values(), ...(writesNames ? [this.#names.pruned] : [])];
    try {
      const [row] = await session.rows<{ number: string }>(name, text, parameters);
      return row?.number ?? null;
    } catch (error) {
      const isLanes = changed.newLanes.length > 0 && isLaneNotMade(error);
      throw isLanes ? new LaneAppeared(changed.newLanes) : error;
    }
  }

  #changed(sheet: TallySheet) {
    const newLanes: Values[] = [];
    const newEvents: Values[] = [];
    const events: Values[] = [];
    const lanes: Values[] = [];
    const gaps: Values[] = [];
    const attempts: Values[] = [];
    for (const [lane, before] of this.#lanes) {
      const now = this.#laneValues(lane);
      if (before === null && !this.#written.has(lane)) newLanes.push(this.#newLane(lane));
      else if (before !== null && !same(before, now)) lanes.push([lane.id, ...now]);
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

  #newLane(lane: LaneState): Values {
    const { client, tag, message } = keyOf(this.#names, lane.key);
    return [lane.id, client, tag, message, ...this.#laneValues(lane)];
  }

  /** Waits come from the application too, with fractions of a millisecond, which an integer column refuses. */
  #laneValues(lane: LaneState): Values {
    const { status, cursor, gapSince, epoch, holder, peer, externalReference } = lane;
    const readyAt = lane.readyAt === null ? null : Math.round(lane.readyAt);
    const held = holder === null ? null : Number(holder);
    const named = [nullableBytes(peer), nullableBytes(externalReference)];
    return [STATUS[status], readyAt, cursor, gapSince, epoch, held, ...this.#leaseValues(lane), ...named];
  }

  /** Attempts too, unless the event is written with them because it is new. */
  #leaseValues({ leased, epoch }: LaneState): Values {
    if (leased === null) return NO_LEASE;
    return this.#events.has(leased)
      ? [leased.id, epoch, leased.attempts, leased.startedAt]
      : [leased.id, null, null, null];
  }

  #addEvent(event: LaneEvent, into: { newEvents: Values[]; events: Values[]; sheet: TallySheet }): void {
    const before = this.#events.get(event);
    const now = changing(event);
    const was = before?.[0];
    into.sheet.gauge("pending", Number(now[0] === STATE.pending) - Number(was === STATE.pending));
    into.sheet.gauge("dead", Number(now[0] === STATE.dead) - Number(was === STATE.dead));
    if (before === undefined) into.newEvents.push([...fixed(this.#names, event), ...now]);
    else if (this.#isToWrite(event, before, now))
      into.events.push([event.id, ...now.with(DUPLICATES, Number(now[DUPLICATES]) - Number(before[DUPLICATES]))]);
  }

  /** A claim alone is told by the lane, until the lease ends. */
  #isToWrite(event: LaneEvent, before: Values, now: Values): boolean {
    if (event.lane.leased === event) return !same(before.toSpliced(ATTEMPTS, 2), now.toSpliced(ATTEMPTS, 2));
    return this.#leased.has(event) || !same(before, now);
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

const NO_LEASE: Values = [null, null, null, null];

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
