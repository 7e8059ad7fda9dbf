/** Stops accepting before the disk is full or the file too large, and when the file is gone; looked at once a second at most. */
import { statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { StoreError } from "../../errors.ts";
import type { Clock } from "../../internal/clock.ts";
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
