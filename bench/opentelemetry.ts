/** OpenTelemetry as an application has it, but that what it collects goes nowhere. */
import * as api from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor, type SpanExporter } from "@opentelemetry/sdk-trace-base";
import type { Receiver } from "../src/index.ts";
import { openTelemetry } from "../src/tools/telemetry/index.ts";

type Done = (result: { code: number }) => void;

const nowhere = {
  export: (_: unknown, done: Done) => done({ code: 0 }),
  shutdown: async () => {},
  forceFlush: async () => {},
  selectAggregationTemporality: () => AggregationTemporality.CUMULATIVE,
} satisfies SpanExporter & PushMetricExporter;

let spans = 0;
const counted: SpanExporter = {
  ...nowhere,
  export(batch, done) {
    spans += batch.length;
    done({ code: 0 });
  },
};

/** How many spans were exported: none would mean that nothing was measured. */
export function exportedSpans(): number {
  return spans;
}

/** Watches `receiver` with the SDK's batches and its periodic reader. */
export function trace<Tx>(receiver: Receiver<Tx>): void {
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const tracers = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(counted)] });
  const reader = new PeriodicExportingMetricReader({ exporter: nowhere, exportIntervalMillis: 5_000 });
  const meters = new MeterProvider({ readers: [reader] });
  openTelemetry(receiver, api, { tracer: tracers.getTracer("bench"), meter: meters.getMeter("bench") });
}
