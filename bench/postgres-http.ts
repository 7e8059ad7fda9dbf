/** The Postgres inbox behind a route, beside pg-boss behind the same route on the same server. */
import { type PostgresServer, startPostgres } from "../test/postgres/server.ts";
import { takeTurns } from "./http.ts";
import { type Group, grouped, type Limit, median, ratioOf, row } from "./rows.ts";

/** As many in one order as in the other. */
const ROUNDS = { count: 6, requests: 9_000 };
/** The round that warms up is stored too. */
const STORED = (ROUNDS.count + 1) * ROUNDS.requests;
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
      await checkStored(server);
      const [a, b] = [ours?.perSecond ?? [], theirs?.perSecond ?? []];
      const p99 = [ours, theirs].map((run) => median(run?.p99Ms ?? []).toFixed(1)).join(" / ");
      const detail = `${grouped(median(a))} / ${grouped(median(b))} requests/s, p99 of an answer ${p99} ms`;
      return [row(LIMIT, ratioOf(a, b), detail)];
    } finally {
      await server.stop();
    }
  },
};

/** A side that answers 200 without having stored each request would win by it. */
async function checkStored({ url }: PostgresServer): Promise<void> {
  const { Client } = (await import("pg")).default;
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    for (const table of ["oncehook.event", "pgboss.job"]) {
      const { rows } = await client.query<{ readonly count: number }>(`select count(*)::int as count from ${table}`);
      if (rows[0]?.count !== STORED) throw new Error(`${table} has ${rows[0]?.count} rows of ${STORED} requests.`);
    }
  } finally {
    await client.end();
  }
}
