/** Copies the write-ahead log into the file while nothing else is to do, and shortens it after a long rest. */

import type { Clock, Timer } from "../../internal/clock.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";

const IDLE_MS = 250;
const LONG_IDLE_MS = 60_000;
/** A process that only says that it lives writes fewer in that time. */
const FEW_PAGES = 200;

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

  /** The log was copied as a whole before, so that it holds what was written since, if anything was. */
  #whenLongIdle(writtenAt: number): void {
    this.#timer = null;
    if (this.#wroteAt === writtenAt || pagesIn(this.#db) <= FEW_PAGES) checkpoint(this.#db, "TRUNCATE");
    else this.wrote();
  }
}

/** The pages that the log holds, all of which are copied if nobody is in the way. */
function pagesIn(db: SqliteDatabase): number {
  return copyLog(db, "PASSIVE")?.log ?? Number.POSITIVE_INFINITY;
}

/** True when the whole log was copied (and, with TRUNCATE, emptied); false while another connection reads or writes. */
export function checkpoint(db: SqliteDatabase, mode: "PASSIVE" | "TRUNCATE"): boolean {
  return copyLog(db, mode)?.busy === 0;
}

/** What SQLite says of it; null when it could not be tried. */
function copyLog(
  db: SqliteDatabase,
  mode: "PASSIVE" | "TRUNCATE",
): { readonly busy: number; readonly log: number } | null {
  if (!db.open || db.inTransaction) return null;
  try {
    const [row] = db.pragma(`wal_checkpoint(${mode})`) as { readonly busy: number; readonly log: number }[];
    return row ?? null;
  } catch {
    // It is tried again after the next write; the log only grows until then.
    return null;
  }
}
