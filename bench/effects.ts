/** What exactly-once effects cost on Postgres, beside a handler that writes by itself and beside other workers that handle the same. */
import pg from "pg";
import type { HandlerContext } from "../src/inbox/handlers.ts";
import type { Effect } from "../src/inbox/store.ts";
import { createReceiver, type WebhookEvent } from "../src/index.ts";
import { silentLogger } from "../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../src/stores/postgres.ts";
import { signedRequest } from "../src/testing/index.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { bodyOf, nextMessageId } from "./deliveries.ts";
import { peerPackages } from "./peer-packages.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";
import { MESSAGES, openPostgres, turnOf } from "./store.ts";

const EVENTS = 2_000;
const ROUNDS = 5;
const CONCURRENCY = 8;
const CONNECTIONS = 10;
const SENDERS = 64;
const SECRET = "effects-benchmark-secret";

const atLeast = (name: string, target: number): Limit => ({ name, target, bound: "at least" });
const DECLARED = atLeast("Postgres: handled with declared effects / the handler's own insert", 0.75);
const FUNCTIONS = atLeast("Postgres: handled with effects as functions / the handler's own insert", 0.45);
const GRAPHILE = atLeast("Postgres: handled with declared effects / graphile-worker", 2.5);
const COUNTED = [
  { name: "Postgres: messages of an event with an effect as a function", by: "function", what: "messages", target: 8 },
  {
    name: "Postgres: statements of an event with an effect as a function",
    by: "function",
    what: "statements",
    target: 8,
  },
  { name: "Postgres: messages of an event with a declared effect", by: "declared", what: "messages", target: 6 },
  { name: "Postgres: statements of an event with a declared effect", by: "declared", what: "statements", target: 6 },
] as const;

const INSERT = "insert into done (identity, type) values ($1, $2) on conflict do nothing";

type Side = "declared" | "function" | "own" | "graphile-worker";

/** Handles a backlog of `EVENTS` events, and returns how many a second. */
type Run = () => Promise<number>;

export const effectsGroup: Group = {
  names: [DECLARED, FUNCTIONS, GRAPHILE, ...COUNTED].map(({ name }) => name),
  async run(wanted) {
    const server = await startPostgres({ inMemory: false });
    const pool = new pg.Pool({ connectionString: server.url, max: CONNECTIONS });
    pool.on("error", () => {});
    try {
      await pool.query("create table done (identity text primary key, type text not null)");
      const sides: Record<Side, Run> = {
        declared: () => handled(server.url, (_event, ctx) => ctx.commit({ text: INSERT, values: rowOf(ctx) })),
        function: () =>
          handled(server.url, (_event, ctx) =>
            ctx.commit((tx) => tx.query({ name: "insert", text: INSERT, values: rowOf(ctx) })),
          ),
        own: () =>
          handled(server.url, async (_event, ctx) => {
            await pool.query({ name: "insert", text: INSERT, values: [...rowOf(ctx)] });
          }),
        "graphile-worker": () => handledByGraphile(server.url),
      };
      const speeds: Record<Side, number[]> = { declared: [], function: [], own: [], "graphile-worker": [] };
      for (let round = -1; round < ROUNDS; round++) {
        for (const [side, run] of Object.entries(sides) as [Side, Run][]) {
          const speed = await run();
          if (round >= 0) speeds[side].push(speed);
        }
      }
      const compare = (limit: Limit, ours: Side, theirs: Side): Row => {
        const detail = `${grouped(median(speeds[ours]))} / ${grouped(median(speeds[theirs]))} events/s, concurrency ${CONCURRENCY}`;
        return row(limit, ratioOf(speeds[ours], speeds[theirs]), detail);
      };
      const counts = {
        function: await counted(server.url, "function"),
        declared: await counted(server.url, "declared"),
      };
      const rows = [
        compare(DECLARED, "declared", "own"),
        compare(FUNCTIONS, "function", "own"),
        compare(GRAPHILE, "declared", "graphile-worker"),
        ...COUNTED.map(({ name, by, what, target }) => {
          const { microseconds, ...count } = counts[by];
          return row({ name, target, bound: "at most", unit: "requests" }, count[what], `${microseconds} µs alone`);
        }),
      ];
      return rows.filter(({ name }) => wanted.has(name));
    } finally {
      await pool.end();
      await server.stop();
    }
  },
};

function rowOf({ identity }: Pick<HandlerContext, "identity">): readonly unknown[] {
  return [identity, "message.queued"];
}

async function handled(
  url: string,
  handler: (event: WebhookEvent, ctx: HandlerContext<PgClient>) => unknown,
): Promise<number> {
  const receiver = createReceiver({
    secrets: SECRET,
    store: postgresStore(url, { maxConnections: CONNECTIONS }),
    logger: silentLogger,
    concurrency: CONCURRENCY,
  });
  receiver.onAny(handler);
  receiver.onLate(() => {});
  let left = EVENTS;
  const send = async () => {
    while (left-- > 0) {
      const { headers, body } = signedRequest(bodyOf(nextMessageId(), 1), { secret: SECRET, timestamp: Date.now() });
      const answer = await receiver.handle({ method: "POST", headers, readBody: () => ({ ok: true, bytes: body }) });
      if (answer.status !== 200) throw new Error(`An event was answered with ${answer.status}.`);
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, send));
  const before = (await receiver.inbox.stats()).counters.handled;
  const startedAt = performance.now();
  await receiver.start();
  for (let done = 0; done < EVENTS; ) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    done = (await receiver.inbox.stats()).counters.handled - before;
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  await receiver.stop();
  return EVENTS / seconds;
}

/** The few functions of it that are called here. */
interface GraphileWorker {
  run(options: {
    readonly connectionString: string;
    readonly concurrency: number;
    readonly maxPoolSize: number;
    readonly logger: unknown;
    readonly taskList: Readonly<Record<string, (payload: { identity: string }, helpers: Helpers) => Promise<void>>>;
  }): Promise<{ stop(): Promise<void> }>;
  makeWorkerUtils(options: {
    connectionString: string;
  }): Promise<{ migrate(): Promise<void>; release(): Promise<void> }>;
  Logger: new (factory: () => () => void) => unknown;
}

interface Helpers {
  withPgClient(work: (client: PgClient) => Promise<unknown>): Promise<unknown>;
}

/** Its jobs, with an insert that may run again. */
async function handledByGraphile(url: string): Promise<number> {
  const { run, makeWorkerUtils, Logger }: GraphileWorker = peerPackages()("graphile-worker");
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  await utils.release();
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  pool.on("error", () => {});
  await pool.query(
    "select graphile_worker.add_job('handle', json_build_object('identity', gen_random_uuid()::text), job_key := gen_random_uuid()::text) from generate_series(1, $1)",
    [EVENTS],
  );
  let done = 0;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const startedAt = performance.now();
  const runner = await run({
    connectionString: url,
    ...{ concurrency: CONCURRENCY, maxPoolSize: CONNECTIONS, logger: new Logger(() => () => {}) },
    taskList: {
      handle: async ({ identity }, { withPgClient }) => {
        const values = [identity, "message.queued"];
        await withPgClient((client) => client.query({ name: "insert", text: INSERT, values }));
        if (++done === EVENTS) finish();
      },
    },
  });
  await finished;
  const seconds = (performance.now() - startedAt) / 1_000;
  await runner.stop();
  await pool.end();
  return EVENTS / seconds;
}

/** What the completion of one event sends, besides the batch that reports it. */
async function counted(
  url: string,
  by: "function" | "declared",
): Promise<{ readonly messages: number; readonly statements: number; readonly microseconds: number }> {
  const store = await openPostgres(url, { schema: `counted_${by}`, listen: false });
  const times: number[] = [];
  let sent = { messages: 0, statements: 0 };
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
  for (let round = 0; round < 50; round++) {
    const { leases } = await store.step(turnOf<PgClient>({ accepts: [MESSAGES.ordered.event(1)] }, 1));
    const [lease] = leases;
    if (lease === undefined) throw new Error("The event was not claimed.");
    const values = [`${by} ${round}`, "message.queued"];
    const effect: Effect<PgClient> =
      by === "declared" ? { text: INSERT, values } : (tx) => tx.query({ name: "insert", text: INSERT, values });
    const texts = new Map<unknown, string[]>();
    pg.Client.prototype.query = function (this: unknown, ...given: unknown[]) {
      const [asked] = given as unknown as readonly [string | { readonly text: string }];
      texts.set(this, [...(texts.get(this) ?? []), typeof asked === "string" ? asked : asked.text]);
      return query.apply(this, given);
    } as typeof pg.Client.prototype.query;
    const startedAt = performance.now();
    await store.step(
      turnOf<PgClient>({ settles: [{ kind: "complete", lease, outcome: "handled", effects: [effect] }] }, 0),
    );
    times.push((performance.now() - startedAt) * 1_000);
    pg.Client.prototype.query = query as typeof pg.Client.prototype.query;
    const own = [...texts.values()].find((list) => list.includes(INSERT)) ?? [];
    sent = { messages: own.length, statements: own.join(";").split(";").length };
  }
  await store.close();
  return { ...sent, microseconds: Math.round(median(times)) };
}
