/** The metrics, registered with prom-client, which is declared by the little that is used of it. */
import { invalidOption, refuseUnknownOptions, textOption } from "../../internal/options.ts";
import { type Gauges, type GaugeValues, type Instrumentable, LastingMetrics, type Meters } from "./measuring.ts";
import { DEFAULT_SYSTEM, METRICS, type Metric, metricsOf } from "./names.ts";

interface MetricOptions {
  name: string;
  help: string;
  labelNames: string[];
  /** None: it is registered afterwards. */
  registers: never[];
}

interface GaugeOptions extends MetricOptions {
  /** Called at each scrape. */
  collect: () => Promise<void>;
}

/** Where metrics are registered: a `Registry` of prom-client. */
export interface PrometheusRegistry {
  registerMetric(metric: unknown): void;
}

/** What is used of prom-client 15. */
export interface PrometheusClient {
  readonly Counter: new (options: MetricOptions) => { inc(labels: Record<string, string>, by: number): void };
  readonly Histogram: new (
    options: MetricOptions & { buckets: number[] },
  ) => { observe(labels: Record<string, string>, value: number): void };
  readonly Gauge: new (options: GaugeOptions) => { set(value: number): void };
  readonly register: PrometheusRegistry;
}

export interface PrometheusOptions {
  /** Default: prom-client's global registry. A receiver of another name or store needs one of its own. */
  readonly register?: PrometheusRegistry;
  /** The label `messaging_system_name`. Default `"messaging_service"`. */
  readonly system?: string;
}

/**
 * Registers the metrics of docs/telemetry.md. Names and labels are those that OpenTelemetry's exporter for Prometheus gives the
 * same metrics, so that a dashboard serves both. Call it once for a receiver, before `receiver.start()`. A receiver of the same name
 * and store as one before it, as after a reload in development, counts on.
 *
 * @param receiver - a receiver of `oncehook`
 * @param client - `import promClient from "prom-client"`
 * @throws SetupError `invalid_option` for what is not prom-client, and for an unknown option
 * @throws what prom-client throws, when the registry has the metrics of a receiver with another name or store
 * @example
 * import promClient from "prom-client";
 * import { prometheusMetrics } from "oncehook/telemetry";
 *
 * prometheusMetrics(receiver, promClient);
 */
export function prometheusMetrics(
  receiver: Instrumentable,
  client: PrometheusClient,
  options: PrometheusOptions = {},
): void {
  if (typeof client?.Counter !== "function" || typeof client.Histogram !== "function") {
    throw invalidOption("client", 'must be prom-client: import promClient from "prom-client"', client);
  }
  refuseUnknownOptions("prometheusMetrics()", options, ["register", "system"]);
  const system = textOption("system", options.system) ?? DEFAULT_SYSTEM;
  const register = options.register ?? client.register;
  lastingMetrics.measure(receiver, {
    place: register,
    system,
    make: (gauges) => metersOf(client, gauges),
    // A registry takes what it has already, and refuses another receiver's.
    register: ({ all }) => {
      for (const metric of all) register.registerMetric(metric);
    },
  });
}

interface PrometheusMeters extends Meters {
  /** To be registered. */
  readonly all: readonly unknown[];
}

const lastingMetrics = new LastingMetrics<PrometheusRegistry, PrometheusMeters>();

function metersOf(client: PrometheusClient, gauges: Gauges): PrometheusMeters {
  const counters = new Map(metricsOf("counter").map((key) => [key, new client.Counter(described(METRICS[key]))]));
  const histograms = new Map(
    metricsOf("histogram").map((key) => {
      const buckets = [...METRICS[key].buckets];
      return [key, new client.Histogram({ ...described(METRICS[key]), buckets })];
    }),
  );
  return {
    count: (key, labels, by = 1) => counters.get(key)?.inc(named(labels), by),
    record: (key, value, labels) => histograms.get(key)?.observe(named(labels), value),
    all: [...counters.values(), ...histograms.values(), ...gaugesOf(client, gauges)],
  };
}

function gaugesOf(client: PrometheusClient, gauges: Gauges): unknown[] {
  return metricsOf("gauge").map((key) => {
    const collect = async () => {
      const values: GaugeValues | null = await gauges.read();
      // "Not a number" is Prometheus's way to say that it is not known.
      gauge.set(values === null ? Number.NaN : values[key]);
    };
    const gauge = new client.Gauge({ ...described(METRICS[key]), collect });
    return gauge;
  });
}

function described(metric: Metric): MetricOptions {
  const labelNames = metric.attributes.map(prometheusLabel);
  return { name: prometheusName(metric), help: metric.description, labelNames, registers: [] };
}

/** `messaging.process.duration` in seconds is `messaging_process_duration_seconds`; a counter ends with `_total`. */
export function prometheusName({ name, kind, unit }: Metric): string {
  const base = name.replaceAll(".", "_");
  return `${base}${unit === "s" ? "_seconds" : ""}${kind === "counter" ? "_total" : ""}`;
}

export function prometheusLabel(attribute: string): string {
  return attribute.replaceAll(".", "_");
}

function named(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [prometheusLabel(name), value]));
}
