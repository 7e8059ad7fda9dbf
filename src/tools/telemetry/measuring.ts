/** Turns what a receiver tells into measurements: the same for OpenTelemetry and for Prometheus. */

import type {
  AttemptEnding,
  AttemptInfo,
  AttemptReport,
  CommitReport,
  DeliveryOutcome,
  DeliveryReport,
  Instrumentation,
  Observer,
} from "../../inbox/instrumentation.ts";
import { shownText } from "../../inbox/masking.ts";
import type { InboxStats } from "../../inbox/record.ts";
import type { Clock } from "../../internal/clock.ts";
import {
  ATTRIBUTES,
  BoundedLabel,
  type CounterKey,
  type GaugeKey,
  type HistogramKey,
  METRICS,
  metricsOf,
  OTHER,
  PROCESS,
} from "./names.ts";

/** Low in number, all of them: reasons, outcomes, event types. */
type Labels = Readonly<Record<string, string>>;

/** Where measurements go. */
export interface Meters {
  count(counter: CounterKey, labels: Labels, by?: number): void;
  record(histogram: HistogramKey, value: number, labels: Labels): void;
}

/** What measurements of one receiver need. */
interface Measures {
  readonly meters: Meters;
  /** What handlers throw. */
  readonly errors: BoundedLabel;
  /** Why deliveries are refused or fail: also what stores throw. */
  readonly reasons: BoundedLabel;
  readonly types: TypeLabels;
}

const NONE: Labels = {};
/** The others always have a reason, or only some sources have them. */
const WITHOUT_REASON: Readonly<
  Record<Exclude<DeliveryOutcome, "quarantined" | "refused" | "failed" | "handshake">, true>
> = {
  accepted: true,
  duplicate: true,
  conflict: true,
  late: true,
  filtered: true,
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

/** Event types as spans and metrics name them: they come from outside, so there are at most 50 of each source. */
export class TypeLabels {
  readonly #bySource = new Map<string, BoundedLabel>();

  of({ lane: { source }, eventType }: Pick<AttemptInfo, "lane" | "eventType">): string {
    // Somebody may have written a phone number or a sentence there.
    if (shownText(eventType) !== eventType) return OTHER;
    let types = this.#bySource.get(source);
    if (types === undefined) {
      types = new BoundedLabel();
      this.#bySource.set(source, types);
    }
    return types.of(eventType);
  }
}

/** The error of an attempt; null for one that went well. */
export function errorLabel({ ending, errorCode }: AttemptReport): string | null {
  return ending === "lost" ? "lease_lost" : errorCode;
}

/** Series that an alert looks for must be there before their first increase, or it does not show. */
function startAtZero({ meters }: Measures, sources: readonly string[]): void {
  for (const key of metricsOf("counter")) if (METRICS[key].attributes.length === 0) meters.count(key, NONE, 0);
  for (const ending of keysOf(ENDINGS)) meters.count("attempts", { [ATTRIBUTES.ending]: ending }, 0);
  for (const source of sources) {
    for (const outcome of keysOf(WITHOUT_REASON))
      meters.count("deliveries", { [ATTRIBUTES.outcome]: outcome, [ATTRIBUTES.source]: source }, 0);
    for (const slot of SLOTS) meters.count("secretUses", { [ATTRIBUTES.slot]: slot, [ATTRIBUTES.source]: source }, 0);
  }
}

function measuring(measures: Measures, system: string): Instrumentation {
  return {
    delivery: () => ({ ended: (report) => measureDelivery(measures, report) }),
    attempt: (info) => new MeasuredAttempt(measures, info, system),
    commit: (report) => measureCommit(measures.meters, report),
  };
}

function measureDelivery({ meters, reasons }: Measures, report: DeliveryReport): void {
  const { outcome, slot, late, status, durationMs } = report;
  const source = { [ATTRIBUTES.source]: report.source };
  const reason = report.reason === null ? null : reasons.of(report.reason);
  const labels = { [ATTRIBUTES.outcome]: outcome };
  meters.count("deliveries", { ...labels, ...(reason !== null && { [ATTRIBUTES.reason]: reason }), ...source });
  meters.record("deliveryDuration", durationMs / 1000, labels);
  if (status === 401 && reason !== null) meters.count("signatureFailures", { [ATTRIBUTES.reason]: reason });
  if (slot !== null) meters.count("secretUses", { [ATTRIBUTES.slot]: slot, ...source });
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
    const { meters, errors, types } = this.#measures;
    const error = errorLabel(report);
    const labels = {
      [ATTRIBUTES.system]: this.#system,
      [ATTRIBUTES.operationName]: PROCESS,
      [ATTRIBUTES.destination]: types.of(this.#info),
      ...(error !== null && { [ATTRIBUTES.errorType]: errors.of(error) }),
      [ATTRIBUTES.source]: this.#info.lane.source,
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

// What an inbox holds now, read as often as somebody asks but not oftener than every few seconds.

/** A reader that scrapes oftener gets the same figures again. */
const FRESH_MS = 5_000;
/** How long somebody waits for an inbox that hangs; it is not asked again until it has answered. */
const PATIENCE_MS = 2_000;

/** What of a receiver is watched. */
export interface Instrumentable {
  instrument(instrumentation: Instrumentation): unknown;
  /** The names of its entries. */
  readonly sources: readonly string[];
  /** Its name and its inbox: a receiver of the same key counts on where another ended. */
  readonly key: string;
  readonly clock: Clock;
  readonly inbox: { stats(): Promise<InboxStats> };
}

export type GaugeValues = Readonly<Record<GaugeKey, number>>;

export class Gauges {
  #source: Instrumentable | null = null;
  #inFlight: Promise<GaugeValues | null> | null = null;
  #answer: Promise<GaugeValues | null> = Promise.resolve(null);
  #readAt = Number.NEGATIVE_INFINITY;

  /** From now on those of `source`; false when they are already. */
  follow(source: Instrumentable): boolean {
    if (this.#source === source) return false;
    this.#source = source;
    this.#inFlight = null;
    this.#readAt = Number.NEGATIVE_INFINITY;
    return true;
  }

  /** Null when the inbox does not answer. */
  read(): Promise<GaugeValues | null> {
    if (this.#source !== null && this.#inFlight === null) this.#readUnlessFresh(this.#source);
    return this.#answer;
  }

  #readUnlessFresh(source: Instrumentable): void {
    const now = source.clock.monotonic();
    if (now - this.#readAt < FRESH_MS) return;
    this.#readAt = now;
    const reading = valuesOf(source).catch(() => null);
    this.#inFlight = reading;
    this.#answer = new Promise((resolve) => {
      const timer = source.clock.setTimeout(() => resolve(null), PATIENCE_MS);
      void reading.then((values) => {
        timer.cancel();
        if (this.#inFlight === reading) this.#inFlight = null;
        resolve(values);
      });
    });
  }
}

async function valuesOf({ inbox, clock }: Instrumentable): Promise<GaugeValues> {
  const { gauges, oldestPendingAt } = await inbox.stats();
  const { pending, dead, quarantined, blockedLanes } = gauges;
  const waitedMs = oldestPendingAt === null ? 0 : Math.max(0, clock.now() - oldestPendingAt);
  return { backlog: pending, oldest: waitedMs / 1000, deadLetters: dead, quarantined, blocked: blockedLanes };
}

// Metrics outlast the receiver that they were made for: after a reload in development the next one on its inbox counts on.

interface Lasting<Made extends Meters> extends Measures {
  readonly meters: Made;
  readonly gauges: Gauges;
}

interface Measured<Place, Made extends Meters> {
  /** A meter or a registry. */
  readonly place: Place;
  readonly system: string;
  make(gauges: Gauges): Made;
  /** Called before anything is measured, also for what was made before. */
  register?(meters: Made): void;
}

/** Metrics by their place, and by the name and inbox of the receivers that they are of. */
export class LastingMetrics<Place extends object, Made extends Meters> {
  readonly #made = new WeakMap<Place, Map<string, Lasting<Made>>>();

  /** Measures `receiver` with its existing instruments, or with new ones. */
  measure(receiver: Instrumentable, { place, system, make, register }: Measured<Place, Made>): void {
    const made = this.#made.get(place) ?? new Map<string, Lasting<Made>>();
    const lasting = made.get(receiver.key) ?? madeBy(make);
    register?.(lasting.meters);
    startAtZero(lasting, receiver.sources);
    this.#made.set(place, made.set(receiver.key, lasting));
    // Called twice for one receiver, it must not count twice.
    if (lasting.gauges.follow(receiver)) receiver.instrument(measuring(lasting, system));
  }
}

function madeBy<Made extends Meters>(make: (gauges: Gauges) => Made): Lasting<Made> {
  const gauges = new Gauges();
  return {
    gauges,
    meters: make(gauges),
    errors: new BoundedLabel(),
    reasons: new BoundedLabel(),
    types: new TypeLabels(),
  };
}

// Counts by label, to be read whenever somebody collects: a count costs a look into a map, and no call of a metrics library.

interface Count {
  readonly labels: Labels;
  value: number;
}

export class RunningTotals {
  readonly #counts = new Map<string, Count>();

  add(labels: Labels, by: number): void {
    let key = "";
    // One counter's labels always come in the same order. With its length no value, which may come from outside, is taken for two.
    for (const name in labels) key += `${name} ${labels[name]?.length} ${labels[name]}`;
    const count = this.#counts.get(key);
    if (count === undefined) this.#counts.set(key, { labels, value: by });
    else count.value += by;
  }

  /** What was counted since the beginning. */
  counts(): Iterable<Readonly<Count>> {
    return this.#counts.values();
  }
}
