/** Turns what a receiver tells into measurements: the same for OpenTelemetry and for Prometheus. */
import { isKnownEventType } from "../events/types.ts";
import type {
  AttemptEnding,
  AttemptInfo,
  AttemptReport,
  CommitReport,
  DeliveryOutcome,
  DeliveryReport,
  Instrumentation,
  Observer,
} from "../inbox/instrumentation.ts";
import type { BoundedLabel } from "./bounded.ts";
import { ATTRIBUTES, type CounterKey, type HistogramKey, METRICS, metricsOf, OTHER, PROCESS } from "./names.ts";

/** Low in number, all of them: reasons, outcomes, event types. */
export type Labels = Readonly<Record<string, string>>;

/** Where measurements go. */
export interface Meters {
  count(counter: CounterKey, labels: Labels, by?: number): void;
  record(histogram: HistogramKey, value: number, labels: Labels): void;
}

/** What measurements of one receiver need. */
export interface Measures {
  readonly meters: Meters;
  /** What handlers throw. */
  readonly errors: BoundedLabel;
  /** Why deliveries are refused or fail: also what stores throw. */
  readonly reasons: BoundedLabel;
}

const NONE: Labels = {};
/** The others always have a reason. */
const WITHOUT_REASON: Readonly<Record<Exclude<DeliveryOutcome, "quarantined" | "refused" | "failed">, true>> = {
  accepted: true,
  duplicate: true,
  conflict: true,
  late: true,
  handled: true,
  dead: true,
};
const ENDINGS: Readonly<Record<AttemptEnding, true>> = {
  handled: true,
  unhandled: true,
  retry: true,
  dead: true,
  put_back: true,
  lost: true,
};
const SLOTS = ["current", "previous", "next"] as const;

/** An event type as spans and metrics name it. */
export function typeLabel(eventType: string): string {
  return isKnownEventType(eventType) ? eventType : OTHER;
}

/** The error of an attempt; null for one that went well. */
export function errorLabel({ ending, errorCode }: AttemptReport): string | null {
  return ending === "lost" ? "lease_lost" : errorCode;
}

/** Series that an alert looks for must be there before their first increase, or it does not show. */
export function startAtZero({ meters }: Measures): void {
  for (const key of metricsOf("counter")) if (METRICS[key].attributes.length === 0) meters.count(key, NONE, 0);
  for (const outcome of keysOf(WITHOUT_REASON)) meters.count("deliveries", { [ATTRIBUTES.outcome]: outcome }, 0);
  for (const ending of keysOf(ENDINGS)) meters.count("attempts", { [ATTRIBUTES.ending]: ending }, 0);
  for (const slot of SLOTS) meters.count("secretUses", { [ATTRIBUTES.slot]: slot }, 0);
}

export function measuring(measures: Measures, system: string): Instrumentation {
  return {
    delivery: () => ({ ended: (report) => measureDelivery(measures, report) }),
    attempt: (info) => new MeasuredAttempt(measures, info, system),
    commit: (report) => measureCommit(measures.meters, report),
  };
}

function measureDelivery({ meters, reasons }: Measures, report: DeliveryReport): void {
  const { outcome, slot, late, status, durationMs } = report;
  const reason = report.reason === null ? null : reasons.of(report.reason);
  const labels = { [ATTRIBUTES.outcome]: outcome };
  meters.count("deliveries", reason === null ? labels : { ...labels, [ATTRIBUTES.reason]: reason });
  meters.record("deliveryDuration", durationMs / 1000, labels);
  if (status === 401 && reason !== null) meters.count("signatureFailures", { [ATTRIBUTES.reason]: reason });
  if (slot !== null) meters.count("secretUses", { [ATTRIBUTES.slot]: slot });
  if (late) meters.count("late", NONE);
}

class MeasuredAttempt implements Observer<AttemptReport> {
  readonly #measures: Measures;
  readonly #info: AttemptInfo;
  readonly #system: string;
  #isCalled = false;

  constructor(measures: Measures, info: AttemptInfo, system: string) {
    this.#measures = measures;
    this.#info = info;
    this.#system = system;
  }

  /** Only where there are handlers to call. */
  run(work: () => void): void {
    this.#isCalled = true;
    work();
  }

  ended(report: AttemptReport): void {
    const { meters } = this.#measures;
    meters.count("attempts", { [ATTRIBUTES.ending]: report.ending });
    if (report.ending === "dead") meters.count("dead", NONE);
    if (this.#isFirstPastGap(report)) meters.count("gaps", NONE);
    if (this.#isCalled) this.#consumed(report);
  }

  /** A failed probe gives its attempt back, and a replay begins again at 1: neither gives the gap up anew. */
  #isFirstPastGap({ ending }: AttemptReport): boolean {
    const { missing, attempt, replay } = this.#info;
    return missing !== null && attempt === 1 && !replay && ending !== "put_back";
  }

  #consumed(report: AttemptReport): void {
    const { meters, errors } = this.#measures;
    const error = errorLabel(report);
    const labels = {
      [ATTRIBUTES.system]: this.#system,
      [ATTRIBUTES.operationName]: PROCESS,
      [ATTRIBUTES.destination]: typeLabel(this.#info.eventType),
      ...(error !== null && { [ATTRIBUTES.errorType]: errors.of(error) }),
    };
    meters.count("consumed", labels);
    meters.record("processDuration", report.durationMs / 1000, labels);
  }
}

function measureCommit(meters: Meters, report: CommitReport): void {
  if (!report.ok) return meters.count("commitFailures", NONE);
  if (report.retired > 0) meters.count("dead", NONE, report.retired);
  const size = report.accepts + report.quarantines + report.settles;
  if (size > 0) meters.record("commitSize", size, NONE);
  // A turn that wrote nothing only looked for work.
  if (size + report.leases + report.retired > 0) meters.record("commitDuration", report.durationMs / 1000, NONE);
}

function keysOf<Key extends string>(record: Readonly<Record<Key, true>>): Key[] {
  return Object.keys(record) as Key[];
}
