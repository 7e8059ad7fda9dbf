/** What exactly-once effects cost on Postgres, beside a handler that writes by itself and beside other workers that handle the same. */
import pg from "pg";
import type { HandlerContext } from "../src/inbox/handlers.ts";
import type { Effect } from "../src/inbox/store.ts";
import { createReceiver, type WebhookEvent } from "../src/index.ts";
import { silentLogger } from "../src/internal/logger.ts";
import { type PgClient, postgresStore } from "../src/stores/postgres.ts";
import { signedRequest } from "../src/tools/testing/index.ts";
import { startPostgres } from "../test/stores/postgres/server.ts";
import { median } from "../test/support/statistics.ts";
import { bodyOf, nextMessageId } from "./deliveries.ts";
import { countRows } from "./kept-sides.ts";
import { CONCURRENCY, CONNECTIONS, DONE, queryOnce, WORKERS, type Worker } from "./queues.ts";
import { type Group, grouped, type Limit, type Row, ratioOf, row } from "./rows.ts";
import { MESSAGES, openPostgres, turnOf } from "./store.ts";

const EVENTS = 2_000;
/** Of a round, where each takes long. */
const FEW_EVENTS = 500;
const ROUNDS = 5;
const COUNTED_ROUNDS = 50;
const SENDERS = 64;
const SECRET = "effects-benchmark-secret";

type Side = "declared" | "function" | "own" | Worker;

interface Comparison {
  readonly limit: Limit;
  readonly ours: Side;
  readonly theirs: Side;
  /** What the other side does, where the name of the row does not say it. */
  readonly how?: string;
}

const COMPARISONS: readonly Comparison[] = [
  compared("handled with declared effects / the handler's own insert", 0.75, ["declared", "own"]),
  compared("handled with effects as functions / the handler's own insert", 0.45, ["function", "own"]),
  {
    ...compared("handled with declared effects / graphile-worker", 2.5, ["declared", "graphile-worker"]),
    how: "its defaults otherwise, without a local queue and completions in batches; an insert that may run again",
  },
  {
    ...compared("handled exactly once, declared / DBOS Transact", 5, ["declared", "dbos"]),
    how: "a workflow with the identity as its id, started directly, and a step with an insert that may run again",
  },
  {
    // A target of our own, below the lowest ratio that was seen on a busy machine.
    ...compared("handled with declared effects / pg-boss handling the same", 1.3, ["declared", "pg-boss"]),
    how: "two workers with batches of four, and an insert that may run again",
  },
];

function compared(name: string, target: number, [ours, theirs]: readonly [Side, Side]): Comparison {
  return { limit: { name: `Postgres: ${name}`, target, bound: "at least" }, ours, theirs };
}

const COUNTED = (["function", "declared"] as const).flatMap((by) =>
  (["messages", "statements"] as const).map((what) => {
    const [effect, target] = by === "function" ? ["an effect as a function", 8] : ["a declared effect", 6];
    const name = `Postgres: ${what} of an event with ${effect}`;
    return { by, what, limit: { name, target, bound: "at most", unit: what } satisfies Limit };
  }),
);

export const effectsGroup: Group = {
  names: [...COMPARISONS, ...COUNTED].map(({ limit }) => limit.name),
  async run(wanted) {
    const server = await startPostgres({ inMemory: false });
    try {
      await queryOnce(server.url, DONE.create);
      const comparisons = COMPARISONS.filter(({ limit }) => wanted.has(limit.name));
      const counted = COUNTED.filter(({ limit }) => wanted.has(limit.name));
      return [...(await compare(server.url, comparisons)), ...(await count(server.url, counted))];
    } finally {
      await server.stop();
    }
  },
};

/** Each side handles a backlog a round, in turn; the first round warms up. */
async function compare(url: string, comparisons: readonly Comparison[]): Promise<readonly Row[]> {
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
  pool.on("error", () => {});
  const sides = [...new Set(comparisons.flatMap(({ ours, theirs }) => [ours, theirs]))];
  const speeds = new Map(sides.map((side): [Side, number[]] => [side, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [side, measured] of speeds) {
      const speed = await handledBy(side, url, pool);
      if (round >= 0) measured.push(speed);
    }
  }
  await pool.end();
  return comparisons.map(({ limit, ours, theirs, how }) => {
    const [mine = [], others = []] = [speeds.get(ours), speeds.get(theirs)];
    const pace = `${grouped(median(mine))} / ${grouped(median(others))} events/s, concurrency ${CONCURRENCY}`;
    return row(limit, ratioOf(mine, others), how === undefined ? pace : `${pace}; ${how}`);
  });
}

/** Handles a backlog and returns how many events a second, if each has its row afterwards. */
async function handledBy(side: Side, url: string, pool: pg.Pool): Promise<number> {
  const events = side === "dbos" ? FEW_EVENTS : EVENTS;
  const insertOf = (identity: string) => ({ text: DONE.insert, values: [...DONE.valuesOf(identity)] });
  const insert = async (identity: string) => {
    await pool.query({ name: "insert", ...insertOf(identity) });
  };
  const handlers: Readonly<Record<Exclude<Side, Worker>, BenchHandler>> = {
    declared: (_event, ctx) => ctx.commit(insertOf(ctx.identity)),
    function: (_event, ctx) => ctx.commit((tx) => tx.query({ name: "insert", ...insertOf(ctx.identity) })),
    own: (_event, ctx) => insert(ctx.identity),
  };
  const speed = isWorker(side) ? await WORKERS[side]({ url, events, insert }) : await handled(url, handlers[side]);
  const rows = await countRows(url, "done");
  if (rows !== events) throw new Error(`${side} has the rows of ${rows} of ${events} events.`);
  await pool.query("truncate done");
  return speed;
}

function isWorker(side: Side): side is Worker {
  return side in WORKERS;
}

type BenchHandler = (event: WebhookEvent, ctx: HandlerContext<PgClient>) => unknown;

async function handled(url: string, handler: BenchHandler): Promise<number> {
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

/** Counts for each way, once, what both of its rows show. */
async function count(url: string, wanted: typeof COUNTED): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const by of new Set(wanted.map(({ by }) => by))) {
    const { microseconds, ...sent } = await counted(url, by);
    const detail = `${sent.messages} messages, ${sent.statements} statements, ${microseconds} µs an event that is completed alone`;
    const own = wanted.filter((each) => each.by === by);
    rows.push(...own.map(({ what, limit }) => row(limit, sent[what], detail)));
  }
  return rows;
}

interface Cost {
  readonly messages: number;
  readonly statements: number;
  readonly microseconds: number;
}

/** What the completion of one event sends, besides the batch that reports it: medians, as a busy machine makes some wait for more. */
async function counted(url: string, by: "function" | "declared"): Promise<Cost> {
  const store = await openPostgres(url, { schema: `counted_${by}`, listen: false });
  const costs: Cost[] = [];
  for (let round = 0; round < COUNTED_ROUNDS; round++) {
    const [lease] = (await store.step(turnOf<PgClient>({ accepts: [MESSAGES.ordered.event(1)] }, 1))).leases;
    if (lease === undefined) throw new Error("The event was not claimed.");
    const statement = { text: DONE.insert, values: [...DONE.valuesOf(`${by} ${round}`)] };
    const effect: Effect<PgClient> = by === "declared" ? statement : (tx) => tx.query({ name: "insert", ...statement });
    const settles = [{ kind: "complete", lease, outcome: "handled", effects: [effect] } as const];
    costs.push(await costOf(() => store.step(turnOf<PgClient>({ settles }, 0))));
  }
  await store.close();
  const middle = (what: keyof Cost) => Math.round(median(costs.map((cost) => cost[what])));
  return { messages: middle("messages"), statements: middle("statements"), microseconds: middle("microseconds") };
}

/** What `work` sends on the connection that carries the effect. */
async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
  const texts = new Map<unknown, string[]>();
  pg.Client.prototype.query = function (this: unknown, ...given: unknown[]) {
    const [asked] = given as unknown as readonly [string | { readonly text: string }];
    texts.set(this, [...(texts.get(this) ?? []), typeof asked === "string" ? asked : asked.text]);
    return query.apply(this, given);
  } as typeof pg.Client.prototype.query;
  const startedAt = performance.now();
  await work();
  const microseconds = (performance.now() - startedAt) * 1_000;
  pg.Client.prototype.query = query as typeof pg.Client.prototype.query;
  const own = [...texts.values()].find((list) => list.includes(DONE.insert));
  if (own === undefined) throw new Error("The effect was not seen.");
  return { messages: own.length, statements: own.join(";").split(";").length, microseconds };
}
