/** `npm run prove -- rates`: three processes on Postgres with a backlog hold a rate together, are fair between keys, and lose nothing. */
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../../concurrency/family.ts";
import { startPostgres } from "../../postgres/server.ts";
import type { Programme, Proof, Terms } from "../programme.ts";
import { fill, type Handled, handledAt, keyOf, type Place } from "./backlog.ts";
import type { WorkerTask } from "./child.ts";

const CHILD = fileURLToPath(new URL("./child.js", import.meta.url));
const PROCESSES = 3;
const KEYS = 50;
/** Of all processes and keys together, a second. */
const PER_SECOND = 100;
const SHORT = { events: 6_000, forMs: 20_000 };
const FULL = { events: 100_000, forMs: 120_000 };
/** The processes start, and look at the whole backlog once. */
const WARM_UP_SHARE = 0.25;
const TOLERANCE = 0.1;
const LEAST_FAIRNESS = 0.95;

export const rates: Programme = {
  name: "rates",
  what: "three processes on Postgres hold a rate together while a backlog waits: within 10 %, fair between 50 keys, in order, nothing lost",
  needsQuiet: true,
  async run({ full, say }: Terms): Promise<Proof> {
    const size = full ? FULL : SHORT;
    const server = await startPostgres();
    const problems: string[] = [];
    let count = 0;
    try {
      for (const perKey of [true, false]) {
        const place = { url: server.url, schema: perKey ? "per_key" : "per_inbox" };
        const outcome = await tryRate(place, perKey, size, say);
        problems.push(...outcome.problems.map((problem) => `${place.schema}: ${problem}`));
        count += outcome.count;
      }
    } finally {
      await server.stop();
    }
    return { count, unit: "events", problems };
  },
};

async function tryRate(place: Place, perKey: boolean, { events, forMs }: typeof SHORT, say: Terms["say"]) {
  await fill(place, KEYS, events);
  const rate = { perSecond: perKey ? PER_SECOND / KEYS : PER_SECOND, perKey };
  const startedAt = Date.now();
  await work({ ...place, rate }, () => sleep(forMs));
  const limited = (await handledAt(place)).handled;
  const problems = [...judgeRate(limited, startedAt + forMs * WARM_UP_SHARE, startedAt + forMs, perKey, say)];
  await work({ ...place, rate: null }, () => untilHandled(place));
  const { handled, pending } = await handledAt(place);
  problems.push(...judgeAll(handled, events), ...(pending > 0 ? [`${pending} events were never handled`] : []));
  return { count: handled.length, problems };
}

/** Runs the processes until `until` resolves. */
async function work(task: WorkerTask, until: () => Promise<void>): Promise<void> {
  const children = Array.from({ length: PROCESSES }, () => new Child(task, CHILD));
  try {
    await Promise.all(children.map(({ ready }) => ready));
    await until();
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

async function untilHandled(place: Place): Promise<void> {
  for (let last = -1, same = 0; same < 60; ) {
    const { handled, pending } = await handledAt(place);
    if (pending === 0) return;
    same = handled.length === last ? same + 1 : 0;
    last = handled.length;
    await sleep(1_000);
  }
}

function* judgeRate(handled: readonly Handled[], from: number, to: number, perKey: boolean, say: Terms["say"]) {
  const measured = handled.filter(({ at }) => at >= from && at < to);
  const perSecond = measured.length / ((to - from) / 1_000);
  const counts = new Map<string, number>();
  for (const { message } of measured) counts.set(keyOf(message), (counts.get(keyOf(message)) ?? 0) + 1);
  const fairness = jain(Array.from({ length: KEYS }, (_, index) => counts.get(`k${index}`) ?? 0));
  const what = perKey
    ? `${PER_SECOND / KEYS} a second for each of ${KEYS} keys`
    : `${PER_SECOND} a second for the inbox`;
  say(`${what}: ${perSecond.toFixed(1)} a second in all${perKey ? `, fairness ${fairness.toFixed(3)}` : ""}`);
  if (Math.abs(perSecond / PER_SECOND - 1) > TOLERANCE)
    yield `${perSecond.toFixed(1)} events a second instead of ${PER_SECOND}`;
  if (perKey && fairness < LEAST_FAIRNESS) yield `Jain's index of ${KEYS} keys is ${fairness.toFixed(3)}`;
}

function judgeAll(handled: readonly Handled[], events: number): readonly string[] {
  const problems: string[] = [];
  const last = new Map<string, number>();
  for (const { message, sequence } of handled) {
    if (sequence !== (last.get(message) ?? 0) + 1)
      problems.push(`${message} had ${sequence} after ${last.get(message) ?? 0}`);
    last.set(message, sequence);
  }
  if (handled.length !== events) problems.push(`${handled.length} effects of ${events} events`);
  return problems.slice(0, 20);
}

/** 1 if all are equal, 1 / n if one has everything. */
function jain(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  return sum ** 2 / (counts.length * counts.reduce((total, count) => total + count ** 2, 0));
}
