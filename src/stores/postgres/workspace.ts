/** The lanes of one transaction, locked and read, and what is decided about them until it is written. */
import type { LaneState, Moment } from "../../inbox/lanes/state.ts";
import type { NewEvent } from "../../inbox/record.ts";
import { type NewBody, type NewConflict, Snapshot } from "./flush.ts";
import { type Key, keyText, type LaneRow, lockLanes, makeLanes, readLanes, toLane } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { Session } from "./session.ts";
import { TallySheet } from "./tally.ts";

/** Which lane is wanted, and what is to stand on it if it is new. */
export interface WantedLane {
  readonly key: Key;
  readonly event: Pick<NewEvent, "peer" | "externalReference">;
}

export class Workspace {
  readonly inbox: OpenInbox;
  readonly session: Session;
  readonly moment: Moment;
  readonly sheet: TallySheet;
  readonly byId = new Map<number, LaneState>();
  readonly byKey = new Map<string, LaneState>();
  readonly #snapshot: Snapshot;
  readonly #bodies: NewBody[] = [];
  readonly #conflicts: NewConflict[] = [];

  constructor(inbox: OpenInbox, session: Session, now: number) {
    this.inbox = inbox;
    this.session = session;
    this.sheet = new TallySheet(inbox.instance);
    this.#snapshot = new Snapshot(inbox.names);
    const { firstSequence } = inbox.rules;
    this.moment = { now, firstSequence, holder: String(inbox.instance), tally: this.sheet };
  }

  /** Locks and reads lanes by id and by key, and makes those keys that do not exist. */
  async lock(ids: readonly number[], wanted: readonly WantedLane[]): Promise<void> {
    if (ids.length + wanted.length === 0) return;
    const missing = new Map(wanted.map((lane) => [keyText(lane.key), lane]));
    const keys = [...missing.values()].map(({ key }) => key);
    const rows = await lockLanes(this.session, [...new Set(ids)], keys);
    for (const row of rows) missing.delete(keyText(row));
    const made = await makeLanes(this.session, [...missing.values()]);
    await this.add(rows);
    // Nothing can be in a lane that this transaction has made.
    const { names } = this.inbox;
    this.#keep(
      made,
      made.map((row) => toLane(names, row)),
    );
  }

  /** Reads the lanes of rows that this transaction has locked. */
  async add(rows: readonly LaneRow[]): Promise<void> {
    if (rows.length === 0) return;
    this.#keep(rows, await readLanes(this.session, this.inbox.names, rows));
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

  /** Writes what was decided. */
  flush(): Promise<void> {
    return this.#snapshot.flush(this.session, this.sheet, { bodies: this.#bodies, conflicts: this.#conflicts });
  }
}

export async function openWorkspace(inbox: OpenInbox, session: Session): Promise<Workspace> {
  return new Workspace(inbox, session, await inbox.timeToWrite(session));
}
