/** Stops accepting before the disk is full or the file too large; looked at once a second at most. */
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { StoreError } from "../../errors.ts";
import type { Clock } from "../../internal/clock.ts";
import type { SqliteDatabase } from "./driver.ts";
import { storeFull } from "./failures.ts";

const LOOK_EVERY_MS = 1000;

export interface SpaceLimits {
  readonly minFreeBytes: number;
  readonly maxDatabaseBytes: number;
}

export class Space {
  readonly #limits: SpaceLimits;
  readonly #clock: Clock;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #refusal: StoreError | null = null;

  constructor(limits: SpaceLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Why nothing may be accepted now; null when there is room. */
  refusal(db: SqliteDatabase, file: string): StoreError | null {
    const now = this.#clock.monotonic();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return this.#refusal;
    this.#lookedAt = now;
    this.#refusal = this.#look(db, file);
    return this.#refusal;
  }

  #look(db: SqliteDatabase, file: string): StoreError | null {
    const { minFreeBytes, maxDatabaseBytes } = this.#limits;
    if (minFreeBytes > 0) {
      const { bavail, bsize } = statfsSync(dirname(file));
      if (bavail * bsize < minFreeBytes) return storeFull("The disk has less free space than minFreeBytes: free some.");
    }
    if (Number.isFinite(maxDatabaseBytes) && usedBytes(db) >= maxDatabaseBytes) {
      return storeFull("The inbox has reached maxDatabaseBytes: raise it, or keep bodies for a shorter time.");
    }
    return null;
  }
}

/** Bytes of pages that hold something; pages that pruning freed are used again. */
function usedBytes(db: SqliteDatabase): number {
  const read = (name: string) => Number(db.pragma(name, { simple: true }));
  return (read("page_count") - read("freelist_count")) * read("page_size");
}
