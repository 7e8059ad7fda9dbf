/** Wakes this process when another may have made a lane due: with NOTIFY if possible, and by polling. */
import type { Clock, Timer } from "../../internal/clock.ts";
import { ANSWER_MS, giveBack, type PgAccess, type PgClient, takeClient, withSession } from "./session.ts";

/** How often to notify at most, in a transaction of its own: NOTIFY takes a lock that all notifying transactions share. */
const NOTIFY_EVERY_MS = 50;
/** Without LISTEN, or while its connection is broken; also how often to try another connection. */
const POLL_MS = 1_000;
/** With LISTEN: a process may store something and end before its notification, or send none. */
const LISTENING_POLL_MS = 5_000;

const STILL_LISTENS =
  "select 1 from pg_catalog.pg_listening_channels() as listening (channel) where channel = $1::text";
const NOTIFY = "select pg_catalog.pg_notify($1::text, $2::text)";

interface Notification {
  readonly channel: string;
  readonly payload?: string;
}

export interface WakeOptions {
  readonly clock: Clock;
  readonly listen: boolean;
  /** The number of this instance: its notifications wake only others. */
  readonly instance: number;
  /** Called once, when a pooler has given the listening connection to others, which ends LISTEN. */
  readonly onDeaf: () => void;
}

export class Wake {
  readonly #access: PgAccess;
  readonly #options: WakeOptions;
  readonly #listeners = new Set<() => void>();
  readonly #channel: string;
  #connection: PgClient | null = null;
  #isConnecting = false;
  #listens: boolean;
  #poll: Timer | null = null;
  /** Other processes were not yet notified of the last change. */
  #isUntold = false;
  #notifying: Timer | null = null;
  #sending: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(access: PgAccess, options: WakeOptions) {
    this.#access = access;
    this.#options = options;
    this.#listens = options.listen;
    this.#channel = `oncehook ${access.schema.replaceAll('"', "")}`;
  }

  /** Calls `listener` when there may be something to claim, until the returned function is called. */
  add(listener: () => void): () => void {
    // A function of its own, so that a listener that was added twice is called twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    if (this.#listeners.size === 1) this.#start();
    return () => {
      if (this.#listeners.delete(entry) && this.#listeners.size === 0) this.#rest();
    };
  }

  /** Notifies other processes that there may be something to claim. */
  tell(): void {
    this.#isUntold = true;
    if (this.#notifying !== null || this.#isStopped) return;
    this.#notifying = this.#options.clock.setTimeout(() => {
      this.#sending = this.#notify().then(() => {
        this.#notifying = null;
        if (this.#isUntold) this.tell();
      });
    }, NOTIFY_EVERY_MS);
  }

  /** Sends a pending notification and stops. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#notifying?.cancel();
    this.#listeners.clear();
    this.#rest();
    await this.#sending;
    if (this.#isUntold) await this.#notify();
  }

  #start(): void {
    if (this.#isStopped) return;
    if (this.#listens) void this.#listen();
    this.#plan();
  }

  /** Stops polling and listening, when there is no listener. */
  #rest(): void {
    this.#poll?.cancel();
    this.#poll = null;
    this.#lose(this.#connection);
  }

  #plan(): void {
    this.#poll?.cancel();
    const ms = this.#connection === null ? POLL_MS : LISTENING_POLL_MS;
    this.#poll = this.#options.clock.setTimeout(() => {
      this.#wake();
      if (this.#listens) void (this.#connection === null ? this.#listen() : this.#check(this.#connection));
      this.#plan();
    }, ms);
  }

  async #listen(): Promise<void> {
    if (this.#isConnecting) return;
    this.#isConnecting = true;
    const connection = await takeClient(this.#access).catch(() => null);
    this.#isConnecting = false;
    if (connection === null) return;
    if (this.#poll === null || this.#connection !== null) return giveBack(connection);
    this.#connection = connection;
    const lost = () => {
      if (this.#connection !== connection) return;
      this.#lose(connection);
      if (this.#poll !== null) this.#plan();
    };
    connection.on("error", lost);
    connection.on("end", lost);
    connection.on("notification", ({ channel, payload }: Notification) => {
      if (this.#connection !== connection || channel !== this.#channel) return;
      if (payload !== String(this.#options.instance)) this.#wake();
    });
    await connection.query({ text: `listen "${this.#channel}"`, query_timeout: ANSWER_MS }).then(() => {
      // Notifications before this were missed.
      this.#wake();
      if (this.#poll !== null) this.#plan();
    }, lost);
  }

  /** Checks that LISTEN still works: the server may have disappeared silently, or a pooler may have replaced the connection. */
  async #check(connection: PgClient): Promise<void> {
    const query = { text: STILL_LISTENS, values: [this.#channel], query_timeout: LISTENING_POLL_MS };
    const answer = await connection.query(query).catch(() => null);
    if (this.#connection !== connection || answer?.rows.length === 1) return;
    this.#lose(connection);
    if (answer === null) return;
    this.#listens = false;
    this.#options.onDeaf();
    if (this.#poll !== null) this.#plan();
  }

  #lose(connection: PgClient | null): void {
    if (connection === null || this.#connection !== connection) return;
    this.#connection = null;
    giveBack(connection, new Error("The connection listens."));
  }

  async #notify(): Promise<void> {
    this.#isUntold = false;
    const values = [this.#channel, String(this.#options.instance)];
    // If it fails, others find the change by polling.
    await withSession(this.#access, ({ rows }) => rows("notify", NOTIFY, values)).catch(() => {});
  }

  #wake(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
