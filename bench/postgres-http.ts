/** The Postgres inbox behind a route, beside pg-boss behind the same route on the same server. */
import { startPostgres } from "../test/postgres/server.ts";
import { takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, median, ratioOf, row } from "./rows.ts";

const ROUNDS = { count: 5, requests: 9_000 };
const LIMIT: Limit = { name: "Postgres: durable accept / pg-boss, fastify", target: 5, bound: "at least" };

export const postgresHttpGroup: Group = {
  names: [LIMIT.name],
  async run() {
    const server = await startPostgres({ inMemory: false });
    try {
      const both = (["postgres", "pg-boss"] as const).map((route) => ({
        ...({ route, framework: "fastify", inbox: server.url } as const),
      }));
      const [ours, theirs] = await takeTurns(both, ROUNDS);
      const [a, b] = [ours?.perSecond ?? [], theirs?.perSecond ?? []];
      const p99 = [ours, theirs].map((run) => median(run?.p99Ms ?? []).toFixed(1)).join(" / ");
      const detail = `${grouped(median(a))} / ${grouped(median(b))} requests/s, p99 of an answer ${p99} ms`;
      return [row(LIMIT, ratioOf(a, b), detail)];
    } finally {
      await server.stop();
    }
  },
};
