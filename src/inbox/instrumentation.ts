/** What whoever watches a receiver is told: ids, types, counts and codes; never a number, a text, a secret or an error's message. */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import { SetupError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { type Logger, SampledLog } from "../internal/logger.ts";
import { functionOption } from "../internal/options.ts";
import type { TurnTaker } from "./group-commit.ts";
import { logFieldsOf, placeFields } from "./masking.ts";
import type { EventId, EventNotice, NewEvent } from "./record.ts";
import type { Acceptance, Lease, Turn, TurnResult } from "./store.ts";

/**
 * Watches a receiver: `receiver.instrument(…)`. Every method is optional, and none can change what happens: what it throws is
 * logged by its code and dropped.
 */
export interface Instrumentation {
  /** Asked before anything is made for it. Default: it listens. */
  isListening?(): boolean;
  /** A delivery came in; its observer hears how it was answered. */
  delivery?(): Observer<DeliveryReport> | undefined;
  /** An attempt of an event begins; its observer hears how it ended, once that is stored. */
  attempt?(info: AttemptInfo): Observer<AttemptReport> | undefined;
  /** A write transaction ended, well or not. */
  commit?(report: CommitReport): void;
}

/** Watches one delivery or one attempt. */
export interface Observer<Report> {
  /**
   * Must call `work` once, before it returns: so a context can be made current in it and in all that it awaits. Of an attempt
   * these are the calls of the handlers; not called when there are none. Work that was not called is done without it.
   */
  run?(work: () => void): void;
  /** Not called for an attempt whose handlers never end, or that the process does not outlive. */
  ended?(report: Report): void;
}

/**
 * - `accepted`, `duplicate`, `late`, `quarantined`, and with `ack: "handled"` also `handled` and `dead`: as the answer says.
 * - `conflict`: a duplicate that carried other content.
 * - `refused`: answered with 4xx.
 * - `failed`: answered with 5xx; after a 503 the service retries.
 */
export type DeliveryOutcome =
  | "accepted"
  | "duplicate"
  | "conflict"
  | "late"
  | "quarantined"
  | "handled"
  | "dead"
  | "refused"
  | "failed";

export interface DeliveryReport {
  readonly outcome: DeliveryOutcome;
  readonly status: number;
  /** Why it was refused, failed or quarantined, such as `signature_mismatch`; null otherwise. */
  readonly reason: string | null;
  /** The place of the secret that vouches for it: `current`, `previous`, `next`, or `unsigned`; null when none does. */
  readonly slot: string | null;
  /** Its event came below the cursor of its message: it goes to `onLate` only, or is recorded. */
  readonly late: boolean;
  readonly durationMs: number;
}

/** Names the event, and what is known as its attempt begins. */
export interface AttemptInfo extends EventNotice {
  /** 1 on the first hand-out. */
  readonly attempt: number;
  /** Its sequence was below the cursor when it arrived: it goes to `onLate`. */
  readonly late: boolean;
  /** An operator replayed it. */
  readonly replay: boolean;
  /** Sequences before it that were waited for in vain, both included; null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** The delivery's `traceparent`, if it had a strictly valid one. */
  readonly traceparent: string | null;
  /** Epoch milliseconds. */
  readonly acceptedAt: number;
}

/**
 * - `handled`, `unhandled`, `retry`, `dead`: as it is stored.
 * - `put_back`: it failed as a probe of a worker that paused itself, and its attempt does not count.
 * - `lost`: the lease had passed to another worker, or the process stopped before the end was stored.
 */
export type AttemptEnding = "handled" | "unhandled" | "retry" | "dead" | "put_back" | "lost";

export interface AttemptReport {
  readonly ending: AttemptEnding;
  /** The code of what a handler or an effect threw; null when none did. */
  readonly errorCode: string | null;
  /** How long the handlers took. */
  readonly durationMs: number;
}

export interface CommitReport {
  /** False: nothing of it was written. */
  readonly ok: boolean;
  readonly accepts: number;
  readonly quarantines: number;
  /** Ends of attempts. One whose effects still run is not counted yet. */
  readonly settles: number;
  /** Events it claimed. */
  readonly leases: number;
  /** Events it made dead letters because their attempts had been used up without an end. */
  readonly retired: number;
  readonly durationMs: number;
}

// Those who watch a receiver, told in order; where nobody listens, nothing is made and nothing is called.

/** A lease is made for one attempt, so it names it; a reload of the handlers in between changes nothing. */
const attempts = new WeakMap<Lease, Observation<AttemptReport>>();

/** Who watches the attempt that this lease is for; undefined when nobody does. */
export function attemptOf(lease: Lease): Observation<AttemptReport> | undefined {
  return attempts.get(lease);
}

export class Instruments {
  readonly #all: Instrumentation[] = [];
  readonly #guard: Guard;

  constructor(logger: Logger, clock: Clock) {
    const log = new SampledLog(logger, clock);
    // No message: what runs the work of an attempt may throw the handler's own error, which may quote the event.
    this.#guard = guardedBy((error) =>
      log.error(placeFields(error), "An instrumentation threw; what it watched went on."),
    );
  }

  /** @throws SetupError for what is no instrumentation */
  add(instrumentation: Instrumentation): void {
    if (typeof instrumentation !== "object" || instrumentation === null) {
      throw new SetupError("invalid_option", "receiver.instrument() takes an object with delivery, attempt or commit.");
    }
    for (const name of ["isListening", "delivery", "attempt", "commit"] as const) {
      functionOption(`instrument.${name}`, instrumentation[name]);
    }
    this.#all.push(instrumentation);
  }

  /** Begins to watch a delivery; null when nobody listens. */
  delivery(): Observation<DeliveryReport> | null {
    if (!this.hears("delivery")) return null;
    return this.#observe((instrumentation) => instrumentation.delivery?.());
  }

  /** Begins to watch the attempt that `lease` is for; null when nobody listens. */
  attempt(lease: Lease): Observation<AttemptReport> | null {
    if (!this.hears("attempt")) return null;
    const info = infoOf(lease);
    const observation = this.#observe((instrumentation) => instrumentation.attempt?.(info));
    if (observation !== null) attempts.set(lease, observation);
    return observation;
  }

  commit(report: CommitReport): void {
    for (const one of this.#all) if (this.#isListening(one)) this.#guard(() => one.commit?.(report));
  }

  /** Whether anybody would be told. */
  hears(what: "delivery" | "attempt" | "commit"): boolean {
    for (const one of this.#all) if (one[what] !== undefined && this.#isListening(one)) return true;
    return false;
  }

  /** Who can not say whether it listens does not. */
  #isListening(one: Instrumentation): boolean {
    let listens = false;
    this.#guard(() => {
      listens = one.isListening?.() ?? true;
    });
    return listens;
  }

  #observe<Report>(begin: (one: Instrumentation) => Observer<Report> | undefined): Observation<Report> | null {
    const observers: Observer<Report>[] = [];
    for (const one of this.#all) {
      if (!this.#isListening(one)) continue;
      this.#guard(() => {
        const observer = begin(one);
        if (observer !== undefined) observers.push(observer);
      });
    }
    return observers.length === 0 ? null : new Observation(observers, this.#guard);
  }
}

/** Calls it, and keeps what it throws from what is watched. */
type Guard = (call: () => unknown) => void;

/** One delivery or attempt that somebody watches. */
export class Observation<Report> {
  readonly #observers: readonly Observer<Report>[];
  readonly #guard: Guard;

  constructor(observers: readonly Observer<Report>[], guard: Guard) {
    this.#observers = observers;
    this.#guard = guard;
  }

  /** What `work` returns or throws. It is done once, whatever the observers do. */
  run<T>(work: () => T): T {
    const done: { ended?: { value: T } | { thrown: unknown } } = {};
    const once = () => {
      done.ended ??= endOf(work);
    };
    let within: () => void = once;
    for (const observer of this.#observers) {
      if (observer.run === undefined) continue;
      const inner = within;
      within = () => this.#guard(() => observer.run?.(inner));
    }
    within();
    done.ended ??= endOf(work);
    const { ended } = done;
    if ("thrown" in ended) throw ended.thrown;
    return ended.value;
  }

  ended(report: Report): void {
    for (const observer of this.#observers) this.#guard(() => observer.ended?.(report));
  }
}

function guardedBy(failed: (error: unknown) => void): Guard {
  return (call) => {
    try {
      const returned = call();
      if (returned instanceof Promise) returned.catch(failed);
    } catch (error) {
      failed(error);
    }
  };
}

function endOf<T>(work: () => T): { value: T } | { thrown: unknown } {
  try {
    return { value: work() };
  } catch (thrown) {
    return { thrown };
  }
}

function infoOf(lease: Lease): AttemptInfo {
  const { event, key, sequence, eventType, attempt, late, forced, missing, trace, acceptedAt } = lease;
  return {
    ...{ eventId: event, lane: key, sequence, eventType, attempt, missing, acceptedAt },
    late: late && !forced,
    replay: forced,
    traceparent: trace,
  };
}

// Measures write transactions for whoever listens: the batcher makes turns, and need not know who watches them.

export function measuredSteps<Tx>(store: TurnTaker<Tx>, clock: Clock, instruments: () => Instruments): TurnTaker<Tx> {
  const measured = async (turn: Turn<Tx>): Promise<TurnResult> => {
    const startedAt = clock.monotonic();
    let result: TurnResult | null = null;
    try {
      result = await store.step(turn);
      return result;
    } finally {
      instruments().commit({
        ok: result !== null,
        accepts: turn.accepts.length,
        quarantines: turn.quarantines.length,
        settles: ended(turn, result),
        leases: result?.leases.length ?? 0,
        retired: result?.retired.length ?? 0,
        durationMs: clock.monotonic() - startedAt,
      });
    }
  };
  return {
    capabilities: store.capabilities,
    acceptsQuickly: (event) => store.acceptsQuickly?.(event) ?? false,
    step: (turn) => (instruments().hears("commit") ? measured(turn) : store.step(turn)),
  };
}

/** What is unfinished, or has failed with its effect, comes again in a later turn, and is counted there. */
function ended<Tx>({ settles }: Turn<Tx>, result: TurnResult | null): number {
  if (result === null) return settles.length;
  return result.settled.filter(({ status }) => status === "settled" || status === "lost").length;
}

// Deliveries and attempts on `node:diagnostics_channel`, as tracing channels: `tracing:oncehook.delivery:start` and so on. Without
// a subscriber nothing is made for them.

/** The message of `tracing:oncehook.delivery`: empty until the delivery is answered, which is told by `asyncStart` and `asyncEnd`. */
export interface DeliveryMessage extends Partial<DeliveryReport> {}

/** The message of `tracing:oncehook.handler`: how the attempt ended is there with `error`, `asyncStart` and `asyncEnd`. */
export interface HandlerMessage extends AttemptInfo, Partial<AttemptReport> {}

type Channel<Message extends object> = TracingChannel<unknown, Message>;

const deliveries: Channel<DeliveryMessage> = tracingChannel("oncehook.delivery");
const handlers: Channel<HandlerMessage> = tracingChannel("oncehook.handler");

export const channelInstrumentation: Instrumentation = {
  isListening: () => deliveries.hasSubscribers || handlers.hasSubscribers,
  delivery: () =>
    deliveries.hasSubscribers ? new Traced(deliveries, {}, ({ outcome }) => outcome === "failed") : undefined,
  attempt: (info) => (handlers.hasSubscribers ? new Traced(handlers, { ...info }, isFailedAttempt) : undefined),
};

function isFailedAttempt({ ending, errorCode }: AttemptReport): boolean {
  return errorCode !== null || ending === "lost";
}

/** One message on its way through the five channels of a tracing channel. */
class Traced<Report extends object, Message extends Partial<Report>> implements Observer<Report> {
  readonly #channel: Channel<Message>;
  readonly #message: Message;
  readonly #isFailure: (report: Report) => boolean;
  #hasStarted = false;

  constructor(channel: Channel<Message>, message: Message, isFailure: (report: Report) => boolean) {
    this.#channel = channel;
    this.#message = message;
    this.#isFailure = isFailure;
  }

  run(work: () => void): void {
    this.#hasStarted = true;
    this.#channel.start.runStores(this.#message, () => {
      work();
      this.#channel.end.publish(this.#message);
    });
  }

  /** An attempt without a handler to call did not start. */
  ended(report: Report): void {
    if (!this.#hasStarted) return;
    Object.assign(this.#message, report);
    if (this.#isFailure(report)) this.#channel.error.publish(this.#message);
    this.#channel.asyncStart.publish(this.#message);
    this.#channel.asyncEnd.publish(this.#message);
  }
}

// A line at level info for each event that is accepted, and for each that is handled: what somebody who develops looks at.

const ACCEPTED = {
  accepted: "Event accepted.",
  late: "Event accepted, too late for its place.",
  duplicate: "Event was accepted before: it is not handled again.",
} as const;

export class EventLog implements Instrumentation {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  accepted(
    { lane, sequence, eventType }: NewEvent,
    eventId: EventId,
    outcome: Exclude<Acceptance["outcome"], "failed">,
  ): void {
    this.#logger.info(logFieldsOf({ eventId, lane, sequence, eventType }), ACCEPTED[outcome]);
  }

  attempt(info: AttemptInfo): Observer<{ readonly ending: AttemptEnding; readonly durationMs: number }> {
    return {
      ended: ({ ending, durationMs }) => {
        if (ending === "handled")
          this.#logger.info(logFieldsOf(info), `Event handled in ${Math.max(0, Math.round(durationMs))} ms.`);
        if (ending === "unhandled") this.#logger.info(logFieldsOf(info), "Event has no handler, and is done.");
      },
    };
  }
}
