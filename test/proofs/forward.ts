/** `npm run prove -- forward`: what the emulator sends, through outages of everything, arrives once in JetStream and in BullMQ. */

import { answers, NATS, REDIS } from "../tools/forward/services.ts";
import { type Arrival, forwardThroughOutages } from "./forward-outages.ts";
import type { Programme, Proof } from "./programme.ts";

const SHORT = 200;
const FULL = 10_000;

export const forwarding: Programme = {
  name: "forward",
  what: "every event once in JetStream and BullMQ, in order per message (JetStream), over outages of engines and receiver",
  async run({ full, say }): Promise<Proof> {
    const absent = [];
    for (const service of [NATS, REDIS]) if (!(await answers(service))) absent.push(service);
    const problems = absent.map(({ name, host, port }) => `no ${name} answers at ${host}:${port}`);
    if (problems.length > 0) return { count: 0, unit: "events", problems };
    // A backoff of half an hour need not take that long, but signatures must not grow too old meanwhile.
    const arrival = await forwardThroughOutages({ messages: full ? FULL : SHORT, rate: full ? 5 : 20, say });
    say(lineOf(arrival));
    return { count: arrival.events, unit: "events", problems: problemsOf(arrival) };
  },
};

/** Empty when the claim held. */
export function problemsOf({ retried, late, jetstream, bullmq, failedAttempts }: Arrival): string[] {
  const problems: string[] = [];
  if (retried === 0) problems.push("nothing was tried again: the engines had no outages");
  if (failedAttempts === 0) problems.push("no delivery failed: the receiver had no outages");
  if (late > 0) problems.push(`${late} late`);
  for (const [engine, { lost, twice }] of Object.entries({ jetstream, bullmq })) {
    if (lost > 0) problems.push(`${engine}: ${lost} lost`);
    if (twice > 0) problems.push(`${engine}: ${twice} twice`);
  }
  if (jetstream.disordered > 0) problems.push(`jetstream: ${jetstream.disordered} out of order`);
  return problems;
}

function lineOf({ events, retried, failedAttempts, published, jetstream, bullmq }: Arrival): string {
  const faults = [jetstream, bullmq].map(
    ({ lost, twice, disordered }) => `${lost} lost, ${twice} twice, ${disordered} out of order`,
  );
  const attempts = `${failedAttempts} deliveries failed, ${retried} handlings tried again, ${published} publications`;
  return `${events} events, ${attempts}: JetStream ${faults[0]}; BullMQ ${faults[1]}`;
}
