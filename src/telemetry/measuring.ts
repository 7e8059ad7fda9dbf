/** Turns what a receiver tells into measurements: the same for OpenTelemetry and for Prometheus. */
import { isKnownEventType } from "../events/types.ts";
import type {
  AttemptInfo,
  AttemptReport,
  CommitReport,
  DeliveryReport,
  Instrumentation,
} from "../inbox/instrumentation.ts";
import { ATTRIBUTES, type CounterKey, type HistogramKey, OTHER_TYPE, PROCESS } from "./names.ts";

/** Low in number, all of them: reasons, outcomes, event types. */
export type Labels = Readonly<Record<string, string>>;

/** Where measurements go. */
export interface Meters {
  count(counter: CounterKey, labels: Labels, by?: number): void;
  record(histogram: HistogramKey, value: number, labels: Labels): void;
}

const NONE: Labels = {};

/** An event type as spans and metrics name it. */
export function typeLabel(eventType: string): string {
  return isKnownEventType(eventType) ? eventType : OTHER_TYPE;
}

/** The error of an attempt; null for one that went well. */
export function errorLabel({ ending, errorCode }: AttemptReport): string | null {
  return ending === "lost" ? "lease_lost" : errorCode;
}

export function measuring(meters: Meters, system: string): Instrumentation {
  return {
    delivery: () => ({ ended: (report) => measureDelivery(meters, report) }),
    attempt(info) {
      if (info.missing !== null && info.attempt === 1) meters.count("gaps", NONE);
      return { ended: (report) => measureAttempt(meters, { info, report, system }) };
    },
    commit: (report) => measureCommit(meters, report),
  };
}

function measureDelivery(meters: Meters, { outcome, reason, slot, late, status, durationMs }: DeliveryReport): void {
  const labels = { [ATTRIBUTES.outcome]: outcome };
  meters.count("deliveries", reason === null ? labels : { ...labels, [ATTRIBUTES.reason]: reason });
  meters.record("deliveryDuration", durationMs / 1000, labels);
  if (status === 401 && reason !== null) meters.count("signatureFailures", { [ATTRIBUTES.reason]: reason });
  if (slot !== null) meters.count("secretUses", { [ATTRIBUTES.slot]: slot });
  if (late) meters.count("late", NONE);
}

function measureAttempt(
  meters: Meters,
  { info, report, system }: { info: AttemptInfo; report: AttemptReport; system: string },
): void {
  meters.count("attempts", { [ATTRIBUTES.ending]: report.ending });
  if (report.ending === "dead") meters.count("dead", NONE);
  if (report.ending === "unhandled") return;
  const error = errorLabel(report);
  const labels = {
    [ATTRIBUTES.system]: system,
    [ATTRIBUTES.operationName]: PROCESS,
    [ATTRIBUTES.destination]: typeLabel(info.eventType),
    ...(error !== null && { [ATTRIBUTES.errorType]: error }),
  };
  meters.count("consumed", labels);
  meters.record("processDuration", report.durationMs / 1000, labels);
}

function measureCommit(meters: Meters, report: CommitReport): void {
  if (!report.ok) return meters.count("commitFailures", NONE);
  if (report.retired > 0) meters.count("dead", NONE, report.retired);
  const size = report.accepts + report.quarantines + report.settles;
  // A turn that wrote nothing only looked for work.
  if (size === 0) return;
  meters.record("commitSize", size, NONE);
  meters.record("commitDuration", report.durationMs / 1000, NONE);
}
