/** Runs an event's handlers within their time: the context that they receive, and the verdict. */
import { LeaseLost, OncehookError, PermanentError, SetupError } from "../errors.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { isPromise } from "../internal/options.ts";
import type { Handler, HandlerContext, HandlerMeta, Registered } from "./handlers.ts";
import { type AttemptReport, noticeOf, type Observation } from "./instrumentation.ts";
import { identityOf } from "./lane-key.ts";
import { logFieldsOf, type Masking, NOTHING_QUOTED } from "./masking.ts";
import type { Outcome } from "./record.ts";
import type { DeclaredEffect, Effect, EffectFunction, InboxStore, Lease } from "./store.ts";
import { declaredEffects } from "./store-rules.ts";

type EffectStore = Pick<InboxStore, "checkEffect"> & { readonly capabilities: { readonly transactional: boolean } };

/** Computes what costs time on first use: most handlers never read the identity, the signal or the logger. */
export class LeaseContext<Tx> implements HandlerContext<Tx> {
  readonly #lease: Lease;
  readonly #logger: Logger;
  readonly #store: EffectStore;
  #effects: Effect<Tx>[] | null = null;
  #identity: string | undefined;
  #headers: Readonly<Record<string, string>> | undefined;
  #abort: AbortController | undefined;
  #closed = false;

  constructor(lease: Lease, logger: Logger, store: EffectStore) {
    this.#lease = lease;
    this.#logger = logger;
    this.#store = store;
  }

  get identity(): string {
    const { key: lane, ownId, sequence, eventType } = this.#lease;
    this.#identity ??= identityOf({ lane, ownId, sequence, eventType });
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

  get late(): boolean {
    return this.#lease.late;
  }

  get outOfOrder(): boolean {
    return this.#lease.outOfOrder;
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    return this.#abort.signal;
  }

  get log(): Logger {
    return this.#logger.child?.(logFieldsOf(noticeOf(this.#lease))) ?? this.#logger;
  }

  get meta(): HandlerMeta {
    const { event, lane, key, ownId, sequence, eventType, trace } = this.#lease;
    const { source, tenant, name } = key;
    const names = { eventId: event, laneId: lane, source, tenant, lane: name, id: ownId };
    return { ...names, sequence, eventType, traceparent: trace };
  }

  get rawBody(): Uint8Array {
    return this.#lease.raw;
  }

  header(name: string): string | undefined {
    this.#headers ??= headersOf(this.#lease);
    return this.#headers[name];
  }

  commit(given: EffectFunction<Tx> | DeclaredEffect | readonly DeclaredEffect[]): void {
    if (!this.#store.capabilities.transactional) {
      throw new SetupError(
        "effects_unsupported",
        "ctx.commit needs a store with transactions, such as sqliteStore from oncehook/sqlite; this receiver's store has none.",
      );
    }
    if (this.#closed) throw new LeaseLost();
    const effects: readonly Effect<Tx>[] = typeof given === "function" ? [given] : declaredEffects(given);
    for (const effect of effects) this.#store.checkEffect?.(effect);
    this.#effects ??= [];
    this.#effects.push(...effects);
  }

  get effects(): readonly Effect<Tx>[] {
    return this.#effects ?? NO_EFFECTS;
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

const NO_EFFECTS: readonly never[] = [];

/** Without a prototype: a header named "constructor" is not kept. */
function headersOf({ head }: Lease): Readonly<Record<string, string>> {
  return Object.assign(Object.create(null), head === null ? {} : JSON.parse(head));
}

/** How long a lane stays leased after its handler timed out, so that the handler can end. */
const TIMEOUT_GRACE_MS = 30_000;

/** How the handlers of a claimed event ended. */
export type Verdict<Tx> =
  /** This process does not have the event's entry: the event stays as it is, for a process that has. */
  | { readonly kind: "absent" }
  | {
      readonly kind: "complete";
      readonly outcome: Outcome;
      readonly effects: readonly Effect<Tx>[];
      readonly event: object;
    }
  | {
      readonly kind: "failed";
      readonly error: unknown;
      readonly permanent: boolean;
      /** Hides what the error quotes of the event. */
      readonly masking: Masking;
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

/** Types of late events that are logged: an open source can have any number. */
const MOST_NOTED = 100;

/** Runs the handlers of claimed events. */
export class Runner<Tx> {
  readonly #store: EffectStore;
  readonly #registered: Registered<Tx>;
  readonly #options: RunnerOptions;
  readonly #notedLate = new Set<string>();

  constructor(store: EffectStore, registered: Registered<Tx>, options: RunnerOptions) {
    this.#store = store;
    this.#registered = registered;
    this.#options = options;
  }

  /**
   * Calls `done` exactly once. Handlers that return no promise run synchronously: then `done` has been called when this returns.
   */
  run(lease: Lease, parsed: object | null, done: (verdict: Verdict<Tx>) => void): Run {
    const { entries, instruments } = this.#registered;
    const context = new LeaseContext<Tx>(lease, this.#options.logger, this.#store);
    const entry = entries.of(lease.key);
    if (entry === undefined) {
      this.#noteMissing(lease);
      done({ kind: "absent" });
      return context;
    }
    const observed = instruments.attempt(lease);
    const event = parsed ?? entry.source.reread(lease);
    const handlers = entry.handlers.handlersFor(lease.eventType, lease.late);
    if (lease.late && entry.handlers.lateGoToOn) this.#noteLate(lease);
    if (event === null) {
      done(failed(unreadable(), NOTHING_QUOTED));
    } else if (handlers.length === 0) {
      done({ kind: "complete", outcome: "unhandled", effects: [], event });
    } else {
      this.#call({ handlers, event, lease, context, observed, done });
    }
    return context;
  }

  /** Once for each source: its events are offered again and again. */
  #noteMissing({ key }: Lease): void {
    const { source } = key;
    const { missing } = this.#registered.entries;
    if (missing.has(source)) return;
    missing.add(source);
    const message = `An event of the source "${source}" was met, which this receiver does not have: it stays untouched for one that has it.`;
    this.#options.logger.warn({ code: "source_missing", source }, message);
  }

  /** Once for each type of an entry: nothing is registered for late events, so handlers of facts get them. */
  #noteLate({ key, eventType }: Lease): void {
    const { source } = key;
    const noted = `${source} ${eventType}`;
    if (this.#notedLate.has(noted) || this.#notedLate.size >= MOST_NOTED) return;
    this.#notedLate.add(noted);
    this.#options.logger.warn(
      { code: "late_event", source, eventType },
      'An event of this type came after a later one of its lane was handled. Its on() handler gets it with ctx.late. If it keeps a state, register onLate(), or on() with { late: "skip" }.',
    );
  }

  /** An observer's context is current in the handlers only, not in the work that follows them. */
  #call(call: Call<Tx>): void {
    const { event, context, observed, done } = call;
    let rest: Promise<void> | null;
    try {
      rest = observed === null ? callHandlers(call) : observed.run(() => callHandlers(call));
    } catch (error) {
      context.close();
      return done(this.#failed(call, error));
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
      call.done(timedOut === null ? verdict : this.#failed(call, timedOut));
    };
    let timer: Timer = clock.setTimeout(() => {
      timedOut = new OncehookError(
        "handler_timeout",
        `A handler took longer than handlerTimeoutMs (${handlerTimeoutMs} ms).`,
      );
      call.context.abort(timedOut);
      timer = clock.setTimeout(() => settle(this.#failed(call, timedOut)), TIMEOUT_GRACE_MS);
    }, handlerTimeoutMs);
    rest.then(
      () => settle({ kind: "complete", outcome: "handled", effects: call.context.effects, event: call.event }),
      (error: unknown) => settle(this.#failed(call, error)),
    );
  }

  #failed({ event, lease }: Call<Tx>, error: unknown): Failed {
    return failed(error, this.#registered.entries.masking(lease.key, lease, event));
  }
}

interface Call<Tx> {
  readonly handlers: readonly Handler<object, Tx>[];
  readonly event: object;
  readonly lease: Lease;
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

type Failed = Extract<Verdict<never>, { readonly kind: "failed" }>;

/** The verdict on an attempt that threw `error`. */
export function failed(error: unknown, masking: Masking): Failed {
  return { kind: "failed", error, permanent: error instanceof PermanentError, masking };
}

function unreadable(): PermanentError {
  return new PermanentError(
    "The stored body is not an event for this version of oncehook, although it was accepted as one. Replay it after an upgrade.",
  );
}
