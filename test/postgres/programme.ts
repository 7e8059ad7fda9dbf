/** `npm run prove -- postgres`: several processes on one Postgres inbox, under load, killed, and with a server that crashes. */
import { breachCounts, breachLines } from "../prove/history.ts";
import type { Programme, Proof } from "../prove/programme.ts";
import { FLAWLESS, type Verdict } from "./concurrency-family.ts";
import { runConcurrently } from "./concurrency-run.ts";
import { surviveCrashes } from "./crash-run.ts";
import { startPostgres } from "./server.ts";

const SEED = 20_261_120;
const HOUR_MS = 3_600_000;
/** Those of a message, and a push. */
const EVENTS_OF_A_MESSAGE = 3 + 1;

const SIZES = {
  small: { events: 300, kills: 4, restarts: 1, lanes: 50 },
  short: { events: 1_500, kills: 12, restarts: 2, lanes: 50 },
  full: { events: 100_000, kills: 300, restarts: 20, lanes: 1_000 },
};

export const postgres: Programme = {
  name: "postgres",
  what: "6 processes on one Postgres inbox keep order and do nothing twice, through kills and crashes of the server",
  hasSmallForm: true,
  async run({ full, small, say }): Promise<Proof> {
    const { events, kills, restarts, lanes } = SIZES[full ? "full" : small ? "small" : "short"];
    const server = await startPostgres();
    try {
      const messages = Math.ceil(events / EVENTS_OF_A_MESSAGE);
      const load = await runConcurrently({
        ...{ url: server.url, processes: 6, messages, seed: SEED, timeoutMs: HOUR_MS },
      });
      say(`load    ${JSON.stringify(load)}`);
      const crashes = await surviveCrashes({
        ...{ server, kills, restarts, lanes, seed: SEED, timeoutMs: HOUR_MS, say },
      });
      say(`crashes ${JSON.stringify({ ...crashes, breaches: breachCounts(crashes.breaches) })}`);
      const problems = [
        ...flawsOf("load", load.verdict),
        ...flawsOf("crashes", crashes.verdict),
        ...crashes.strange.slice(0, 5).map((answer) => `crashes: a delivery was answered with ${answer}`),
      ];
      problems.push(...breachLines(crashes.breaches).map((breach) => `crashes: ${breach}`));
      if (crashes.late.billing[0] === 0) problems.push("crashes: none of Stripe's events was late");
      if (load.putOff.events === 0) problems.push("load: no process met an event of a source that it lacks");
      if (load.putOff.attempts > 0)
        problems.push(`load: ${load.putOff.attempts} attempts by processes that lack the source`);
      if (load.handled !== load.sent) problems.push(`load: ${load.handled} of ${load.sent} handled`);
      if (load.duplicates !== load.answers.duplicate) problems.push(`load: ${load.duplicates} duplicates counted`);
      return { count: load.sent + crashes.acknowledged, unit: "events", problems };
    } finally {
      await server.stop();
    }
  },
};

function flawsOf(part: string, verdict: Verdict): string[] {
  return Object.entries(verdict).flatMap(([name, count]) =>
    count === FLAWLESS[name as keyof Verdict] ? [] : [`${part}: ${name} ${count}`],
  );
}
