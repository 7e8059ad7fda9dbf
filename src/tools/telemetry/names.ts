/**
 * Every span, metric and attribute by name. Those under `messaging.` and `error.` are OpenTelemetry's semantic conventions for
 * messaging; a metric's name in Prometheus follows from the one here as OpenTelemetry's own exporter makes it.
 */

export const ATTRIBUTES = {
  system: "messaging.system.name",
  operationName: "messaging.operation.name",
  operationType: "messaging.operation.type",
  /** The event type. */
  destination: "messaging.destination.name",
  /** The id that its source gives the event, or the name of its lane. */
  messageId: "messaging.message.id",
  errorType: "error.type",
  eventId: "oncehook.event.id",
  lane: "oncehook.lane",
  sequence: "oncehook.event.sequence",
  late: "oncehook.event.late",
  replay: "oncehook.event.replay",
  attempt: "oncehook.attempt.number",
  ending: "oncehook.attempt.ending",
  outcome: "oncehook.delivery.outcome",
  reason: "oncehook.delivery.reason",
  slot: "oncehook.secret.slot",
  /** The name of the entry. */
  source: "oncehook.source",
} as const;

/** What an attempt is called in spans and metrics: `process message.delivery`. */
export const PROCESS = "process";

/** In the place of event types and codes beyond the first 50, and of an event type that is not a plain word. */
export const OTHER = "_OTHER";

/** The messaging system, unless the application names it. */
export const DEFAULT_SYSTEM = "messaging_service";

/** The instrumentation scope. */
export const SCOPE = "oncehook";

export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "histogram" | "gauge";
  /** UCUM: `s`, or what is counted, as `{event}`. */
  readonly unit: string;
  readonly description: string;
  readonly attributes: readonly string[];
  /** Of a histogram. */
  readonly buckets?: readonly number[];
}

/** Seconds, for what should take milliseconds. */
const QUICK = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Seconds, as the conventions give them. */
const PROCESSING = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const SIZES = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

const { system, operationName, destination, errorType, ending, outcome, reason, slot, source } = ATTRIBUTES;

export const METRICS = {
  consumed: {
    name: "messaging.client.consumed.messages",
    kind: "counter",
    unit: "{message}",
    description: "Attempts of events that handlers were called for.",
    attributes: [system, operationName, destination, errorType, source],
  },
  processDuration: {
    name: "messaging.process.duration",
    kind: "histogram",
    unit: "s",
    description: "How long the handlers of an event took.",
    attributes: [system, operationName, destination, errorType, source],
    buckets: PROCESSING,
  },
  deliveries: {
    name: "oncehook.deliveries",
    kind: "counter",
    unit: "{delivery}",
    description: "Deliveries by how they were answered, and why.",
    attributes: [outcome, reason, source],
  },
  deliveryDuration: {
    name: "oncehook.delivery.duration",
    kind: "histogram",
    unit: "s",
    description: "From a delivery's headers to its answer.",
    attributes: [outcome],
    buckets: QUICK,
  },
  signatureFailures: {
    name: "oncehook.signature.failures",
    kind: "counter",
    unit: "{delivery}",
    description: "Deliveries answered with 401, by reason.",
    attributes: [reason],
  },
  secretUses: {
    name: "oncehook.secret.uses",
    kind: "counter",
    unit: "{delivery}",
    description: "Verified deliveries, by the slot of the secret that vouches for them.",
    attributes: [slot, source],
  },
  late: {
    name: "oncehook.events.late",
    kind: "counter",
    unit: "{event}",
    description: "Events that came below the cursor of their lane.",
    attributes: [],
  },
  gaps: {
    name: "oncehook.gaps.given_up",
    kind: "counter",
    unit: "{gap}",
    description: "Gaps in a message's sequence that were waited for in vain.",
    attributes: [],
  },
  attempts: {
    name: "oncehook.attempts",
    kind: "counter",
    unit: "{attempt}",
    description: "Attempts of events, by how they ended.",
    attributes: [ending],
  },
  dead: {
    name: "oncehook.events.dead",
    kind: "counter",
    unit: "{event}",
    description: "Events that became dead letters.",
    attributes: [],
  },
  commitSize: {
    name: "oncehook.commit.size",
    kind: "histogram",
    unit: "{write}",
    description: "Accepted events, quarantined bodies and ends of attempts in one write transaction.",
    attributes: [],
    buckets: SIZES,
  },
  commitDuration: {
    name: "oncehook.commit.duration",
    kind: "histogram",
    unit: "s",
    description: "How long a write transaction took, until it was durable; also one that only claims.",
    attributes: [],
    buckets: QUICK,
  },
  commitFailures: {
    name: "oncehook.commit.failures",
    kind: "counter",
    unit: "{commit}",
    description: "Write transactions that failed.",
    attributes: [],
  },
  backlog: {
    name: "oncehook.inbox.pending",
    kind: "gauge",
    unit: "{event}",
    description: "Events that wait for their handlers.",
    attributes: [],
  },
  oldest: {
    name: "oncehook.inbox.oldest_pending",
    kind: "gauge",
    unit: "s",
    description: "How long the oldest event has waited; 0 when none does.",
    attributes: [],
  },
  deadLetters: {
    name: "oncehook.inbox.dead",
    kind: "gauge",
    unit: "{event}",
    description: "Dead letters that nobody has acted on.",
    attributes: [],
  },
  quarantined: {
    name: "oncehook.inbox.quarantined",
    kind: "gauge",
    unit: "{body}",
    description: "Quarantined bodies that nobody has acted on.",
    attributes: [],
  },
  blocked: {
    name: "oncehook.inbox.blocked_lanes",
    kind: "gauge",
    unit: "{lane}",
    description: "Lanes that wait for an operator, behind a dead letter.",
    attributes: [],
  },
} as const satisfies Record<string, Metric>;

type Named<Kind extends Metric["kind"]> = {
  [Key in keyof typeof METRICS]: (typeof METRICS)[Key]["kind"] extends Kind ? Key : never;
}[keyof typeof METRICS];
export type CounterKey = Named<"counter">;
export type HistogramKey = Named<"histogram">;
export type GaugeKey = Named<"gauge">;

/** The keys of one kind. */
export function metricsOf<Kind extends Metric["kind"]>(kind: Kind): readonly Named<Kind>[] {
  return (Object.keys(METRICS) as (keyof typeof METRICS)[]).filter(
    (key) => METRICS[key].kind === kind,
  ) as Named<Kind>[];
}

// Keeps a label from having values without end: each makes another series.

const MOST_VALUES = 50;

export class BoundedLabel {
  readonly #known = new Set<string>();

  /** `value` itself when it is among the first 50. */
  of(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= MOST_VALUES) return OTHER;
    this.#known.add(value);
    return value;
  }
}
