/** Runs the handlers of one claimed event, within its time, and says how the claim should end. */
import { OncehookError, PermanentError } from "../errors.ts";
import { parseEvent } from "../events/parse.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { isPromise } from "../internal/type-guards.ts";
import { LeaseContext } from "./context.ts";
import type { Handler, HandlerRegistry } from "./dispatch.ts";
import type { AttemptReport } from "./instrumentation.ts";
import type { Instruments, Observation } from "./instruments.ts";
import type { Outcome } from "./record.ts";
import type { Effect, Lease } from "./store.ts";

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

export interface RunnerOptions<Tx> {
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
