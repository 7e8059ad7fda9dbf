/** Stops accepting before the disk is full or the file too large, and when its files are gone; looked at once a second at most. */
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
  readonly #directory: string;
  readonly #files: OpenFiles;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #refusal: StoreError | null = null;

  constructor(files: OpenFiles, limits: SpaceLimits, clock: Clock) {
    this.#directory = dirname(files.main);
    this.#files = files;
    this.#limits = limits;
    this.#clock = clock;
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
    const gone = this.#files.problem(db);
    if (gone !== null) return gone;
    const { minFreeBytes, maxDatabaseBytes } = this.#limits;
    if (minFreeBytes > 0) {
      const { bavail, bsize } = statfsSync(this.#directory);
      if (bavail * bsize < minFreeBytes) return storeFull("The disk has less free space than minFreeBytes: free some.");
    }
    if (Number.isFinite(maxDatabaseBytes) && usedBytes(db) >= maxDatabaseBytes) {
      return storeFull("The inbox has reached maxDatabaseBytes: raise it, or keep bodies for a shorter time.");
    }
    return null;
  }
}

/** SQLite itself removes none of them while a connection is open. */
const FILES = ["", "-wal", "-shm"];

/**
 * The files of an open database. A connection continues to write to those that it opened. A restart and other processes use those that are at
 * the path.
 */
export class OpenFiles {
  readonly main: string;
  readonly #opened: ReadonlyMap<string, string | null>;

  /** @param main - opened and written to, with links resolved */
  constructor(main: string) {
    this.main = main;
    this.#opened = new Map(FILES.map((suffix) => [main + suffix, whichFile(main + suffix)]));
  }

  /** Why nothing may be acknowledged now; null if all of them are in their places. */
  problem(db: SqliteDatabase): StoreError | null {
    const gone = this.#gone();
    if (gone.length === 0) return null;
    // A removed log still holds what was acknowledged since the last look.
    if (!this.areReplaced) checkpoint(db, "PASSIVE");
    const paths = gone.map(({ path }) => path).join(", ");
    const message = `The inbox accepts nothing, because a restart would not find it. Moved, removed or replaced while it was open: ${paths}. Put it back, or restart every process that uses the inbox.`;
    return new StoreError("store_unavailable", message);
  }

  /** @throws StoreError if one of them is not in its place */
  check(db: SqliteDatabase): void {
    const problem = this.problem(db);
    if (problem !== null) throw problem;
  }

  /** Whether another process may work with new ones: to copy the old log into the file would damage what that process writes. */
  get areReplaced(): boolean {
    return this.#gone().some(({ now }) => now !== null);
  }

  #gone() {
    const found = [...this.#opened].map(([path, opened]) => ({ path, opened, now: whichFile(path) }));
    return found.filter(({ opened, now }) => now === null || now !== opened);
  }
}

/** Tells a file from another of the same name; null when there is none. */
function whichFile(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`;
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
  readonly #files: OpenFiles;
  readonly #clock: Clock;
  #timer: Timer | null = null;
  #wroteAt = 0;

  constructor(db: SqliteDatabase, files: OpenFiles, clock: Clock) {
    this.#db = db;
    this.#files = files;
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
    this.#timer = null;
    if (this.#files.areReplaced) return;
    checkpoint(this.#db, "PASSIVE");
    const writtenAt = this.#wroteAt;
    this.#timer = this.#clock.setTimeout(() => this.#whenLongIdle(writtenAt), LONG_IDLE_MS);
  }

  /** The log was copied as a whole before, so that it holds what was written since, if anything was. */
  #whenLongIdle(writtenAt: number): void {
    this.#timer = null;
    if (this.#files.areReplaced) return;
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
