/** Stops accepting before the disk is full or the file too large, and when the file is gone; looked at once a second at most. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StoreError } from "../../errors.ts";
import type { Clock, Timer } from "../../internal/clock.ts";
import type { SqliteDatabase } from "../../internal/sqlite-driver.ts";
import { storeFull } from "./failures.ts";

const LOOK_EVERY_MS = 1000;

export interface SpaceLimits {
  readonly minFreeBytes: number;
  readonly maxDatabaseBytes: number;
}

export class Space {
  readonly #limits: SpaceLimits;
  readonly #clock: Clock;
  readonly #file: string;
  readonly #opened: string | null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #refusal: StoreError | null = null;

  /** @param file - open by now: what stands at its path later must be the same */
  constructor(file: string, limits: SpaceLimits, clock: Clock) {
    this.#file = file;
    this.#limits = limits;
    this.#clock = clock;
    this.#opened = whichFile(file);
  }

  /** Why nothing may be accepted now; null when there is room. */
  refusal(db: SqliteDatabase): StoreError | null {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return this.#refusal;
    this.#lookedAt = now;
    this.#refusal = this.#look(db);
    return this.#refusal;
  }

  #look(db: SqliteDatabase): StoreError | null {
    if (whichFile(this.#file) !== this.#opened) return replaced(this.#file);
    const { minFreeBytes, maxDatabaseBytes } = this.#limits;
    if (minFreeBytes > 0) {
      const { bavail, bsize } = statfsSync(dirname(this.#file));
      if (bavail * bsize < minFreeBytes) return storeFull("The disk has less free space than minFreeBytes: free some.");
    }
    if (Number.isFinite(maxDatabaseBytes) && usedBytes(db) >= maxDatabaseBytes) {
      return storeFull("The inbox has reached maxDatabaseBytes: raise it, or keep bodies for a shorter time.");
    }
    return null;
  }
}

/** Tells a file from another of the same name; null when there is none. */
function whichFile(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`;
}

/** The connection goes on writing to a file that no restart will find: what it acknowledged would be lost. */
function replaced(file: string): StoreError {
  const message = `The inbox ${file} was moved, removed or replaced while it was open: put it back, or restart.`;
  return new StoreError("store_unavailable", message);
}

/** Bytes of pages that hold something; pages that pruning freed are used again. */
function usedBytes(db: SqliteDatabase): number {
  const read = (name: string) => Number(db.pragma(name, { simple: true }));
  return (read("page_count") - read("freelist_count")) * read("page_size");
}

// Copies the write-ahead log into the file while nothing else is to do, and shortens it after a long rest.

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

/** The answer of SQLite; null when it could not be tried. */
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
