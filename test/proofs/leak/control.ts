/** The control: a leak that is planted in each way out must be found there, or finding none would mean nothing. */
import { channel } from "node:diagnostics_channel";
import promClient from "prom-client";
import { Ears, SOURCES, type Source } from "./ears.ts";
import { MARKS, pick } from "./marks.ts";
import { heardLogger, hearProcess, hearTelemetry } from "./watching.ts";

const number = pick(MARKS.numbers, 4);
const text = pick(MARKS.texts, 4);
const secret = pick(MARKS.secrets, 4);

/** The sources in which a planted leak was not found. */
export async function unheardControls(): Promise<readonly Source[]> {
  const ears = new Ears();
  const { tracer, meter, register, collect } = hearTelemetry(ears);
  const stopHearing = hearProcess(ears);
  heardLogger(ears)
    .child?.({ body: JSON.stringify({ text }) })
    .warn({}, "leaks");
  process.stderr.write(`it was ${Buffer.from(secret).toString("base64")}\n`);
  channel("tracing:oncehook.handler:error").publish({ error: new Error(text) });
  stopHearing();
  tracer.startSpan("leaks", { attributes: { peer: number.slice(1) } }).end();
  meter.createCounter("leaks").add(1, { peer: number });
  new promClient.Counter({ name: "leaks", help: "Leaks.", labelNames: ["peer"], registers: [register] }).inc({
    peer: number,
  });
  await collect();
  ears.hear("answer", { status: 401, body: encodeURIComponent(secret) });
  ears.hearError(new Error(`The secret "${secret}" is wrong.`));
  ears.hear("operator", { audit: [{ detail: number }] });
  ears.hear("stored error", `No customer ${number}.`);
  const found = new Set(ears.leaks.map(({ source }) => source));
  return SOURCES.filter((source) => !found.has(source));
}
