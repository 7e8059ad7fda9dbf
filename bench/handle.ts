/** What accepting and handling in one process reaches, with a handler that commits an effect, and how long an event waits for it. */

import { startPostgres } from "../test/stores/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { type Run, takeTurns } from "./http.ts";
import { countRows } from "./kept-sides.ts";
import { CONCURRENCY } from "./queues.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";
import type { Framework } from "./server.ts";

/** Whole lifecycles, so that a lane is found again. */
const ROUNDS = { count: 4, requests: 30_000, lifecycles: true };
const LEAST: Readonly<Record<Framework, number>> = { fastify: 20_000, node: 20_000, express: 10_000 };
const FRAMEWORKS = ["fastify", "node", "express"] as const satisfies readonly Framework[];

const handledLimit = (framework: Framework): Limit => ({
  ...{ name: `accepted and handled, ${framework}`, target: LEAST[framework], bound: "at least", unit: "events/s" },
});
const DELAY: Limit = { name: "event loop delay p99, fastify", target: 20, bound: "at most", unit: "ms" };
const WAIT: Limit = { name: "2xx to handled p99, half load, fastify", target: 50, bound: "at most", unit: "ms" };

export const handleGroup: Group = {
  names: [...FRAMEWORKS.map((framework) => handledLimit(framework).name), DELAY.name, WAIT.name],
  async run(wanted) {
    // Fastify's full load is also what the other two rows are about.
    const isWanted = (framework: Framework) => framework === "fastify" || wanted.has(handledLimit(framework).name);
    const frameworks = FRAMEWORKS.filter(isWanted);
    const runs = await takeTurns(
      frameworks.map((framework) => ({ route: "handle", framework })),
      ROUNDS,
    );
    const rows = runs.map((run, index) => handled(run, handledLimit(frameworks[index] ?? "fastify")));
    const [fastify] = runs;
    const delays = fastify?.delayP99Ms ?? [];
    rows.push(row(DELAY, median(delays), `at full load with a handler, ${delays.length} rounds`));
    if (wanted.has(WAIT.name)) rows.push(await waitAtHalfLoad(median(fastify?.handledPerSecond ?? [])));
    return rows.filter(({ name }) => wanted.has(name));
  },
};

function handled({ handledPerSecond: paces, processor, p99Ms }: Run, limit: Limit): Row {
  const range = `${grouped(Math.min(...paces))} to ${grouped(Math.max(...paces))}`;
  const each = `${median(processor).toFixed(0)} µs of processor, p99 of an answer ${median(p99Ms).toFixed(1)} ms`;
  return row(limit, median(paces), `${range}, ${each}`);
}

async function waitAtHalfLoad(fullLoad: number): Promise<Row> {
  const perSecond = fullLoad / 2;
  const [run] = await takeTurns([{ route: "timed", framework: "fastify" }], { ...ROUNDS, perSecond });
  const sent = median(run?.perSecond ?? []);
  const detail = `counted from the acceptance, just before the 2xx; ${grouped(sent)} events/s of ${grouped(fullLoad)}`;
  return row(WAIT, median(run?.waitP99Ms ?? []), detail);
}

const GRAPHILE: Limit = {
  name: "SQLite: accepted and handled / graphile-worker, fastify",
  target: 10,
  bound: "at least",
};
/** Fewer, because it takes long for each. */
const GRAPHILE_SERVED = { route: "graphile-worker-handling", framework: "fastify", requests: 3_000 } as const;

/** Both accept and handle in one process; counted to the last that was handled. */
export const handlePeerGroup: Group = {
  names: [GRAPHILE.name],
  async run() {
    const server = await startPostgres({ inMemory: false });
    try {
      const [ours, theirs] = await takeTurns(
        [
          { route: "handle", framework: "fastify" },
          { ...GRAPHILE_SERVED, inbox: server.url },
        ],
        ROUNDS,
      );
      const [written, sent] = [await countRows(server.url, "done"), (ROUNDS.count + 1) * GRAPHILE_SERVED.requests];
      if (written !== sent) throw new Error(`graphile-worker has the rows of ${written} of ${sent} events.`);
      return [comparePaces(ours?.handledPerSecond, theirs?.handledPerSecond)];
    } finally {
      await server.stop();
    }
  },
};

function comparePaces(ours: readonly number[] = [], theirs: readonly number[] = []): Row {
  const paces = `${grouped(median(ours))} / ${grouped(median(theirs))} events/s`;
  const how = `a handler with an effect / jobs with an insert that may run again, concurrency ${CONCURRENCY}`;
  return row(GRAPHILE, ratioOf(ours, theirs), `${paces}, ${how}`);
}
