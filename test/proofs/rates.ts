/** `npm run prove -- rates`: three processes on Postgres with a backlog hold a rate together, are fair between keys, and lose nothing. */
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { NewEvent } from "../../src/inbox/record.ts";
import { fixtures } from "../../src/tools/testing/index.ts";
import { startPostgres } from "../stores/postgres/server.ts";
import { type EffectRow, Look, type Place } from "./inbox.ts";
import { Asked, compiled } from "./process.ts";
import { type Programme, type Proof, sizeOf, type Terms } from "./programme.ts";
import { type Description, keyOf, receive } from "./receiving.ts";

const PROCESSES = 3;
const KEYS = 50;
/** Of all processes and keys together, a second. */
const PER_SECOND = 100;
const SIZES = { short: { events: 6_000, forMs: 20_000 }, full: { events: 100_000, forMs: 120_000 } };
/** The events of a message. */
const SEQUENCES = 2;
const BATCH = 250;
const MINUTE_MS = 60_000;
/** The processes start, and look at the whole backlog once. */
const WARM_UP_SHARE = 0.25;
const TOLERANCE = 0.1;
const LEAST_FAIRNESS = 0.95;
/** Without any progress. */
const PATIENCE_LOOKS = 60;

export const rates: Programme = {
  name: "rates",
  what: "three processes on Postgres hold a rate together while a backlog waits: within 10 %, fair between 50 keys, in order, nothing lost",
  needsQuiet: true,
  async run(terms: Terms): Promise<Proof> {
    const server = await startPostgres();
    const problems: string[] = [];
    let count = 0;
    try {
      for (const perKey of [true, false]) {
        const place = { url: server.url, schema: perKey ? "per_key" : "per_inbox" };
        const outcome = await tryRate(place, perKey, terms);
        problems.push(...outcome.problems.map((problem) => `${place.schema}: ${problem}`));
        count += outcome.count;
      }
    } finally {
      await server.stop();
    }
    return { count, unit: "events", problems };
  },
};

async function tryRate(place: Place, perKey: boolean, terms: Terms) {
  const { events, forMs } = sizeOf(terms, SIZES);
  const look = new Look(place);
  await look.prepare();
  await fill(place, events);
  const rate = { perSecond: perKey ? PER_SECOND / KEYS : PER_SECOND, perKey };
  const startedAt = Date.now();
  await work({ place, rate, store: { maxConnections: 6 } }, () => sleep(forMs));
  const limited = await effectsIn(look);
  const problems = [...judgeRate(limited, startedAt + forMs * WARM_UP_SHARE, startedAt + forMs, perKey, terms.say)];
  await work({ place, store: { maxConnections: 6 } }, () => untilHandled(look));
  const handled = await effectsIn(look);
  const pending = await look.pending();
  problems.push(...judgeAll(handled, events), ...(pending > 0 ? [`${pending} events were never handled`] : []));
  await look.remove();
  return { count: handled.length, problems };
}

const effectsIn = (look: Look) =>
  look.rows<Pick<EffectRow, "lane" | "sequence" | "at">>("select lane, sequence, at from {effect} order by at, id");

/** A backlog: the keys behind each other, which is the worst order for the last one. A message's id is `k7-3`: the fourth of the key `k7`. */
async function fill(place: Place, events: number): Promise<void> {
  const { receiver, store } = receive({ place });
  // Its inbox is made here, and nothing is handled.
  await receiver.inbox.stats();
  const perKey = Math.floor(events / KEYS / SEQUENCES);
  const all = Array.from({ length: KEYS * perKey }, (_, index) => `k${Math.floor(index / perKey)}-${index % perKey}`);
  for (let from = 0; from < all.length; from += BATCH) {
    const accepts = all.slice(from, from + BATCH).flatMap((message) => [eventOf(message, 1), eventOf(message, 2)]);
    await store.step({
      ...{ settles: [], accepts, quarantines: [] },
      quarantineQuota: { maxRows: 1, maxBytes: 1 },
      claim: { limit: 0, leaseMs: 0, maxAttempts: 1, onDead: "continue", takes: () => true, mode: "ordinary" },
    });
  }
  await receiver.stop();
}

function eventOf(messageId: string, sequence: number): NewEvent {
  // Long before now: none of them is fresh.
  const at = Date.now() - 10 * MINUTE_MS;
  const event = fixtures.sent({ messageId, sequence, occurredAt: at });
  const raw = Buffer.from(JSON.stringify(event));
  return {
    lane: { source: "messages", tenant: event.apiClientId, name: messageId, order: "sequence" },
    ...{ sequence, eventType: event.eventType, occurredAt: at, signedAt: at, gapWaitMs: MINUTE_MS },
    ...{ digest: hash("sha256", raw, "buffer"), raw, trace: null, peer: null, externalReference: null },
  };
}

/** Runs the processes until `until` resolves. */
async function work(description: Description, until: () => Promise<void>): Promise<void> {
  const children = Array.from({ length: PROCESSES }, () => new Asked(compiled("child.js"), description));
  try {
    await Promise.all(children.map((child) => child.ask("open")));
    await until();
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

async function untilHandled(look: Look): Promise<void> {
  for (let last = -1, same = 0; same < PATIENCE_LOOKS; await sleep(1_000)) {
    const pending = await look.pending();
    if (pending === 0) return;
    same = pending === last ? same + 1 : 0;
    last = pending;
  }
}

function* judgeRate(
  effects: readonly Pick<EffectRow, "lane" | "at">[],
  from: number,
  to: number,
  perKey: boolean,
  say: Terms["say"],
) {
  const measured = effects.filter(({ at }) => at >= from && at < to);
  const perSecond = measured.length / ((to - from) / 1_000);
  const counts = new Map<string, number>();
  for (const { lane } of measured) counts.set(keyOf(lane), (counts.get(keyOf(lane)) ?? 0) + 1);
  const fairness = jain(Array.from({ length: KEYS }, (_, index) => counts.get(`k${index}`) ?? 0));
  const what = perKey
    ? `${PER_SECOND / KEYS} a second for each of ${KEYS} keys`
    : `${PER_SECOND} a second for the inbox`;
  say(`${what}: ${perSecond.toFixed(1)} a second in all${perKey ? `, fairness ${fairness.toFixed(3)}` : ""}`);
  if (Math.abs(perSecond / PER_SECOND - 1) > TOLERANCE)
    yield `${perSecond.toFixed(1)} events a second instead of ${PER_SECOND}`;
  if (perKey && fairness < LEAST_FAIRNESS) yield `Jain's index of ${KEYS} keys is ${fairness.toFixed(3)}`;
}

function judgeAll(effects: readonly Pick<EffectRow, "lane" | "sequence">[], events: number): readonly string[] {
  const problems: string[] = [];
  const last = new Map<string, number>();
  for (const { lane, sequence } of effects) {
    const before = last.get(lane) ?? 0;
    if (sequence !== before + 1) problems.push(`${lane} had ${sequence} after ${before}`);
    last.set(lane, sequence);
  }
  if (effects.length !== events) problems.push(`${effects.length} effects of ${events} events`);
  return problems.slice(0, 20);
}

/** 1 if all are equal, 1 / n if one has everything. */
function jain(counts: readonly number[]): number {
  const sum = counts.reduce((total, count) => total + count, 0);
  return sum ** 2 / (counts.length * counts.reduce((total, count) => total + count ** 2, 0));
}
