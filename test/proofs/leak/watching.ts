/** Listens to one receiver in every way there is: its log, OpenTelemetry, Prometheus, the channels and standard error. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import * as api from "@opentelemetry/api";
import { MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import promClient from "prom-client";
import type { Logger, Receiver } from "../../../src/index.ts";
import { openTelemetry, prometheusMetrics } from "../../../src/tools/telemetry/index.ts";
import type { Ears } from "./ears.ts";

const CHANNELS = ["delivery", "handler"].flatMap((name) =>
  ["start", "end", "asyncStart", "asyncEnd", "error"].map((stage) => `tracing:oncehook.${name}:${stage}`),
);

class Reader extends MetricReader {
  protected override async onForceFlush() {}
  protected override async onShutdown() {}
}

/** A logger whose lines are heard as a JSON logger would write them. */
export function heardLogger(ears: Ears, bound: object = {}): Logger {
  const line = (level: string) => (fields: object, message: string) =>
    ears.hear("log", JSON.stringify({ level, ...bound, ...fields, message }));
  return {
    ...{ debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
    child: (fields) => heardLogger(ears, { ...bound, ...fields }),
  };
}

/** Hears what any receiver publishes on its channels, and what is written to standard error, until the returned function is called. */
export function hearProcess(ears: Ears): () => void {
  const hear = (message: unknown, name: string | symbol) => ears.hear("channel", { name, message });
  for (const name of CHANNELS) subscribe(name, hear);
  const { write } = process.stderr;
  process.stderr.write = ((chunk: string | Uint8Array) => {
    ears.hear("stderr", Buffer.from(chunk as Uint8Array).toString());
    return true;
  }) as typeof process.stderr.write;
  return () => {
    process.stderr.write = write;
    for (const name of CHANNELS) unsubscribe(name, hear);
  };
}

export interface Telemetry {
  readonly tracer: api.Tracer;
  readonly meter: api.Meter;
  readonly register: promClient.Registry;
  /** Collects the metrics as they are now, and hears them. */
  collect(): Promise<void>;
}

export function hearTelemetry(ears: Ears): Telemetry {
  const exporter = {
    export: (spans: ReadableSpan[], done: (result: { code: number }) => void) => {
      for (const { name, attributes, links, events, status } of spans) {
        ears.hear("trace", { name, attributes, links, events, status });
      }
      done({ code: 0 });
    },
    shutdown: async () => {},
  };
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const reader = new Reader();
  const meter = new MeterProvider({ readers: [reader] }).getMeter("leak");
  const register = new promClient.Registry();
  return {
    tracer: tracers.getTracer("leak"),
    ...{ meter, register },
    async collect() {
      ears.hear("metric", (await reader.collect()).resourceMetrics.scopeMetrics);
      ears.hear("scrape", await register.metrics());
    },
  };
}

/** Everything at once, as a careful application might have it. */
export function watchReceiver<Tx>(receiver: Receiver<Tx>, { tracer, meter, register }: Telemetry): void {
  openTelemetry(receiver, api, { tracer, meter });
  prometheusMetrics(receiver, promClient, { register });
}
