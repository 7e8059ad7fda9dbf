/** Several processes on one Postgres inbox under shuffled, repeated deliveries, while handlers fail, pruning runs and processes beat. */
import { createReceiver } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { createFakeClock, fixtures, incomingOf, signedRequest, TEST_SECRET } from "../../src/testing/index.ts";
import { type Answers, message, requestOf, send, spread } from "../concurrency/load.ts";
import { sourcesFor } from "../proofs/sources.ts";
import { type PostgresFamily, type Verdict, withPostgresFamily } from "./concurrency-family.ts";

const DAY_MS = 24 * 3_600_000;
const OLD = 60;
/** Pushes that are stored before a process runs that has their source. */
const EARLY = 20;

export interface ConcurrencyTerms {
  readonly url: string;
  readonly processes: number;
  readonly messages: number;
  readonly seed: number;
  readonly timeoutMs: number;
}

export interface ConcurrencyReport {
  readonly seed: number;
  readonly seconds: number;
  /** Events, without their repeats. */
  readonly sent: number;
  readonly answers: Answers;
  readonly handled: number;
  /** Of the effects, those of a replay. */
  readonly replayed: number;
  readonly retried: number;
  readonly duplicates: number;
  /** How often a process that lacks a source left an event to the others, and how many attempts that cost. */
  readonly putOff: PostgresFamily["putOff"];
  /** Of the old events, those that pruning has left. */
  readonly oldLeft: number;
  /** How many each process handled. */
  readonly byProcess: readonly number[];
  readonly verdict: Verdict;
}

/** Each process is sent to by four streams of deliveries at once. */
export function runConcurrently(terms: ConcurrencyTerms): Promise<ConcurrencyReport> {
  const { url, processes, messages, seed, timeoutMs } = terms;
  return withPostgresFamily(url, async (family) => {
    await fillWithOld(family);
    const pushes = Array.from({ length: messages }, (_, index) => [fixtures.github({ id: `push-${index}` })]);
    await fillWithPushes(family, pushes.slice(0, EARLY));
    const wish = { seed, failures: 0.05 };
    // The first one lacks a source, and meets its events alone.
    await family.add({ ...wish, prunes: true });
    await family.leftAlone(EARLY);
    const having = Array.from({ length: processes - 1 }, (_, place) =>
      family.add({ ...wish, prunes: place === 0, sources: ["messages", "code"] }),
    );
    await Promise.all(having);
    const { children } = family;
    const startedAt = performance.now();
    const fresh = Array.from({ length: messages }, (_, index) =>
      message(`m-${index}`, index % 10 === 3 ? "failed" : "delivery"),
    );
    // Lanes that go on while pruning takes them away.
    const old = Array.from({ length: OLD / 2 }, (_, index) => message(`gap-old-${2 * index}`).slice(1));
    const all = fresh.flatMap((events, index) => (old[index] === undefined ? [events] : [events, old[index]]));
    const [answers, pushed] = await Promise.all([
      send(spread(all, children, seed)),
      send(spread(pushes, family.having("code"), seed, "code")),
    ]);
    for (const name of ["accepted", "duplicate", "late", "repeated"] as const) answers[name] += pushed[name];
    await family.settled(timeoutMs);
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    await prunedOld(family);
    await family.stop();
    const tally = (name: string) => family.number(`select sum(${name}) from {}.tally`);
    const byProcess = await family.rows<{ count: string }>("select count(*) from {}_effect group by pid order by 1");
    return {
      ...{ seed, seconds, sent: all.flat().length + pushes.length, answers, putOff: family.putOff },
      handled: await family.number("select count(distinct identity) from {}_effect"),
      replayed: await family.number("select count(*) from {}_effect where replay"),
      retried: await tally("retried"),
      duplicates: await tally("duplicates"),
      oldLeft: await family.number(`select count(*) from {}.event where accepted < ${Date.now() - 30 * DAY_MS}`),
      byProcess: byProcess.map(({ count }) => Number(count)),
      verdict: await family.verdict(),
    };
  });
}

/** Events handled 40 days ago, which are due to be pruned; some of their messages go on now. */
async function fillWithOld({ url, schema }: PostgresFamily): Promise<void> {
  const clock = createFakeClock(Date.now() - 40 * DAY_MS);
  const store = postgresStore(url, { schema, listen: false, maxConnections: 2 });
  const receiver = createReceiver({ secrets: TEST_SECRET, store, clock, logger: silentLogger });
  receiver.onAny(() => {});
  const timestamp = clock.now();
  for (let index = 0; index < OLD; index++) {
    const event = fixtures.queued({ messageId: `gap-old-${index}`, occurredAt: timestamp });
    await receiver.handle(incomingOf(signedRequest(event, { timestamp })));
  }
  await receiver.drain();
  await receiver.stop();
}

/** Stored by a process that ends before it handles them. */
async function fillWithPushes({ url, schema }: PostgresFamily, pushes: readonly (readonly object[])[]): Promise<void> {
  const store = postgresStore(url, { schema, listen: false, maxConnections: 2 });
  const receiver = createReceiver({ sources: sourcesFor(["code"], {}), store, logger: silentLogger });
  const code = receiver.source("code").onAny(() => {});
  for (const event of pushes.flat()) await code.handle(incomingOf(requestOf({ source: "code", event, copy: 0 })));
  await receiver.stop();
}

/** Pruning waits for newer timestamps, and leaves what others hold for the next time. */
async function prunedOld(family: PostgresFamily): Promise<void> {
  for (let look = 0; look < 100; look++) {
    if ((await family.number(`select count(*) from {}.event where accepted < ${Date.now() - 30 * DAY_MS}`)) === 0)
      return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
