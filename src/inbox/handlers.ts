/** The registered handlers, the context that they get, and running them within their time. */
import { LeaseLost, OncehookError, PermanentError, SetupError } from "../errors.ts";
import { identityOf } from "../events/identity.ts";
import { parseEvent } from "../events/parse.ts";
import {
  type EventByType,
  isKnownEventType,
  KNOWN_EVENT_TYPES,
  type KnownEventType,
  type LateEvent,
  type UnknownEvent,
  type WebhookEvent,
} from "../events/types.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { suggestion } from "../internal/options.ts";
import { isPromise } from "../internal/type-guards.ts";
import type { AttemptReport, Instruments, Observation } from "./instrumentation.ts";
import { logFieldsOf } from "./masking.ts";
import type { EventNotice, LaneKey, Outcome } from "./record.ts";
import type { Effect, Lease } from "./store.ts";

// The typed registry of handlers: which of them an event goes to, in order of registration.

/** A handler; what it returns is awaited and otherwise ignored. Throwing makes the event be retried. */
export type Handler<E, Tx> = (event: E, ctx: HandlerContext<Tx>) => unknown;

/** A delivery with a known identity carried other content. It was kept, and not handled. */
export interface ConflictNotice extends EventNotice {}

export interface FailureNotice extends EventNotice {
  readonly attempt: number;
  readonly error: unknown;
}

export interface DeadLetterNotice extends EventNotice {
  readonly attempts: number;
  /** The failure's code, such as `attempts_exhausted`. */
  readonly code: string;
}

export interface Hooks {
  conflict: ((notice: ConflictNotice) => unknown)[];
  error: ((notice: FailureNotice) => unknown)[];
  deadLetter: ((notice: DeadLetterNotice) => unknown)[];
}

type AnyHandler<Tx> = Handler<WebhookEvent, Tx>;

interface Registration<Tx> {
  readonly takes: (event: { readonly eventType: string }) => boolean;
  readonly handler: AnyHandler<Tx>;
}

export class HandlerRegistry<Tx> {
  readonly hooks: Hooks = { conflict: [], error: [], deadLetter: [] };
  readonly #handlers: Registration<Tx>[] = [];
  readonly #late: AnyHandler<Tx>[] = [];
  readonly #outbound = new Set<KnownEventType | "any" | "unknown">();
  readonly #byType = new Map<string, readonly AnyHandler<Tx>[]>();
  #frozen = false;

  on<T extends KnownEventType>(types: T | readonly T[], handler: Handler<EventByType[T], Tx>): void {
    const wanted: readonly unknown[] = Array.isArray(types) ? types : [types];
    if (wanted.length === 0) throw noType();
    for (const type of wanted) {
      if (typeof type !== "string") throw noType();
      if (!isKnownEventType(type)) throw unknownType(type);
      if (type !== "message.inbound") this.#outbound.add(type);
    }
    this.#add((event) => wanted.includes(event.eventType), handler as AnyHandler<Tx>);
  }

  onAny(handler: AnyHandler<Tx>): void {
    this.#add(() => true, handler);
    this.#outbound.add("any");
  }

  onUnknown(handler: Handler<UnknownEvent, Tx>): void {
    this.#add((event) => !isKnownEventType(event.eventType), handler as AnyHandler<Tx>);
    this.#outbound.add("unknown");
  }

  onLate(handler: Handler<LateEvent, Tx>): void {
    this.#refuseIfFrozen();
    // Only events of a lane with a sequence are late.
    this.#late.push(checked(handler as AnyHandler<Tx>));
  }

  addHook<H extends keyof Hooks>(hook: H, listener: Hooks[H][number]): void {
    this.#refuseIfFrozen();
    (this.hooks[hook] as unknown[]).push(checked(listener));
  }

  /** From here on nothing can be registered. */
  freeze(): void {
    this.#frozen = true;
  }

  get isEmpty(): boolean {
    return this.#handlers.length === 0 && this.#late.length === 0;
  }

  /** @throws SetupError without any handler: nobody would be given the events, and each would end as unhandled */
  requireHandlers(): void {
    if (!this.isEmpty) return;
    throw new SetupError(
      "no_handlers",
      'Register a handler first: receiver.on("message.inbound", (event, ctx) => { … }).',
    );
  }

  get takesLate(): boolean {
    return this.#late.length > 0;
  }

  /** Outbound types with a handler, for the warning when there is no `onLate`; `any` and `unknown` are onAny's and onUnknown's. */
  get outboundTypes(): readonly string[] {
    return [...this.#outbound];
  }

  /** A late event goes to `onLate` only, unless an operator replays it. */
  handlersFor(eventType: string, late: boolean): readonly AnyHandler<Tx>[] {
    if (late) return this.#late;
    // Unknown types come from outside without bound: only known ones are remembered.
    if (!isKnownEventType(eventType)) return this.#select(eventType);
    let handlers = this.#byType.get(eventType);
    if (handlers === undefined) {
      handlers = this.#select(eventType);
      if (this.#frozen) this.#byType.set(eventType, handlers);
    }
    return handlers;
  }

  #select(eventType: string): readonly AnyHandler<Tx>[] {
    return this.#handlers
      .filter((registration) => registration.takes({ eventType }))
      .map((registration) => registration.handler);
  }

  #add(takes: Registration<Tx>["takes"], handler: AnyHandler<Tx>): void {
    this.#refuseIfFrozen();
    this.#handlers.push({ takes, handler: checked(handler) });
  }

  #refuseIfFrozen(): void {
    if (!this.#frozen) return;
    throw new SetupError(
      "already_started",
      "Handlers must be registered before start(), drain() or the first event: an event that came earlier would miss this one.",
    );
  }
}

function noType(): SetupError {
  return new SetupError(
    "invalid_option",
    'on() takes an event type, such as "message.inbound", or a list of them; onAny() is for every event.',
  );
}

function unknownType(type: string): SetupError {
  const hint = suggestion(type, KNOWN_EVENT_TYPES);
  return new SetupError(
    "invalid_option",
    `on() knows no event type "${type}". ${hint} Types that the service adds later reach onUnknown().`,
  );
}

function checked<F>(handler: F): F {
  if (typeof handler === "function") return handler;
  throw new SetupError(
    "invalid_option",
    `A handler must be a function, not ${handler === null ? "null" : typeof handler}.`,
  );
}

// What a handler gets beside its event.

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

// Runs the handlers of one claimed event, within its time, and says how the claim should end.

/** How long a lane stays leased after its handler ran out of time, for the handler to notice. */
const TIMEOUT_GRACE_MS = 30_000;

export type Verdict<Tx> =
  | {
      readonly kind: "complete";
      readonly outcome: Outcome;
      readonly effects: readonly Effect<Tx>[];
      readonly event: WebhookEvent;
    }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      readonly permanent: boolean;
      readonly event: WebhookEvent | null;
    };

interface RunnerOptions<Tx> {
  /** Asked for each event: a reload in development replaces it. */
  readonly registry: () => HandlerRegistry<Tx>;
  /** Likewise. */
  readonly instruments: () => Instruments;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly transactional: boolean;
  /** The store's. */
  readonly checkEffect?: (effect: Effect<Tx>) => void;
  readonly handlerTimeoutMs: number;
}

/** A run under way: lets the worker take it back when its lease is lost. */
export interface Run {
  abort(reason: Error): void;
}

export class Runner<Tx> {
  readonly #options: RunnerOptions<Tx>;

  constructor(options: RunnerOptions<Tx>) {
    this.#options = options;
  }

  /**
   * Calls `done` exactly once. Handlers that return no promise are run without giving up the thread: then `done` has
   * been called when this returns.
   */
  run(lease: Lease, parsed: WebhookEvent | null, done: (verdict: Verdict<Tx>) => void): Run {
    const { registry, instruments, logger, transactional, checkEffect } = this.#options;
    const observed = instruments().attempt(lease);
    const context = new LeaseContext<Tx>(lease, logger, transactional, checkEffect);
    const event = parsed ?? readEvent(lease.raw);
    const late = lease.late && !lease.forced;
    const handlers = registry().handlersFor(lease.eventType, late);
    if (event === null) {
      done(failed(unreadable(), null));
    } else if (handlers.length === 0) {
      done({ kind: "complete", outcome: "unhandled", effects: [], event });
    } else {
      this.#call({ handlers, event, context, observed, done });
    }
    return context;
  }

  /** Whoever watches has its context current in the handlers only: what follows from them is not theirs. */
  #call(call: Call<Tx>): void {
    const { event, context, observed, done } = call;
    let rest: Promise<void> | null;
    try {
      rest = observed === null ? callHandlers(call) : observed.run(() => callHandlers(call));
    } catch (error) {
      context.close();
      return done(failed(error, event));
    }
    if (rest !== null) return this.#await(call, rest);
    context.close();
    done({ kind: "complete", outcome: "handled", effects: context.effects, event });
  }

  /** The rest of the handlers, from the first that returned a promise; bounded by the handler time-out and its grace. */
  #await(call: Call<Tx>, rest: Promise<void>): void {
    const { clock, handlerTimeoutMs } = this.#options;
    let settled = false;
    let timedOut: Error | null = null;
    const settle = (verdict: Verdict<Tx>) => {
      if (settled) return;
      settled = true;
      timer.cancel();
      call.context.close();
      call.done(timedOut === null ? verdict : failed(timedOut, call.event));
    };
    let timer: Timer = clock.setTimeout(() => {
      timedOut = new OncehookError(
        "handler_timeout",
        `A handler took longer than handlerTimeoutMs (${handlerTimeoutMs} ms).`,
      );
      call.context.abort(timedOut);
      timer = clock.setTimeout(() => settle(failed(timedOut, call.event)), TIMEOUT_GRACE_MS);
    }, handlerTimeoutMs);
    rest.then(
      () => settle({ kind: "complete", outcome: "handled", effects: call.context.effects, event: call.event }),
      (error: unknown) => settle(failed(error, call.event)),
    );
  }
}

interface Call<Tx> {
  readonly handlers: readonly Handler<WebhookEvent, Tx>[];
  readonly event: WebhookEvent;
  readonly context: LeaseContext<Tx>;
  readonly observed: Observation<AttemptReport> | null;
  readonly done: (verdict: Verdict<Tx>) => void;
}

/** Calls the handlers up to the first that returns a promise; null when none does, else what is left of them. */
function callHandlers<Tx>(call: Call<Tx>): Promise<void> | null {
  const { handlers, event, context } = call;
  let called = 0;
  for (const handler of handlers) {
    const returned = handler(event, context);
    called++;
    if (isPromise(returned)) return callInOrder(call, returned, called);
  }
  return null;
}

async function callInOrder<Tx>(call: Call<Tx>, first: PromiseLike<unknown>, next: number): Promise<void> {
  await first;
  for (const handler of call.handlers.slice(next)) {
    if (call.context.aborted) return;
    await handler(call.event, call.context);
  }
}

/** The verdict on an attempt that threw `error`. */
export function failed(
  error: unknown,
  event: WebhookEvent | null,
): { kind: "failed"; error: unknown; permanent: boolean; event: WebhookEvent | null } {
  return { kind: "failed", error, permanent: error instanceof PermanentError, event };
}

function unreadable(): PermanentError {
  return new PermanentError(
    "The stored body is no event to this version of oncehook, though it was one when it was accepted.",
  );
}

/** The event of a stored body: after a restart, for example. Null if there is none, or it cannot be read. */
export function readEvent(raw: Uint8Array | null): WebhookEvent | null {
  const result = parseEvent(raw);
  return result.ok ? result.event : null;
}
