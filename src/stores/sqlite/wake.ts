/** Notices commits of other processes on the same file. */

import type { Clock, Timer } from "../../internal/clock.ts";
import type { SqliteDatabase, SqliteStatement } from "../../internal/sqlite-driver.ts";

const LOOK_EVERY_MS = 100;

export class Wake {
  /** Prepared once: it is run ten times a second, as long as the inbox is open. */
  readonly #dataVersion: SqliteStatement;
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #timer: Timer | null = null;
  #version: unknown = null;

  constructor(db: SqliteDatabase, clock: Clock) {
    this.#dataVersion = db.prepare("pragma data_version");
    this.#clock = clock;
  }

  add(listener: () => void): () => void {
    // Its own function, so that adding the same listener twice means being called twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    if (this.#timer === null) {
      this.#version = this.#read();
      this.#schedule();
    }
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size === 0) this.stop();
    };
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #schedule(): void {
    this.#timer = this.#clock.setTimeout(() => {
      this.#schedule();
      const version = this.#read();
      if (version === this.#version) return;
      this.#version = version;
      for (const listener of [...this.#listeners]) listener();
    }, LOOK_EVERY_MS);
  }

  /** Changes only with commits of other connections. */
  #read(): unknown {
    try {
      return (this.#dataVersion.get() as { readonly data_version: number }).data_version;
    } catch {
      return this.#version;
    }
  }
}
