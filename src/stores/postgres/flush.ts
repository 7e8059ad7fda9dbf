/** Writes what the decisions changed: every changed row once, in one statement. */
import type { LaneEvent, LaneState } from "../../inbox/lanes/state.ts";
import { plainText } from "../../inbox/plain-text.ts";
import { keepOf, OUTCOME, STATE, STATUS } from "../codes.ts";
import type { Values } from "./columns.ts";
import { ATTEMPTS, DUPLICATES, flushStatement, isLaneNotMade } from "./flush-statement.ts";
import { keyOf, nullableBytes } from "./lanes.ts";
import type { Names } from "./names.ts";
import { LaneAppeared, writeLanes } from "./new-lanes.ts";
import type { Session } from "./session.ts";
import type { TallySheet } from "./tally.ts";

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
