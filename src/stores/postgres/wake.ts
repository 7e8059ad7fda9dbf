/** Tells this process when another may have made a lane due: by NOTIFY where that is possible, and by the worker's own looking. */
import type { Clock, Timer } from "../../internal/clock.ts";
import type { PgClient } from "./driver.ts";
import type { Access } from "./session.ts";

/** A notification takes a lock that all who notify share, so it is sent at most so often, and in no other transaction. */
const NOTIFY_EVERY_MS = 50;
/** Without LISTEN, or while its connection is broken. */
const POLL_MS = 1_000;
const RECONNECT_MS = 5_000;

export interface WakeOptions {
  readonly clock: Clock;
  readonly listen: boolean;
  readonly instance: number;
}

export class Wake {
  readonly #access: Access;
  readonly #options: WakeOptions;
  readonly #listeners = new Set<() => void>();
  readonly #channel: string;
  #connection: PgClient | null = null;
  #timer: Timer | null = null;
  #notifying: Timer | null = null;
  #stopped = false;

  constructor(access: Access, options: WakeOptions) {
    this.#access = access;
    this.#options = options;
    this.#channel = `oncehook ${access.schema.replaceAll('"', "")}`;
  }

  /** Calls `listener` when there may be something to claim. */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) void this.#start();
    return () => void this.#listeners.delete(listener);
  }

  /** Other processes may find something to claim. */
  tell(): void {
    if (!this.#options.listen || this.#notifying !== null || this.#stopped) return;
    this.#notifying = this.#options.clock.setTimeout(() => {
      this.#notifying = null;
      void this.#notify();
    }, NOTIFY_EVERY_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#notifying?.cancel();
    const connection = this.#connection;
    this.#connection = null;
    connection?.release(true);
  }

  async #start(): Promise<void> {
    if (this.#stopped) return;
    const listening = this.#options.listen && (await this.#listen());
    this.#again(listening ? RECONNECT_MS : POLL_MS);
  }

  /** Looks at the connection now and then; without one, wakes the listeners instead. */
  #again(ms: number): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimeout(() => {
      if (this.#connection === null) this.#wake();
      if (this.#connection === null && this.#options.listen) void this.#start();
      else this.#again(ms);
    }, ms);
  }

  async #listen(): Promise<boolean> {
    try {
      const connection = await this.#access.pool.connect();
      if (this.#stopped) {
        connection.release();
        return false;
      }
      const lost = () => {
        if (this.#connection !== connection) return;
        this.#connection = null;
        connection.release(true);
      };
      connection.on("error", lost);
      connection.on("end", lost);
      connection.on("notification", ({ payload }) => {
        if (payload !== String(this.#options.instance)) this.#wake();
      });
      await connection.query(`listen "${this.#channel}"`);
      this.#connection = connection;
      return true;
    } catch {
      return false;
    }
  }

  async #notify(): Promise<void> {
    try {
      const client = await this.#access.pool.connect();
      try {
        await client.query("select pg_notify($1, $2)", [this.#channel, String(this.#options.instance)]);
      } finally {
        client.release();
      }
    } catch {
      // They look by themselves as well.
    }
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }
}
