/** What a handler gets beside its event. */
import { LeaseLost, SetupError } from "../errors.ts";
import { identityOf } from "../events/identity.ts";
import type { Logger } from "../internal/logger.ts";
import { logFieldsOf } from "./log-fields.ts";
import type { LaneKey } from "./record.ts";
import type { Effect, Lease } from "./store.ts";

/**
 * @typeParam Tx - the connection that an effect gets. With `postgresStore(pool)` it is the pool's client, pg's `PoolClient`; with a
 *   connection string `PgClient` of oncehook/postgres. With `sqliteStore` it is what its option `driver` or `effects` gives,
 *   better-sqlite3's `Database`; without them `SqliteDatabase` of oncehook/sqlite.
 */
export interface HandlerContext<Tx = unknown> {
  /** Hex SHA-256 that names the event; the same for every delivery and attempt. Use it as idempotency key. */
  readonly identity: string;
  /** 1 on the first hand-out. */
  readonly attempt: number;
  /** When the event was accepted, epoch milliseconds. */
  readonly receivedAt: number;
  /** The verified timestamp of its delivery, epoch milliseconds (DLV-13). */
  readonly timestamp: number;
  /** Sequences before this event that were waited for in vain, both included; null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** An operator replayed the event. */
  readonly replay: boolean;
  /** Its sequence is below that of an event already handed out: it is late, or a replay. */
  readonly outOfOrder: boolean;
  /**
   * Aborts at `handlerTimeoutMs`. The attempt has failed when the handler then ends, or 30 s later: one that goes on after that may
   * overlap its own retry, but cannot commit.
   */
  readonly signal: AbortSignal;
  /**
   * Registers a write to the inbox's own database. After all handlers of the event returned, the effects run in order in
   * the same transaction as the event's completion: exactly once. Synchronous on SQLite.
   *
   * The connection works only while effects run. Write with it, and with no other: only then the write is in the transaction.
   * @throws LeaseLost when the event is already settled
   * @throws SetupError `async_effect` for an async function on SQLite, and for a generator function; `invalid_argument` for a
   *   function without a parameter, except with the option `effects` of `sqliteStore`
   * @throws SetupError `effects_unsupported` with a store that has no transactions
   */
  commit(effect: Effect<Tx>): void;
  /** The receiver's logger, with the event's ids. */
  readonly log: Logger;
  readonly meta: HandlerMeta;
  /** The exact bytes of the body. */
  readonly rawBody: Uint8Array;
}

export interface HandlerMeta {
  /** The inbox's number for the event, as `receiver.inbox` takes it. */
  readonly eventId: number;
  readonly laneId: number;
  readonly lane: LaneKey;
  /** The delivery's `traceparent`; null without one. */
  readonly traceparent: string | null;
}

/** Lazy where it costs: most handlers never ask for the identity, the signal or the logger. */
export class LeaseContext<Tx> implements HandlerContext<Tx> {
  readonly #lease: Lease;
  readonly #logger: Logger;
  readonly #transactional: boolean;
  readonly #checkEffect: ((effect: Effect<Tx>) => void) | undefined;
  readonly effects: Effect<Tx>[] = [];
  #identity: string | undefined;
  #abort: AbortController | undefined;
  #closed = false;

  constructor(lease: Lease, logger: Logger, transactional: boolean, checkEffect?: (effect: Effect<Tx>) => void) {
    this.#lease = lease;
    this.#logger = logger;
    this.#transactional = transactional;
    this.#checkEffect = checkEffect;
  }

  get identity(): string {
    this.#identity ??= identityOf(this.#lease.key, this.#lease.sequence, this.#lease.eventType);
    return this.#identity;
  }

  get attempt(): number {
    return this.#lease.attempt;
  }

  get receivedAt(): number {
    return this.#lease.acceptedAt;
  }

  get timestamp(): number {
    return this.#lease.signedAt;
  }

  get missing(): HandlerContext["missing"] {
    return this.#lease.missing;
  }

  get replay(): boolean {
    return this.#lease.forced;
  }

  get outOfOrder(): boolean {
    return this.#lease.outOfOrder;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  get log(): Logger {
    const { event: eventId, key: lane, sequence, eventType } = this.#lease;
    return this.#logger.child?.(logFieldsOf({ eventId, lane, sequence, eventType })) ?? this.#logger;
  }

  get meta(): HandlerMeta {
    const { event, lane, key, trace } = this.#lease;
    return { eventId: event, laneId: lane, lane: key, traceparent: trace };
  }

  get rawBody(): Uint8Array {
    return this.#lease.raw;
  }

  commit(effect: Effect<Tx>): void {
    if (!this.#transactional) {
      throw new SetupError(
        "effects_unsupported",
        "ctx.commit needs a store with transactions, such as sqliteStore from oncehook/sqlite; this receiver's store has none.",
      );
    }
    if (this.#closed) throw new LeaseLost();
    this.#checkEffect?.(effect);
    this.effects.push(effect);
  }

  /** Refuses effects from here on; they are about to be committed, or never will be. */
  close(): void {
    this.#closed = true;
  }

  get aborted(): boolean {
    return this.#abort?.signal.aborted ?? false;
  }

  /** The handler ran out of time, or its lease was lost. */
  abort(reason: Error): void {
    this.close();
    this.#abort ??= new AbortController();
    this.#abort.abort(reason);
  }
}
