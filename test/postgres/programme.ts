/** `npm run prove -- postgres`: several processes on one Postgres inbox, under load, killed and stopped, and with a server that crashes. */
import { breachCounts, breachLines } from "../proofs/history.ts";
import type { Programme, Proof } from "../proofs/programme.ts";
import type { Blows } from "./blows.ts";
import { FLAWLESS, type Verdict } from "./concurrency-family.ts";
import { type ConcurrencyReport, runConcurrently } from "./concurrency-run.ts";
import { type CrashReport, type CrashTerms, surviveCrashes } from "./crash-run.ts";
import { noPgBouncer, PgBouncer } from "./pgbouncer.ts";
import { startPostgres } from "./server.ts";

const SEED = 20_261_120;
const HOUR_MS = 3_600_000;
/** Those of a message, and a push. */
const EVENTS_OF_A_MESSAGE = 3 + 1;

/** How long a transaction that waits is left before the server looks for a deadlock: a tenth of the default, because there are hundreds. */
const SERVER = { deadlock_timeout: "100ms" };
/** For two processes of five connections; after a crash of the server it tries again at once. */
const POOLER = { default_pool_size: "8", server_login_retry: "1" };

/** `events` are those of the load, all else is of the crashes. Shorter forms have shorter leases, which a process that dies leaves to run out. */
const SIZES = {
  small: {
    ...{ events: 300, acknowledged: 0, kills: 4, restarts: 1, cuts: 2, bounces: 0, lanes: 50 },
    ...{ pauses: 0, pauseMs: 0, leaseMs: 5_000 },
  },
  short: {
    ...{ events: 1_500, acknowledged: 0, kills: 12, restarts: 2, cuts: 4, bounces: 2, lanes: 50 },
    // Longer than the server lets an open transaction be idle: it holds the rows that all effects write.
    ...{ pauses: 1, pauseMs: 25_000, leaseMs: 5_000 },
  },
  full: {
    ...{ events: 100_000, acknowledged: 10_000, kills: 300, restarts: 20, cuts: 40, bounces: 20, lanes: 1_000 },
    ...{ pauses: 2, pauseMs: 70_000, leaseMs: 30_000 },
  },
};

export const postgres: Programme = {
  name: "postgres",
  what: "6 processes on one Postgres inbox keep order and do nothing twice, through kills, stops, deadlocks, lost connections and crashes of the server",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const sizes = SIZES[full ? "full" : small ? "small" : "short"];
    const server = await startPostgres({ settings: SERVER });
    try {
      const messages = Math.ceil(sizes.events / EVENTS_OF_A_MESSAGE);
      const load = await runConcurrently({
        ...{ url: server.url, processes: 6, messages, seed: SEED, timeoutMs: HOUR_MS },
      });
      say(`load    ${JSON.stringify(load)}`);
      const crashes = await crashed({ server, ...sizes, seed: SEED, timeoutMs: HOUR_MS, say });
      say(`crashes ${JSON.stringify({ ...crashes, breaches: breachCounts(crashes.breaches) })}`);
      const problems = [...problemsOfLoad(load), ...problemsOfCrashes(crashes, sizes)];
      return { count: load.sent + crashes.acknowledged, unit: "events", problems };
    } finally {
      await server.stop();
    }
  },
};

/** Behind a pooler where there is one and the form has time for it. */
async function crashed(terms: Omit<CrashTerms, "bouncer">): Promise<CrashReport> {
  if (terms.bounces === 0) return surviveCrashes({ ...terms, bouncer: null });
  if (noPgBouncer !== null) {
    terms.say(`no process is behind a pooler: ${noPgBouncer}`);
    return surviveCrashes({ ...terms, bounces: 0, bouncer: null });
  }
  const bouncer = await PgBouncer.start(terms.server.url, POOLER);
  try {
    return await surviveCrashes({ ...terms, bouncer });
  } finally {
    await bouncer.stop();
  }
}

function problemsOfLoad({ verdict, putOff, handled, sent, duplicates, answers }: ConcurrencyReport): string[] {
  const problems = flawsOf("load", verdict);
  if (putOff.events === 0) problems.push("load: no process met an event of a source that it lacks");
  if (putOff.attempts > 0) problems.push(`load: ${putOff.attempts} attempts by processes that lack the source`);
  if (handled !== sent) problems.push(`load: ${handled} of ${sent} handled`);
  if (duplicates !== answers.duplicate) problems.push(`load: ${duplicates} duplicates counted`);
  return problems;
}

function problemsOfCrashes(crashes: CrashReport, { bounces, pauses }: Blows): string[] {
  const { acknowledged, deadlocks, cutTransactions, pooled, late } = crashes;
  const takenOver = crashes.pauses.filter(({ takenOver }) => takenOver > 0).length;
  const shown = {
    [`only ${late.billing[0]} of Stripe's events were late`]: late.billing[0] > 0,
    [`the server found ${deadlocks} deadlocks`]: deadlocks > 0,
    [`${cutTransactions} transactions ended with their connections`]: cutTransactions > 0,
    [`${takenOver} of ${pauses} processes that stood still lost an event to another`]: takenOver === pauses,
    [`${pooled} of ${acknowledged} effects went through the pooler`]:
      bounces === 0 || noPgBouncer !== null || pooled > acknowledged / 10,
  };
  return [
    ...flawsOf("crashes", crashes.verdict),
    ...crashes.strange.slice(0, 5).map((answer) => `crashes: a delivery was answered with ${answer}`),
    ...breachLines(crashes.breaches).map((breach) => `crashes: ${breach}`),
    ...Object.entries(shown).flatMap(([sight, holds]) => (holds ? [] : [`crashes show too little: ${sight}`])),
  ];
}

function flawsOf(part: string, verdict: Verdict): string[] {
  return Object.entries(verdict).flatMap(([name, count]) =>
    count === FLAWLESS[name as keyof Verdict] ? [] : [`${part}: ${name} ${count}`],
  );
}
