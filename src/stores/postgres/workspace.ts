/** The lanes of one transaction: locked and read, changed by the rules, and written as one statement. */

import { eventRefText, isNamed, type LaneKey, laneKeyText, type NamedLaneKey } from "../../inbox/lane-key.ts";
import { knownInLane, type LaneEvent, type LaneState, LoadedLanes, newLane } from "../../inbox/lane-state.ts";
import type { EventId, NewEvent } from "../../inbox/record.ts";
import { orderCode, STATE, STATUS } from "../database.ts";
import { nullableBytes, tenantBytes, type Values } from "./encoding.ts";
import { learnEntries, SHARED, TallySheet } from "./instances.ts";
import {
  type Expectation,
  type Expected,
  keyOfRow,
  lockLanes,
  type Numbers,
  numberAt,
  type PgLaneRow,
  readLanes,
} from "./lanes.ts";
import type { PgInbox } from "./open.ts";
import type { PgSession } from "./session.ts";
import {
  ATTEMPTS,
  asBuffer,
  attemptValues,
  changingValues,
  EventAppeared,
  fixedValues,
  flushStatement,
  isEventTaken,
  isLaneNotMade,
  LaneAppeared,
  sourceValues,
} from "./statements.ts";

/** The rows of events to write: new ones as `NEW_EVENT` and as `WHOLE_EVENT`, and changed ones. */
type EventRows = Readonly<Record<"newEvents" | "ofSources" | "events", Values[]>>;

export class Workspace {
  readonly inbox: PgInbox;
  readonly session: PgSession;
  /** Decides about the lanes; `flush()` writes what changed. */
  readonly loaded: LoadedLanes;
  readonly sheet: TallySheet;
  readonly byId = new Map<number, LaneState>();
  /** Lanes with a name, as they were locked or created for events that come. */
  readonly #byKey = new Map<string, LaneState>();
  readonly #byOwnId = new Map<string, LaneEvent>();
  /** Numbers for lanes that have to be created. */
  #numbers: readonly number[] = [];
  #made = 0;
  /** The values of each lane as it was read; null for a lane that is not stored yet. */
  readonly #lanes = new Map<LaneState, Values | null>();
  readonly #events = new Map<LaneEvent, Values>();
  /** Events that were leased when they were read. */
  readonly #leased = new Set<EventId>();
  readonly #gaps = new Map<object, number | null>();
  readonly #bodies: Values[] = [];
  readonly #headedBodies: Values[] = [];
  readonly #conflicts: Values[] = [];
  #hasReadEntries = false;

  /** @param slot - the row of the instance's counters */
  constructor(inbox: PgInbox, session: PgSession, now: number, slot: number) {
    this.inbox = inbox;
    this.session = session;
    this.sheet = new TallySheet(inbox.instance, slot);
    this.loaded = new LoadedLanes({ now, holder: inbox.instance, tally: this.sheet }, inbox.sequences);
  }

  /** Locks and reads lanes by id, and those of events that come. */
  async lock(ids: readonly number[], events: readonly Expected[]): Promise<void> {
    await this.take(events, await lockWanted(this.session, ids, events));
  }

  /** Locks lanes and reads all of their events, for an operator's act on any of them. */
  async lockWhole(ids: readonly number[]): Promise<void> {
    await this.#read(await lockWanted(this.session, ids, []), null);
  }

  /**
   * Reads the lanes that `lockWanted` has locked, and other locked lanes. A lane of an event that comes, and that is only among the others, was
   * created meanwhile. Then `flush()` cannot create it, and the transaction runs again, because the numbers that were taken for its events are
   * too low.
   */
  async take(
    events: readonly Expected[],
    locked: readonly PgLaneRow[],
    others: readonly PgLaneRow[] = [],
  ): Promise<void> {
    const idOf = new Map<string, number>();
    for (const row of locked) {
      const key = keyOfRow(row);
      if (isNamed(key)) idOf.set(laneKeyText(key), row.id);
    }
    const byLane = new Map<number, Expected[]>();
    for (const event of events) {
      const id = isNamed(event.lane) ? idOf.get(laneKeyText(event.lane)) : undefined;
      if (id !== undefined) byLane.set(id, [...(byLane.get(id) ?? []), event]);
    }
    await this.#read([...locked, ...others], { events, byLane });
    await this.#readEntriesOf(events.map(({ lane }) => lane));
    for (const [key, id] of idOf) {
      const lane = this.byId.get(id);
      if (lane !== undefined) this.#byKey.set(key, lane);
    }
  }

  /** Takes numbers for lanes that `laneOf()` creates. */
  enter({ lanes }: Pick<Numbers, "lanes">): void {
    this.#numbers = lanes;
  }

  /** The event that this is a delivery of, if it is known. */
  known(incoming: NewEvent): LaneEvent | undefined {
    const { lane, ownId } = incoming;
    if (ownId !== undefined) return this.#byOwnId.get(eventRefText({ ...lane, id: ownId }));
    return isNamed(lane) ? knownInLane(this.#byKey.get(laneKeyText(lane)), incoming) : undefined;
  }

  /** The lane of an event that is not known. Creates it if there is none; `flush()` writes it. */
  laneOf({ lane: key }: NewEvent): LaneState {
    const name = isNamed(key) ? laneKeyText(key) : null;
    const known = name === null ? undefined : this.#byKey.get(name);
    if (known !== undefined) return known;
    const lane = newLane(numberAt(this.#numbers, this.#made++), key);
    this.#lanes.set(lane, null);
    this.byId.set(lane.id, lane);
    if (name !== null) this.#byKey.set(name, lane);
    return lane;
  }

  /** Reads the lanes of rows that this transaction has locked, and remembers their values before any decision about them. */
  add(rows: readonly PgLaneRow[]): Promise<void> {
    return this.#read(rows, NOTHING_COMES);
  }

  /** Enters an event under the id that its source gives it. */
  identify(event: LaneEvent): void {
    const { ownId: id, lane } = event;
    if (id !== null) this.#byOwnId.set(eventRefText({ ...lane.key, id }), event);
  }

  async #read(rows: readonly PgLaneRow[], expected: Expectation | null): Promise<void> {
    if (rows.length === 0) return;
    const lanes = await readLanes(this.session, rows, expected);
    for (const lane of lanes) {
      for (const event of lane.events) {
        this.#events.set(event, changingValues(event));
        this.identify(event);
      }
      this.#lanes.set(lane, this.#laneValues(lane));
      if (lane.leased !== null) this.#leased.add(lane.leased);
      for (const gap of lane.gaps) this.#gaps.set(gap, gap.filledAt);
      this.byId.set(lane.id, lane);
    }
    await this.#readEntriesOf(lanes.map(({ key }) => key));
  }

  /** Before any decision about these lanes. Another process may have recorded an entry just now. */
  async #readEntriesOf(lanes: readonly LaneKey[]): Promise<void> {
    const { sequences } = this.inbox;
    const areKnown = lanes.every(({ order, source }) => order !== "sequence" || sequences.knows(source));
    if (areKnown || this.#hasReadEntries) return;
    this.#hasReadEntries = true;
    await learnEntries(this.session, sequences);
  }

  /** The body of a new event. */
  addBody(event: number, { raw, head }: Pick<NewEvent, "raw" | "head">): void {
    if (head === undefined) this.#bodies.push([event, asBuffer(raw)]);
    else this.#headedBodies.push([event, asBuffer(raw), head]);
  }

  /** A delivery whose body differs from that of its known event. */
  addConflict(
    event: number,
    incoming: { readonly digest: Uint8Array; readonly signedAt: number; readonly raw: Uint8Array },
  ): void {
    const { digest, signedAt, raw } = incoming;
    this.#conflicts.push([event, asBuffer(digest), signedAt, this.loaded.now, asBuffer(raw)]);
  }

  /**
   * Writes every row that changed, once, in one statement. The attempts of the lanes are all new, because old ones are not read.
   * Resolves with the number of the transaction, or null when nothing changed.
   *
   * @throws LaneAppeared when another transaction has created a lane that is new to this one
   * @throws EventAppeared when another transaction has accepted an event that is new to this one
   */
  async flush(): Promise<string | null> {
    const { newLanes, newEvents, ofSources, events, lanes, gaps, attempts } = this.#changes();
    const rows = [
      newLanes,
      newEvents,
      this.#bodies,
      events,
      lanes,
      gaps,
      attempts,
      this.#conflicts,
      this.#headedBodies,
      ofSources,
    ];
    if (rows.every(({ length }) => length === 0) && this.sheet.isBlank) return null;
    const { name, text, values } = flushStatement(rows);
    const parameters = [...values, ...this.sheet.values()];
    try {
      const [row] = await this.session.rows<{ number: string }>(name, text, parameters);
      for (const { status, readyAt } of this.byId.values())
        if (status === "ready" && readyAt !== null) this.inbox.cursors.due.lowerTo(readyAt);
      return row?.number ?? null;
    } catch (error) {
      if (isEventTaken(error)) throw new EventAppeared(error);
      throw newLanes.length > 0 && isLaneNotMade(error) ? new LaneAppeared(newLanes) : error;
    }
  }

  #changes() {
    const newLanes: Values[] = [];
    const rows: EventRows = { newEvents: [], ofSources: [], events: [] };
    const lanes: Values[] = [];
    const gaps: Values[] = [];
    const attempts: Values[] = [];
    for (const [lane, before] of this.#lanes) {
      const now = this.#laneValues(lane);
      if (before === null) newLanes.push(this.#newLane(lane));
      else if (!same(before, now)) lanes.push([lane.id, ...now]);
      this.sheet.gauge("blocked", Number(now[0] === STATUS.blocked) - Number(before?.[0] === STATUS.blocked));
      for (const event of lane.events) this.#addEvent(event, rows);
      for (const gap of lane.gaps) {
        if (this.#gaps.has(gap) && this.#gaps.get(gap) === gap.filledAt) continue;
        gaps.push([lane.id, gap.from, gap.to, gap.skippedAt, gap.filledAt]);
      }
      attempts.push(...lane.attempts.map(attemptValues));
    }
    return { newLanes, ...rows, lanes, gaps, attempts };
  }

  #newLane(lane: LaneState): Values {
    const { source, tenant, name, order } = lane.key;
    return [lane.id, nullableBytes(name), source, tenantBytes(tenant), orderCode(order), ...this.#laneValues(lane)];
  }

  /** Rounds the due time: waits of the application may have fractions of a millisecond, which an integer column refuses. */
  #laneValues(lane: LaneState): Values {
    const { status, cursor, gapSince, token, holder, peer, externalReference } = lane;
    const readyAt = lane.readyAt === null ? null : Math.round(lane.readyAt);
    const named = [nullableBytes(peer), nullableBytes(externalReference)];
    return [STATUS[status], readyAt, cursor, gapSince, token, holder, ...this.#leaseValues(lane), ...named];
  }

  /** Includes the attempts, unless the event is new and written with them. */
  #leaseValues({ leased, events }: LaneState): Values {
    if (leased === null) return NO_LEASE;
    const event = events.find(({ id }) => id === leased);
    return event !== undefined && this.#events.has(event)
      ? [leased, event.attempts, event.startedAt]
      : [leased, null, null];
  }

  #addEvent(event: LaneEvent, { newEvents, ofSources, events }: EventRows): void {
    const before = this.#events.get(event);
    const now = changingValues(event);
    const was = before?.[0];
    this.sheet.gauge("pending", Number(now[0] === STATE.pending) - Number(was === STATE.pending));
    this.sheet.gauge("dead", Number(now[0] === STATE.dead) - Number(was === STATE.dead));
    if (before === undefined) {
      const values = [...fixedValues(event, event.lane), ...now];
      const rest = sourceValues(event, event.lane.key);
      if (rest === null) newEvents.push(values);
      else ofSources.push([...values, ...rest]);
    } else if (this.#isToWrite(event, before, now)) events.push([event.id, ...now]);
  }

  /** A claim alone writes no event: the lane keeps the attempts until the lease ends. */
  #isToWrite(event: LaneEvent, before: Values, now: Values): boolean {
    if (event.lane.leased === event.id) return !same(before.toSpliced(ATTEMPTS, 2), now.toSpliced(ATTEMPTS, 2));
    return this.#leased.has(event.id) || !same(before, now);
  }
}

/** Locks the lanes that exist: by id, and those of events that come. */
export async function lockWanted(
  session: PgSession,
  ids: readonly number[],
  events: readonly Expected[],
): Promise<readonly PgLaneRow[]> {
  if (ids.length + events.length === 0) return [];
  const keys = new Map<string, NamedLaneKey>();
  for (const { lane } of events) if (isNamed(lane)) keys.set(laneKeyText(lane), lane);
  return lockLanes(session, [...new Set(ids)], [...keys.values()], events);
}

/** @param slot - the row of the instance's counters */
export async function openWorkspace(inbox: PgInbox, session: PgSession, slot = SHARED): Promise<Workspace> {
  const now = await inbox.timeToWrite(session);
  return new Workspace(inbox, session, now, slot);
}

const NOTHING_COMES: Expectation = { events: [], byLane: new Map() };
const NO_LEASE: Values = [null, null, null];

function same(a: Values, b: Values): boolean {
  return a.every((value, index) => {
    const other = b[index];
    return (
      value === other ||
      (value instanceof Uint8Array && other instanceof Uint8Array && Buffer.compare(value, other) === 0)
    );
  });
}
