/** Writes new lanes ahead of the statement that writes everything else. */
import { transposed, type Values } from "./columns.ts";
import { insertLanes, NEW_LANE } from "./flush-statement.ts";
import type { Session } from "./session.ts";

/** What tells a lane from others: with no more than that it is idle. */
const KEY = NEW_LANE.slice(0, 4);
const WRITE = insertLanes(NEW_LANE);
const MAKE = insertLanes(KEY);

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
  const made = await session.rows("write_lanes", WRITE, transposed(NEW_LANE, lanes));
  if (made.length !== lanes.length) throw new LaneAppeared(lanes);
}

/**
 * Idle, outside of a transaction: holding no lane, it waits for whoever makes one of them without being waited for. If the turn that
 * wants them fails after all, they stay for its repetition.
 */
export async function makeLanes(session: Session, lanes: readonly Values[]): Promise<void> {
  await session.rows("make_lanes", MAKE, transposed(KEY, lanes));
}
