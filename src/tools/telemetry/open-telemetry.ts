/** Spans and metrics by OpenTelemetry's API. Its types are all that is imported: the application hands in the API it uses. */
import type * as Api from "@opentelemetry/api";
import type { AttemptInfo, AttemptReport, Observer } from "../../inbox/instrumentation.ts";
import { publicId } from "../../inbox/lane-key.ts";
import { invalidOption, refuseUnknownOptions, textOption } from "../../internal/options.ts";
import {
  errorLabel,
  type Gauges,
  type Instrumentable,
  LastingMetrics,
  type Meters,
  RunningTotals,
  TypeLabels,
} from "./measuring.ts";
import { ATTRIBUTES, DEFAULT_SYSTEM, type GaugeKey, METRICS, type Metric, metricsOf, PROCESS, SCOPE } from "./names.ts";

/** What is used of `@opentelemetry/api` 1.9. */
export type OpenTelemetryApi = Pick<
  typeof Api,
  "context" | "metrics" | "ROOT_CONTEXT" | "SpanKind" | "SpanStatusCode" | "trace"
>;

export interface OpenTelemetryOptions {
  /** Default: the one that the API's global provider gives. */
  readonly tracer?: Api.Tracer;
  /** Default: the one that the API's global provider gives. A receiver of another name or store needs one of another name. */
  readonly meter?: Api.Meter;
  /** The attribute `messaging.system.name`. Default `"messaging_service"`. */
  readonly system?: string;
}

/**
 * Makes a span of each attempt of an event, linked to the `traceparent` of its delivery, and the metrics of docs/telemetry.md.
 * What handlers do is within the span. Call it once for a receiver, after the OpenTelemetry SDK was started and before
 * `receiver.start()`. A receiver of the same name and store as one before it, as after a reload in development, counts on.
 *
 * @param receiver - a receiver of `oncehook`
 * @param api - `import * as api from "@opentelemetry/api"`
 * @throws SetupError `invalid_option` for what is not the API, and for an unknown option
 * @example
 * import * as api from "@opentelemetry/api";
 * import { openTelemetry } from "oncehook/telemetry";
 *
 * openTelemetry(receiver, api);
 */
export function openTelemetry(
  receiver: Instrumentable,
  api: OpenTelemetryApi,
  options: OpenTelemetryOptions = {},
): void {
  if (typeof api?.trace?.getTracer !== "function" || typeof api.metrics?.getMeter !== "function") {
    throw invalidOption("api", 'must be OpenTelemetry\'s API: import * as api from "@opentelemetry/api"', api);
  }
  refuseUnknownOptions("openTelemetry()", options, ["tracer", "meter", "system"]);
  const system = textOption("system", options.system) ?? DEFAULT_SYSTEM;
  const tracer = options.tracer ?? api.trace.getTracer(SCOPE);
  const meter = options.meter ?? api.metrics.getMeter(SCOPE);
  lastingMetrics.measure(receiver, { place: meter, system, make: (gauges) => metersOf(meter, gauges) });
  const types = new TypeLabels();
  receiver.instrument({ attempt: (info) => new AttemptSpan({ api, tracer, system, types }, info) });
}

/** A second set of them on one meter would contradict the first. */
const lastingMetrics = new LastingMetrics<Api.Meter, Meters>();

function metersOf(meter: Api.Meter, gauges: Gauges): Meters {
  observeGauges(meter, gauges);
  const counters = new Map(metricsOf("counter").map((key) => [key, countedBy(meter, METRICS[key])]));
  const histograms = new Map(
    metricsOf("histogram").map((key) => [key, meter.createHistogram(...described(METRICS[key]))]),
  );
  return {
    count: (key, labels, by = 1) => counters.get(key)?.add(labels, by),
    record: (key, value, labels) => histograms.get(key)?.record(value, labels),
  };
}

/** Counted here, and read when metrics are collected: a delivery is counted several times, and collected seldom. */
function countedBy(meter: Api.Meter, metric: Metric): RunningTotals {
  const tally = new RunningTotals();
  const counter = meter.createObservableCounter(...described(metric));
  counter.addCallback((result) => {
    for (const { labels, value } of tally.counts()) result.observe(value, labels);
  });
  return tally;
}

function observeGauges(meter: Api.Meter, gauges: Gauges): void {
  const observed = new Map<GaugeKey, Api.ObservableGauge>(
    metricsOf("gauge").map((key) => [key, meter.createObservableGauge(...described(METRICS[key]))]),
  );
  const observe = async (result: Api.BatchObservableResult) => {
    const values = await gauges.read();
    if (values === null) return;
    for (const [key, gauge] of observed) result.observe(gauge, values[key]);
  };
  meter.addBatchObservableCallback(observe, [...observed.values()]);
}

function described({ name, unit, description, buckets }: Metric): [string, Api.MetricOptions] {
  const advice = buckets === undefined ? {} : { advice: { explicitBucketBoundaries: [...buckets] } };
  return [name, { unit, description, ...advice }];
}

interface Tracing {
  readonly api: OpenTelemetryApi;
  readonly tracer: Api.Tracer;
  readonly system: string;
  readonly types: TypeLabels;
}

/** The span of one attempt. No child of what happened to be current: the delivery may be days old, and is linked. */
class AttemptSpan implements Observer<AttemptReport> {
  readonly #api: OpenTelemetryApi;
  readonly #span: Api.Span;

  constructor({ api, tracer, system, types }: Tracing, info: AttemptInfo) {
    this.#api = api;
    const type = types.of(info);
    this.#span = tracer.startSpan(
      `${PROCESS} ${type}`,
      { kind: api.SpanKind.CONSUMER, links: linksTo(info.traceparent), attributes: attributesOf(info, type, system) },
      api.ROOT_CONTEXT,
    );
  }

  run(work: () => void): void {
    const { context, trace, ROOT_CONTEXT } = this.#api;
    context.with(trace.setSpan(ROOT_CONTEXT, this.#span), work);
  }

  ended(report: AttemptReport): void {
    const error = errorLabel(report);
    this.#span.setAttribute(ATTRIBUTES.ending, report.ending);
    if (error !== null) {
      this.#span.setAttribute(ATTRIBUTES.errorType, error);
      this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: error });
    }
    this.#span.end();
  }
}

function attributesOf(info: AttemptInfo, type: string, system: string) {
  const { eventId, lane, id, sequence, attempt, late, replay } = info;
  const messageId = publicId(id ?? lane.name);
  const name = publicId(lane.name);
  return {
    [ATTRIBUTES.system]: system,
    [ATTRIBUTES.operationName]: PROCESS,
    [ATTRIBUTES.operationType]: PROCESS,
    [ATTRIBUTES.destination]: type,
    [ATTRIBUTES.source]: lane.source,
    ...(messageId !== null && { [ATTRIBUTES.messageId]: messageId }),
    ...(name !== null && { [ATTRIBUTES.lane]: name }),
    [ATTRIBUTES.eventId]: eventId,
    [ATTRIBUTES.sequence]: sequence,
    [ATTRIBUTES.attempt]: attempt,
    [ATTRIBUTES.late]: late,
    [ATTRIBUTES.replay]: replay,
  };
}

/** The inbox keeps only a strictly valid `traceparent` of version 00. */
function linksTo(traceparent: string | null): Api.Link[] {
  if (traceparent === null) return [];
  const [, traceId = "", spanId = "", flags = ""] = traceparent.split("-");
  return [{ context: { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true } }];
}
