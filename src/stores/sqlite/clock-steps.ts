/** Notices that the wall clock was set back: else a lane that is ready would wait until the clock has caught up. */
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { wentBack } from "../clock-step.ts";
import type { Statements } from "./statements.ts";

export class ClockSteps {
  #latest: number;

  /** @param latest - the latest wall clock known to have been written by, epoch milliseconds */
  constructor(latest: number) {
    this.#latest = latest;
  }

  wentBack(now: number): boolean {
    return wentBack(now, this.#latest);
  }

  /** Makes ready lanes due again, in the transaction under way. Gaps, backoffs and leases wait on: `TOO_FAR_AHEAD_MS` bounds them. */
  makeReadyLanesDue(sql: Statements, now: number): void {
    if (this.wentBack(now)) sql.readyNow.run(now, now);
  }

  committed(now: number): void {
    this.#latest = this.wentBack(now) ? now : Math.max(this.#latest, now);
  }
}

/** The latest wall clock that the file tells of: by its newest event, and by those that work on it. */
export function latestWrittenAt(db: SqliteDatabase): number {
  const row = db
    .prepare(
      `select max(coalesce((select accepted from oncehook_event order by id desc limit 1), 0),
        coalesce((select max(max(opened, coalesce(seen, 0))) from oncehook_instance), 0)) as at`,
    )
    .get() as { readonly at: number };
  return row.at;
}
