/** What instrumentations of a receiver can observe: ids, types, counts and codes. Never a phone number, a text, a secret or an error's message. */
import { type TracingChannel, tracingChannel } from "node:diagnostics_channel";
import { SetupError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { type Logger, SampledLog } from "../internal/logger.ts";
import { functionOption } from "../internal/options.ts";
import { logFieldsOf, placeFields } from "./masking.ts";
import type { EventId, EventNotice, NewEvent } from "./record.ts";
import type { Acceptance, InboxStore, Lease, Turn, TurnResult } from "./store.ts";

/**
 * Observes a receiver: `receiver.instrument(…)`. Every method is optional, and none can change what happens: an error that it throws is
 * logged by its code and dropped.
 */
export interface Instrumentation {
  /** Called before any report is built for it. Default: it listens. */
  isListening?(): boolean;
  /** A delivery arrived. Its observer learns how it was answered. */
  delivery?(): Observer<DeliveryReport> | undefined;
  /** An attempt of an event begins. Its observer learns how it ended, once that is stored. */
  attempt?(info: AttemptInfo): Observer<AttemptReport> | undefined;
  /** A write transaction ended, with success or not. */
  commit?(report: CommitReport): void;
}

/** Observes one delivery or one attempt. */
export interface Observer<Report> {
  /**
   * Must call `work` once, before it returns, so that a context can be current in `work` and in everything it awaits. For an attempt,
   * `work` calls the handlers; without handlers `run` is not called. If `run` does not call `work`, it runs anyway.
   */
  run?(work: () => void): void;
  /** Not called for an attempt whose handlers never end, or whose process ends first. */
  ended?(report: Report): void;
}

/**
 * - `accepted`, `duplicate`, `late`, `quarantined`, and with `ack: "handled"` also `handled` and `dead`: the outcome in the answer.
 * - `filtered`: the filter of its source refused it.
 * - `conflict`: a duplicate with different content.
 * - `handshake`: a request of another source that asks for an answer, such as Slack's `url_verification`. Nothing is stored.
 * - `refused`: answered with 4xx.
 * - `failed`: answered with 5xx; after a 503 the service retries.
 */
export type DeliveryOutcome =
  | "accepted"
  | "duplicate"
  | "conflict"
  | "late"
  | "filtered"
  | "quarantined"
  | "handled"
  | "dead"
  | "handshake"
  | "refused"
  | "failed";

export interface DeliveryReport {
  readonly outcome: DeliveryOutcome;
  readonly status: number;
  /** Why it was refused, failed or quarantined, such as `signature_mismatch`. Null otherwise. */
  readonly reason: string | null;
  /** The slot of the secret that signed it: `current`, `previous`, `next`, or `unsigned`. Null if none did. */
  readonly slot: string | null;
  /** The name of the entry that it came through. */
  readonly source: string;
  /** Its event is below the cursor of its message: it goes to `onLate` only, or is recorded. */
  readonly late: boolean;
  readonly durationMs: number;
}

/** The event, and what is known when its attempt begins. */
export interface AttemptInfo extends EventNotice {
  /** 1 on the first attempt. 0 where no handler takes the event, so that none begins. */
  readonly attempt: number;
  /** An event with a higher sequence or position was passed to a handler before. */
  readonly late: boolean;
  /** An operator replayed it. */
  readonly replay: boolean;
  /** Sequences before it that did not arrive in time, both included. Null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** The delivery's `traceparent`, if it was strictly valid. */
  readonly traceparent: string | null;
  /** Epoch milliseconds. */
  readonly acceptedAt: number;
}

/**
 * - `handled`, `unhandled`, `retry`, `dead`: as stored.
 * - `put_back`: a paused worker's probe failed, and its attempt does not count.
 * - `lost`: the lease had passed to another worker, or the process stopped before the end was stored.
 */
export type AttemptEnding = "handled" | "unhandled" | "retry" | "dead" | "put_back" | "lost";

export interface AttemptReport {
  readonly ending: AttemptEnding;
  /** The code of the error that a handler or an effect threw. Null when none did. */
  readonly errorCode: string | null;
  /** How long the handlers took. */
  readonly durationMs: number;
}

export interface CommitReport {
  /** False: nothing was written. */
  readonly ok: boolean;
  readonly accepts: number;
  readonly quarantines: number;
  /** Ends of attempts. An attempt whose effects still run is not counted yet. */
  readonly settles: number;
  /** Events it claimed. */
  readonly leases: number;
  /** Events that it made dead letters, because their attempts were used up without an end. */
  readonly retired: number;
  readonly durationMs: number;
}

/** By lease, since each is made for one attempt. So a reload of the handlers in between changes nothing. */
const attempts = new WeakMap<Attempted, Observation<AttemptReport>>();

/** The observation of the attempt that this lease is for. Undefined without one. */
export function attemptOf(lease: Attempted): Observation<AttemptReport> | undefined {
  return attempts.get(lease);
}

/** The registered instrumentations, called in order. Nothing is built or called when none listens. */
export class Instruments {
  readonly #all: Instrumentation[] = [];
  readonly #clock: Clock;
  readonly #guard: Guard;

  constructor(logger: Logger, clock: Clock) {
    this.#clock = clock;
    const log = new SampledLog(logger, clock);
    // No message: an observer that runs the handlers may throw a handler's error, which may quote the event.
    this.#guard = guardedBy((error) =>
      log.error(placeFields(error), "An instrumentation threw. The work it observes continued."),
    );
  }

  /** @throws SetupError for anything but an instrumentation */
  add(instrumentation: Instrumentation): void {
    if (typeof instrumentation !== "object" || instrumentation === null) {
      throw new SetupError("invalid_option", "receiver.instrument() takes an object with delivery, attempt or commit.");
    }
    for (const name of ["isListening", "delivery", "attempt", "commit"] as const) {
      functionOption(`instrument.${name}`, instrumentation[name]);
    }
    this.#all.push(instrumentation);
  }

  /** Begins to observe a delivery. Null when none listens. */
  delivery(): Observation<DeliveryReport> | null {
    if (!this.hears("delivery")) return null;
    return this.#observe((instrumentation) => instrumentation.delivery?.());
  }

  /** Begins to observe the attempt that `lease` is for. Null when none listens. */
  attempt(lease: Attempted): Observation<AttemptReport> | null {
    if (!this.hears("attempt")) return null;
    const info = infoOf(lease);
    const observation = this.#observe((instrumentation) => instrumentation.attempt?.(info));
    if (observation !== null) attempts.set(lease, observation);
    return observation;
  }

  /** `store.step(turn)`, timed and reported if an instrumentation listens to commits. */
  timedStep<Tx>(store: Pick<InboxStore<Tx>, "step">, turn: Turn<Tx>): Promise<TurnResult> {
    return this.hears("commit") ? this.#timed(store, turn) : store.step(turn);
  }

  async #timed<Tx>(store: Pick<InboxStore<Tx>, "step">, turn: Turn<Tx>): Promise<TurnResult> {
    const startedAt = this.#clock.monotonic();
    let result: TurnResult | null = null;
    try {
      result = await store.step(turn);
      return result;
    } finally {
      this.commit({
        ok: result !== null,
        accepts: turn.accepts.length,
        quarantines: turn.quarantines.length,
        settles: endsIn(turn, result),
        leases: result?.leases.length ?? 0,
        retired: result?.retired.length ?? 0,
        durationMs: this.#clock.monotonic() - startedAt,
      });
    }
  }

  commit(report: CommitReport): void {
    for (const one of this.#all) if (this.#isListening(one)) this.#guard(() => one.commit?.(report));
  }

  hears(what: "delivery" | "attempt" | "commit"): boolean {
    for (const one of this.#all) if (one[what] !== undefined && this.#isListening(one)) return true;
    return false;
  }

  /** One whose `isListening` throws does not listen. */
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

/** Calls the function, and keeps its errors from the observed work. */
type Guard = (call: () => unknown) => void;

/** What is reported of an attempt when it begins. */
type Attempted = Pick<
  Lease,
  | "event"
  | "key"
  | "ownId"
  | "sequence"
  | "eventType"
  | "attempt"
  | "late"
  | "forced"
  | "missing"
  | "trace"
  | "acceptedAt"
>;

/** One delivery or attempt, with its observers. */
export class Observation<Report> {
  readonly #observers: readonly Observer<Report>[];
  readonly #guard: Guard;

  constructor(observers: readonly Observer<Report>[], guard: Guard) {
    this.#observers = observers;
    this.#guard = guard;
  }

  /** Runs `work` once, whatever the observers do, and returns its result or throws its error. */
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

/** The event of a lease, for hooks and logs. */
export function noticeOf({
  event: eventId,
  key: lane,
  ownId: id,
  sequence,
  eventType,
}: Pick<Lease, "event" | "key" | "ownId" | "sequence" | "eventType">): EventNotice {
  return { eventId, lane, id, sequence, eventType };
}

function infoOf(lease: Attempted): AttemptInfo {
  const { attempt, late, forced, missing, trace, acceptedAt } = lease;
  return {
    ...noticeOf(lease),
    ...{ attempt, missing, acceptedAt },
    late,
    replay: forced,
    traceparent: trace,
  };
}

/** An unfinished settle, or one whose effect failed, comes again in a later transaction and is counted there. */
function endsIn<Tx>({ settles }: Turn<Tx>, result: TurnResult | null): number {
  if (result === null) return settles.length;
  return result.settled.filter(({ status }) => status === "settled" || status === "lost").length;
}

/** The message of `tracing:oncehook.delivery`: empty until the delivery is answered, filled for `asyncStart` and `asyncEnd`. */
export interface DeliveryMessage extends Partial<DeliveryReport> {}

/** The message of `tracing:oncehook.handler`: the attempt's end is added for `error`, `asyncStart` and `asyncEnd`. */
export interface HandlerMessage extends AttemptInfo, Partial<AttemptReport> {}

type Channel<Message extends object> = TracingChannel<unknown, Message>;

const deliveries: Channel<DeliveryMessage> = tracingChannel("oncehook.delivery");
const handlers: Channel<HandlerMessage> = tracingChannel("oncehook.handler");

/**
 * Reports deliveries and attempts on `node:diagnostics_channel`, as tracing channels: `tracing:oncehook.delivery:start` and so on. Nothing
 * is built without a subscriber.
 */
export const channelInstrumentation: Instrumentation = {
  isListening: () => deliveries.hasSubscribers || handlers.hasSubscribers,
  delivery: () =>
    deliveries.hasSubscribers ? new Traced(deliveries, {}, ({ outcome }) => outcome === "failed") : undefined,
  attempt: (info) => (handlers.hasSubscribers ? new Traced(handlers, { ...info }, isFailedAttempt) : undefined),
};

function isFailedAttempt({ ending, errorCode }: AttemptReport): boolean {
  return errorCode !== null || ending === "lost";
}

/** One message, published on the five channels of a tracing channel. */
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

  /** An attempt without handlers did not start. */
  ended(report: Report): void {
    if (!this.#hasStarted) return;
    Object.assign(this.#message, report);
    if (this.#isFailure(report)) this.#channel.error.publish(this.#message);
    this.#channel.asyncStart.publish(this.#message);
    this.#channel.asyncEnd.publish(this.#message);
  }
}

const ACCEPTED = {
  accepted: "Event accepted.",
  late: "Event accepted late, below its message's cursor.",
  duplicate: "Event was accepted before, so it is not handled again.",
  filtered: "Event was filtered, so it is not handled.",
} as const;

/** Logs each accepted and each handled event at level info, for development. */
export class EventLog implements Instrumentation {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** @param eventId - undefined for a filtered event that no lane keeps */
  accepted(
    { lane, ownId, sequence, eventType }: NewEvent,
    eventId: EventId | undefined,
    outcome: Exclude<Acceptance["outcome"], "failed">,
  ): void {
    this.#logger.info(logFieldsOf({ eventId, lane, id: ownId ?? null, sequence, eventType }), ACCEPTED[outcome]);
  }

  attempt(info: AttemptInfo): Observer<{ readonly ending: AttemptEnding; readonly durationMs: number }> {
    return {
      ended: ({ ending, durationMs }) => {
        if (ending === "handled")
          this.#logger.info(logFieldsOf(info), `Event handled in ${Math.max(0, Math.round(durationMs))} ms.`);
        if (ending === "unhandled") this.#logger.info(logFieldsOf(info), "Event has no handler. It is done.");
      },
    };
  }
}
