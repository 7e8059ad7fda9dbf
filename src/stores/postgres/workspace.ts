/** The lanes of one transaction, locked and read, and what is decided about them until it is written. */
import { type LaneState, type Moment, newLane } from "../../inbox/lanes/state.ts";
import type { LaneKey } from "../../inbox/record.ts";
import { type NewBody, type NewConflict, Snapshot } from "./flush.ts";
import { type Key, keyText, type LaneRow, lockLanes, readLanes } from "./lanes.ts";
import type { Names } from "./names.ts";
import { type Numbers, numberAt } from "./numbers.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { Session } from "./session.ts";
import { SHARED, TallySheet } from "./tally.ts";

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
