/** The registered handlers, the context that they receive, and running them within their time. */
import { LeaseLost, OncehookError, PermanentError, SetupError } from "../errors.ts";
import { identityOf, isKnownEventType, KNOWN_EVENT_TYPES, parseEvent } from "../events/parse.ts";
import type { EventByType, KnownEventType, LateEvent, UnknownEvent, WebhookEvent } from "../events/types.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { isPromise, suggestion } from "../internal/options.ts";
import type { AttemptReport, Instruments, Observation } from "./instrumentation.ts";
import { logFieldsOf } from "./masking.ts";
import type { EventNotice, LaneKey, Outcome } from "./record.ts";
import type { Effect, InboxStore, Lease, Turn } from "./store.ts";

/** A handler. Its result is awaited and otherwise ignored. If it throws, the event is retried. */
export type Handler<E, Tx> = (event: E, ctx: HandlerContext<Tx>) => unknown;

/** A delivery with a known identity had different content. It was kept, and not handled. */
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

/** What an application registered with a receiver. A reload in development replaces it: read it at each use. */
export interface Registered<Tx> {
  readonly registry: HandlerRegistry<Tx>;
  readonly instruments: Instruments;
}

/** The registered handlers and hooks. An event's handlers are called in the order of their registration. */
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

  /** Nothing can be registered from here on. */
  freeze(): void {
    this.#frozen = true;
  }

  get isEmpty(): boolean {
    return this.#handlers.length === 0 && this.#late.length === 0;
  }

  /** @throws SetupError without any handler: each event would end as unhandled */
  requireHandlers(): void {
    if (!this.isEmpty) return;
    throw new SetupError(
      "no_handlers",
      'Register a handler first: receiver.on("message.inbound", (event, ctx) => { … }).',
    );
  }

  /** What a store does with an event below its lane's cursor: keep it for `onLate`, or only record it. */
  get lateEvents(): Turn<Tx>["lateEvents"] {
    return this.#late.length > 0 ? "hand_out" : "record";
  }

  /** Outbound types with a handler, for the warning without `onLate`. `any` and `unknown` stand for onAny and onUnknown. */
  get outboundTypes(): readonly string[] {
    return [...this.#outbound];
  }

  /** A late event goes to `onLate` only, unless an operator replays it. */
  handlersFor(eventType: string, late: boolean): readonly AnyHandler<Tx>[] {
    if (late) return this.#late;
    // Only known types are cached: the number of unknown ones has no bound.
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

/**
 * What a handler receives besides its event.
 *
 * @typeParam Tx - the connection that an effect receives. `postgresStore(pool)`: the pool's client, pg's `PoolClient`; with a connection
 *   string `PgClient` of oncehook/postgres. `sqliteStore`: as its option `driver` or `effects` sets it, such as better-sqlite3's
 *   `Database`; without them `SqliteDatabase` of oncehook/sqlite.
 */
export interface HandlerContext<Tx = unknown> {
  /** Hex SHA-256 that names the event, the same for every delivery and attempt. Use it as idempotency key. */
  readonly identity: string;
  /** 1 on the first attempt. */
  readonly attempt: number;
  /** When the event was accepted, epoch milliseconds. */
  readonly receivedAt: number;
  /** The verified timestamp of its delivery, epoch milliseconds (DLV-13). */
  readonly timestamp: number;
  /** Sequences before this event that did not arrive in time, both included. Null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** An operator replayed the event. */
  readonly replay: boolean;
  /** An event with a higher sequence was handled before: this one is late, or a replay. */
  readonly outOfOrder: boolean;
  /**
   * Aborts at `handlerTimeoutMs`. The attempt then fails when the handler ends, or 30 s later at the latest. A handler that runs on
   * after that can overlap its own retry, but cannot commit.
   */
  readonly signal: AbortSignal;
  /**
   * Registers a write to the inbox's own database. After all handlers of the event returned, the effects run in order, in the
   * transaction that completes the event: exactly once. Synchronous on SQLite.
   *
   * The connection works only while effects run. Write with this connection only: other writes are not in the transaction.
   * @throws LeaseLost when the event is already completed
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
  /** The delivery's `traceparent`, or null. */
  readonly traceparent: string | null;
}

type EffectStore = Pick<InboxStore, "checkEffect"> & { readonly capabilities: { readonly transactional: boolean } };

/** Computes what costs time on first use: most handlers never read the identity, the signal or the logger. */
export class LeaseContext<Tx> implements HandlerContext<Tx> {
  readonly #lease: Lease;
  readonly #logger: Logger;
  readonly #store: EffectStore;
  readonly effects: Effect<Tx>[] = [];
  #identity: string | undefined;
  #abort: AbortController | undefined;
  #closed = false;

  constructor(lease: Lease, logger: Logger, store: EffectStore) {
    this.#lease = lease;
    this.#logger = logger;
    this.#store = store;
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
    if (!this.#store.capabilities.transactional) {
      throw new SetupError(
        "effects_unsupported",
        "ctx.commit needs a store with transactions, such as sqliteStore from oncehook/sqlite; this receiver's store has none.",
      );
    }
    if (this.#closed) throw new LeaseLost();
    this.#store.checkEffect?.(effect);
    this.effects.push(effect);
  }

  /** Refuses effects from here on: those registered so far are about to be committed, or never will be. */
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

/** How long a lane stays leased after its handler timed out, so that the handler can end. */
const TIMEOUT_GRACE_MS = 30_000;

/** How the handlers of a claimed event ended. */
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

export interface RunnerOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly handlerTimeoutMs: number;
}

/** A run in progress. The worker aborts it when its lease is lost. */
export interface Run {
  abort(reason: Error): void;
}

/** Runs the handlers of claimed events. */
export class Runner<Tx> {
  readonly #store: EffectStore;
  readonly #registered: Registered<Tx>;
  readonly #options: RunnerOptions;

  constructor(store: EffectStore, registered: Registered<Tx>, options: RunnerOptions) {
    this.#store = store;
    this.#registered = registered;
    this.#options = options;
  }

  /**
   * Calls `done` exactly once. Handlers that return no promise run synchronously: then `done` has been called when this returns.
   */
  run(lease: Lease, parsed: WebhookEvent | null, done: (verdict: Verdict<Tx>) => void): Run {
    const { registry, instruments } = this.#registered;
    const observed = instruments.attempt(lease);
    const context = new LeaseContext<Tx>(lease, this.#options.logger, this.#store);
    const event = parsed ?? readEvent(lease.raw);
    const late = lease.late && !lease.forced;
    const handlers = registry.handlersFor(lease.eventType, late);
    if (event === null) {
      done(failed(unreadable(), null));
    } else if (handlers.length === 0) {
      done({ kind: "complete", outcome: "unhandled", effects: [], event });
    } else {
      this.#call({ handlers, event, context, observed, done });
    }
    return context;
  }

  /** An observer's context is current in the handlers only, not in the work that follows them. */
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

  /** Waits for the handlers that return promises, bounded by the handler time-out and its grace. */
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

/** Calls the handlers up to the first that returns a promise. Null if none does; otherwise resolves when the rest has run. */
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
    "The stored body is not an event for this version of oncehook, although it was accepted as one. Replay it after an upgrade.",
  );
}

/** The event of a stored body, as after a restart. Null without a body, or if it cannot be parsed. */
export function readEvent(raw: Uint8Array | null): WebhookEvent | null {
  const result = parseEvent(raw);
  return result.ok ? result.event : null;
}
