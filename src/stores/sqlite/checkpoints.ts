/** Copies the write-ahead log into the file while nothing else is to do, and shortens it after a long rest. */

import type { Clock, Timer } from "../../internal/clock.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";

const IDLE_MS = 250;
const LONG_IDLE_MS = 60_000;

export class Checkpoints {
  readonly #db: SqliteDatabase;
  readonly #clock: Clock;
  #timer: Timer | null = null;
  #wroteAt = 0;

  constructor(db: SqliteDatabase, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Notes a commit: the log has grown. Costs no system call. */
  wrote(): void {
    this.#wroteAt = this.#clock.monotonic();
    this.#timer ??= this.#clock.setTimeout(() => this.#whenIdle(), IDLE_MS);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #whenIdle(): void {
    const idleMs = this.#clock.monotonic() - this.#wroteAt;
    if (idleMs < IDLE_MS) {
      this.#timer = this.#clock.setTimeout(() => this.#whenIdle(), IDLE_MS - idleMs);
      return;
    }
    checkpoint(this.#db, "PASSIVE");
    const writtenAt = this.#wroteAt;
    this.#timer = this.#clock.setTimeout(() => this.#whenLongIdle(writtenAt), LONG_IDLE_MS);
  }

  #whenLongIdle(writtenAt: number): void {
    this.#timer = null;
    if (this.#wroteAt === writtenAt) checkpoint(this.#db, "TRUNCATE");
    else this.wrote();
  }
}

/** True when the whole log was copied (and, with TRUNCATE, emptied); false while another connection reads or writes. */
export function checkpoint(db: SqliteDatabase, mode: "PASSIVE" | "TRUNCATE"): boolean {
  if (!db.open || db.inTransaction) return false;
  try {
    const [row] = db.pragma(`wal_checkpoint(${mode})`) as { readonly busy: number }[];
    return row?.busy === 0;
  } catch {
    // It is tried again after the next write; the log only grows until then.
    return false;
  }
}
