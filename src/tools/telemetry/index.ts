/** `oncehook/telemetry`: what a receiver does, as OpenTelemetry spans and metrics, and as Prometheus metrics. */
export type { Instrumentable } from "./measuring.ts";
export {
  type OpenTelemetryApi,
  type OpenTelemetryOptions,
  openTelemetry,
} from "./open-telemetry.ts";
export {
  type PrometheusClient,
  type PrometheusOptions,
  type PrometheusRegistry,
  prometheusMetrics,
} from "./prometheus.ts";
