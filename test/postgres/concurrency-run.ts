/** Several processes on one Postgres inbox under shuffled, repeated deliveries, while handlers fail, pruning runs and processes beat. */
import { setTimeout as sleep } from "node:timers/promises";
import { createReceiver, type InboxStore } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { fixtures, incomingOf } from "../../src/testing/index.ts";
import { DAY_MS, fillWithOld, goingOn, message, requestOf, send, spread } from "../concurrency/load.ts";
import { sourcesFor } from "../prove/sources.ts";
import { type PostgresFamily, withPostgresFamily } from "./concurrency-family.ts";

const OLD = 60;
/** Pushes that are stored before a process runs that has their source. */
const EARLY = 20;

const PROCESSES = 6;

export type ConcurrencyReport = Awaited<ReturnType<typeof runConcurrently>>;

/** Each process is sent to by four streams of deliveries at once. */
export function runConcurrently(url: string, messages: number, seed: number) {
  return withPostgresFamily(url, async (family) => {
    const { schema } = family;
    const old = postgresStore(url, { schema, listen: false, maxConnections: 2 }) as InboxStore<never>;
    await fillWithOld(old, OLD);
    const pushes = Array.from({ length: messages }, (_, index) => [fixtures.github({ id: `push-${index}` })]);
    await fillWithPushes(family, pushes.slice(0, EARLY));
    const wish = { seed, failures: 0.05 };
    // The first one lacks a source, and meets its events alone.
    await family.add({ ...wish, prunes: true });
    await family.leftAlone(EARLY);
    const having = Array.from({ length: PROCESSES - 1 }, (_, place) =>
      family.add({ ...wish, prunes: place === 0, sources: ["messages", "code"] }),
    );
    await Promise.all(having);
    const { children } = family;
    const startedAt = performance.now();
    const fresh = Array.from({ length: messages }, (_, index) =>
      message(`m-${index}`, index % 10 === 3 ? "failed" : "delivery"),
    );
    // Lanes that go on while pruning takes them away.
    const more = goingOn(OLD);
    const all = fresh.flatMap((events, index) => (more[index] === undefined ? [events] : [events, more[index]]));
    const [answers, pushed] = await Promise.all([
      send(spread(all, children, seed)),
      send(spread(pushes, family.having("code"), seed, "code")),
    ]);
    for (const name of ["accepted", "duplicate", "late", "repeated"] as const) answers[name] += pushed[name];
    await family.settled();
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    await prunedOld(family);
    await family.stop();
    const tally = (name: string) => family.number(`select sum(${name}) from {}.tally`);
    const byProcess = await family.rows<{ count: string }>("select count(*) from {}_effect group by pid order by 1");
    return {
      ...{ seed, seconds, answers },
      /** Events, without their repeats. */
      sent: all.flat().length + pushes.length,
      /** How often a process that lacks a source left an event to the others, and how many attempts that cost. */
      putOff: family.putOff,
      handled: await family.number("select count(distinct identity) from {}_effect"),
      /** Of the effects, those of a replay. */
      replayed: await family.number("select count(*) from {}_effect where replay"),
      retried: await tally("retried"),
      duplicates: await tally("duplicates"),
      /** Of the old events, those that pruning has left. */
      oldLeft: await oldIn(family),
      byProcess: byProcess.map(({ count }) => Number(count)),
      verdict: await family.verdict(),
    };
  });
}

/** Stored by a process that ends before it handles them. */
async function fillWithPushes({ url, schema }: PostgresFamily, pushes: readonly (readonly object[])[]): Promise<void> {
  const store = postgresStore(url, { schema, listen: false, maxConnections: 2 });
  const receiver = createReceiver({ sources: sourcesFor(["code"], {}), store, logger: silentLogger });
  const code = receiver.source("code").onAny(() => {});
  for (const event of pushes.flat()) await code.handle(incomingOf(requestOf({ source: "code", event, copy: 0 })));
  await receiver.stop();
}

/** Events that are due to be pruned. */
const oldIn = (family: PostgresFamily) =>
  family.number(`select count(*) from {}.event where accepted < ${Date.now() - 30 * DAY_MS}`);

/** Pruning waits for newer timestamps, and leaves what others hold for the next time. */
async function prunedOld(family: PostgresFamily): Promise<void> {
  for (let look = 0; look < 100 && (await oldIn(family)) > 0; look++) await sleep(20);
}
