/** Those who watch a receiver, told in order; where nobody listens, nothing is made and nothing is called. */
import { SetupError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { type Logger, SampledLog } from "../internal/logger.ts";
import { functionOption } from "../internal/options.ts";
import { placeFields } from "./failure.ts";
import type {
  AttemptInfo,
  AttemptReport,
  CommitReport,
  DeliveryReport,
  Instrumentation,
  Observer,
} from "./instrumentation.ts";
import type { Lease } from "./store.ts";

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
