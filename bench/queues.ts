/** What others do with an event on a server: store it before the 2xx, or handle a backlog with a row for each. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { Queue } from "bullmq";
import type { WebhookEvent } from "../src/index.ts";
import type { PgClient } from "../src/stores/postgres.ts";
import { peerPackages } from "./peer-packages.ts";

export type QueueRoute = "pg-boss" | "graphile-worker" | "graphile-worker-handling" | "insert" | "bullmq";
export type Worker = "pg-boss" | "graphile-worker" | "dbos";

/** An event as it came, and what its duplicates are known by. */
interface Received {
  readonly event: WebhookEvent;
  readonly raw: Buffer;
  readonly identity: string;
}

/** Resolves when the event is stored. */
type Keep = (received: Received) => Promise<void>;

/** Events to handle. All but DBOS store them before they handle the first. */
interface Backlog {
  readonly url: string;
  readonly events: number;
  /** Writes the row of an event, on a pool of the application. Without a result: DBOS would store it. */
  insert(identity: string): Promise<void>;
}

/** The name of each one's queue. */
export const QUEUE = "webhooks";
/** Of each side that handles: events at once, and connections of a pool. */
export const CONCURRENCY = 8;
export const CONNECTIONS = 10;
/** The table in which handlers note their events, by a statement that may run again. */
export const DONE = {
  create: "create table if not exists done (identity text primary key, type text not null)",
  insert: "insert into done (identity, type) values ($1, $2) on conflict do nothing",
  valuesOf: (identity: string): readonly unknown[] => [identity, "message.queued"],
} as const;

/**
 * Opens each at a `postgres://…` or a `redis://…`. Upkeep and workers are left out: they would only cost them time. The one that
 * also handles calls `handled` after each event.
 */
export const QUEUES: Readonly<Record<QueueRoute, (location: string, handled: () => void) => Promise<Keep>>> = {
  "pg-boss": startPgBoss,
  "graphile-worker": startGraphileWorker,
  "graphile-worker-handling": startGraphileHandling,
  insert: startInserting,
  bullmq: startBullmq,
};

/** Each handles a backlog and returns how many events a second, counted to the last row. */
export const WORKERS: Readonly<Record<Worker, (backlog: Backlog) => Promise<number>>> = {
  "pg-boss": handleByPgBoss,
  "graphile-worker": handleByGraphile,
  dbos: handleByDbos,
};

/** The few functions of it that are called here. */
interface PgBoss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(): Promise<void>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
  insert(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<unknown>;
  work(
    name: string,
    options: { readonly batchSize: number; readonly pollingIntervalSeconds: number },
    handler: (jobs: readonly { readonly data: { readonly identity: string } }[]) => Promise<void>,
  ): Promise<string>;
  notifyWorker(id: string): void;
  getQueueSize(name: string, options: { readonly before: "completed" }): Promise<number>;
}
type PgBossClass = new (options: {
  readonly connectionString: string;
  readonly max: number;
  readonly supervise: boolean;
  readonly schedule: boolean;
}) => PgBoss;

async function openPgBoss(connectionString: string): Promise<PgBoss> {
  const Boss: PgBossClass = peerPackages()("pg-boss");
  const boss = new Boss({ connectionString, max: CONNECTIONS, supervise: false, schedule: false });
  boss.on("error", console.error);
  await boss.start();
  await boss.createQueue(QUEUE);
  return boss;
}

async function startPgBoss(connectionString: string): Promise<Keep> {
  const boss = await openPgBoss(connectionString);
  return async ({ event }) => {
    if ((await boss.send(QUEUE, event)) === null) throw new Error("pg-boss took no job.");
  };
}

/** Two workers with batches of four were faster than one with eight and than eight with one. */
const BOSS_WORKERS = 2;
const LEAST_POLLING_SECONDS = 0.5;

async function handleByPgBoss({ url, events, insert }: Backlog): Promise<number> {
  const boss = await openPgBoss(url);
  await boss.insert(Array.from({ length: events }, () => ({ name: QUEUE, data: { identity: randomUUID() } })));
  const options = { batchSize: CONCURRENCY / BOSS_WORKERS, pollingIntervalSeconds: LEAST_POLLING_SECONDS };
  const speed = await paceOf(events, async (handled) => {
    const startWorker = async () => {
      const id: string = await boss.work(QUEUE, options, async (jobs) => {
        // A worker that is not notified waits for the polling interval after each batch, also when more is due.
        boss.notifyWorker(id);
        await Promise.all(jobs.map(({ data }) => insert(data.identity).then(handled)));
      });
    };
    await Promise.all(Array.from({ length: BOSS_WORKERS }, startWorker));
  });
  // It does not wait for its completions, and a closed pool would refuse them.
  while ((await boss.getQueueSize(QUEUE, { before: "completed" })) > 0) await wait(20);
  await boss.stop();
  return speed;
}

/** The few functions of it that are called here. */
interface GraphileWorker {
  run(options: {
    readonly connectionString: string;
    readonly concurrency: number;
    readonly maxPoolSize: number;
    readonly logger: unknown;
    readonly taskList: Readonly<Record<string, (payload: unknown, helpers: Helpers) => Promise<void>>>;
  }): Promise<{ stop(): Promise<void> }>;
  makeWorkerUtils(options: { connectionString: string }): Promise<{
    migrate(): Promise<void>;
    addJob(name: string, payload: object, options: { jobKey: string }): Promise<unknown>;
    release(): Promise<void>;
  }>;
  Logger: new (factory: () => () => void) => unknown;
}

interface Helpers {
  /** Its key is the identity of the event. */
  readonly job: { readonly key: string };
  withPgClient(work: (client: PgClient) => Promise<unknown>): Promise<unknown>;
}

async function startGraphileWorker(connectionString: string): Promise<Keep> {
  const { makeWorkerUtils }: GraphileWorker = peerPackages()("graphile-worker");
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  return async ({ event, identity }) => {
    await utils.addJob(QUEUE, event, { jobKey: identity });
  };
}

/** It stores, and handles in the same process. */
async function startGraphileHandling(connectionString: string, handled: () => void): Promise<Keep> {
  const keep = await startGraphileWorker(connectionString);
  await queryOnce(connectionString, DONE.create);
  await runGraphile(connectionString, handled);
  return keep;
}

function runGraphile(connectionString: string, handled: () => void): Promise<{ stop(): Promise<void> }> {
  const { run, Logger }: GraphileWorker = peerPackages()("graphile-worker");
  const taskList = {
    [QUEUE]: async (_payload: unknown, { job, withPgClient }: Helpers) => {
      const insert = { name: "insert", text: DONE.insert, values: DONE.valuesOf(job.key) };
      await withPgClient((client) => client.query(insert));
      handled();
    },
  };
  const logger = new Logger(() => () => {});
  return run({ connectionString, concurrency: CONCURRENCY, maxPoolSize: CONNECTIONS, logger, taskList });
}

async function handleByGraphile({ url, events }: Backlog): Promise<number> {
  const { makeWorkerUtils }: GraphileWorker = peerPackages()("graphile-worker");
  const utils = await makeWorkerUtils({ connectionString: url });
  await utils.migrate();
  await utils.release();
  const add =
    "select graphile_worker.add_job($1, '{}', job_key := gen_random_uuid()::text) from generate_series(1, $2)";
  await queryOnce(url, add, [QUEUE, events]);
  let runner: { stop(): Promise<void> } | undefined;
  const speed = await paceOf(events, async (handled) => {
    runner = await runGraphile(url, handled);
  });
  await runner?.stop();
  return speed;
}

/** The few functions of it that are called here. */
interface Dbos {
  setConfig(config: {
    readonly name: string;
    readonly systemDatabaseUrl: string;
    readonly systemDatabasePoolSize: number;
    readonly logLevel: string;
  }): void;
  registerWorkflow(work: Workflow, options: { readonly name: string }): Workflow;
  launch(): Promise<void>;
  shutdown(options: { readonly deregister: boolean }): Promise<void>;
  runStep(step: () => Promise<void>, options: { readonly name: string }): Promise<void>;
  startWorkflow(
    workflow: Workflow,
    options: { readonly workflowID: string },
  ): (identity: string) => Promise<{ getResult(): Promise<unknown> }>;
}
type Workflow = (identity: string) => Promise<void>;

/**
 * As its documentation advises for webhooks: a workflow for each event, with the event's identity as its id. A step writes the
 * row, because none of its data sources on the registry starts with this version. Workflows are started directly, eight at once:
 * that was faster than one of its queues with as many at once, although the time includes storing the event.
 */
async function handleByDbos({ url, events, insert }: Backlog): Promise<number> {
  const { DBOS }: { readonly DBOS: Dbos } = peerPackages()("@dbos-inc/dbos-sdk");
  const systemDatabaseUrl = new URL("/dbos", url).href;
  DBOS.setConfig({ name: "bench", systemDatabaseUrl, systemDatabasePoolSize: CONNECTIONS, logLevel: "error" });
  const write: Workflow = (identity) => DBOS.runStep(() => insert(identity), { name: "insert" });
  const workflow = DBOS.registerWorkflow(write, { name: "handle" });
  await DBOS.launch();
  let left = events;
  const speed = await paceOf(events, (handled) => {
    const inTurn = async () => {
      while (left-- > 0) {
        const identity = randomUUID();
        const handle = await DBOS.startWorkflow(workflow, { workflowID: identity })(identity);
        await handle.getResult();
        handled();
      }
    };
    return Promise.all(Array.from({ length: CONCURRENCY }, inTurn));
  });
  await DBOS.shutdown({ deregister: true });
  return speed;
}

/** On a connection of its own. */
export async function queryOnce<Row extends object>(url: string, text: string, values: readonly unknown[] = []) {
  const { Client } = (await import("pg")).default;
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

/** Events a second, from the start until `handled` was called for each. */
async function paceOf(events: number, start: (handled: () => void) => Promise<unknown>): Promise<number> {
  let left = events;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const startedAt = performance.now();
  await start(() => {
    left -= 1;
    if (left === 0) finish();
  });
  await finished;
  return (events * 1_000) / (performance.now() - startedAt);
}

/** The table that one would write oneself, and a statement that is parsed once on each connection. */
async function startInserting(connectionString: string): Promise<Keep> {
  const { Pool } = (await import("pg")).default;
  const pool = new Pool({ connectionString });
  await pool.query(
    "create table webhook (identity text primary key, raw bytea not null, at timestamptz default now())",
  );
  const text = "insert into webhook (identity, raw) values ($1, $2) on conflict do nothing";
  return async ({ raw, identity }) => {
    await pool.query({ name: "keep", text, values: [identity, raw] });
  };
}

async function startBullmq(url: string): Promise<Keep> {
  const queue = new Queue(QUEUE, { connection: redisAt(url) });
  await queue.waitUntilReady();
  return async ({ event, identity }) => {
    await queue.add(event.eventType, event, { jobId: identity });
  };
}

export function redisAt(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
