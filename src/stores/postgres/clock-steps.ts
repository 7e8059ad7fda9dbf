/** Notices that the clock was set back: else a lane that is ready would wait until the clock has caught up. */
import { wentBack } from "../clock-step.ts";
import { type Access, inTransaction } from "./session.ts";

/** What became ready at a time that has not come again waits for nothing. Sorted, as all locks of several lanes. */
const MAKE_DUE = `update {}.lane set ready_at = $1::bigint where id = any(array(
    select id from {}.lane where status = 3 and ready_at > $1::bigint order by id for update
  ))`;

/** Ready lanes must be made due first: the transaction that noticed is run again after it. */
export class ClockWentBack extends Error {
  readonly now: number;

  constructor(now: number) {
    super("The clock went back.");
    this.now = now;
  }
}

export class ClockSteps {
  #latest = Number.NEGATIVE_INFINITY;

  /** Whether the clock shows less than it did when this process wrote last. */
  wentBack(now: number): boolean {
    return wentBack(now, this.#latest);
  }

  /** @throws ClockWentBack */
  writesAt(now: number): void {
    const step = this.wroteAt(now, this.#latest);
    if (step !== null) throw step;
  }

  /** The latest time that this process wrote at. */
  get latest(): number {
    return this.#latest;
  }

  /**
   * Of what is committed already. Others may have written meanwhile, and later than it began: that is no step.
   *
   * @param since - `latest` before it was sent
   * @returns what is to be followed where the clock had gone back by then
   */
  wroteAt(now: number, since: number): ClockWentBack | null {
    if (wentBack(now, since)) return new ClockWentBack(now);
    this.#latest = Math.max(this.#latest, now);
    return null;
  }

  async follow(access: Access, { now }: ClockWentBack): Promise<void> {
    await makeReadyLanesDue(access, now);
    this.#latest = now;
  }
}

/**
 * Gaps, backoffs and leases wait on: `TOO_FAR_AHEAD_MS` bounds them. In a transaction of its own: with these lanes in hand, one that locks
 * others could wait for a transaction that waits for it.
 */
export async function makeReadyLanesDue(access: Access, now: number): Promise<void> {
  await inTransaction(access, (session) => session.rows("make_due", MAKE_DUE, [now]));
}
