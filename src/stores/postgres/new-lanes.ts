/** Writes new lanes ahead of the statement that writes everything else. */
import { transposed, type Values } from "./columns.ts";
import { INSERT_LANES, isLaneTaken, KEY, MAKE_LANES, NEW_LANE } from "./flush-statement.ts";
import type { Session } from "./session.ts";

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
