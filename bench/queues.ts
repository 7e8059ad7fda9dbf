/** What others store an event in before the 2xx: jobs of pg-boss, graphile-worker and BullMQ, or a row of one's own. */
import { Queue } from "bullmq";
import type { WebhookEvent } from "../src/index.ts";
import { peerPackages } from "./peer-packages.ts";

export type QueueRoute = "pg-boss" | "graphile-worker" | "insert" | "bullmq";

/** An event as it came, and what its duplicates are known by. */
interface Received {
  readonly event: WebhookEvent;
  readonly raw: Buffer;
  readonly identity: string;
}

/** Resolves when the event is stored. */
type Keep = (received: Received) => Promise<void>;

/** The name of each one's queue. */
export const QUEUE = "webhooks";

/** Opens each at a `postgres://…` or a `redis://…`. Upkeep and workers are left out: they would only cost them time. */
export const QUEUES: Readonly<Record<QueueRoute, (location: string) => Promise<Keep>>> = {
  "pg-boss": startPgBoss,
  "graphile-worker": startGraphileWorker,
  insert: startInserting,
  bullmq: startBullmq,
};

/** The few functions of it that are called here. */
interface PgBoss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string): Promise<void>;
  send(name: string, data: object): Promise<string | null>;
}
type PgBossClass = new (options: { connectionString: string; supervise: boolean; schedule: boolean }) => PgBoss;

async function startPgBoss(connectionString: string): Promise<Keep> {
  const Boss: PgBossClass = peerPackages()("pg-boss");
  const boss = new Boss({ connectionString, supervise: false, schedule: false });
  boss.on("error", console.error);
  await boss.start();
  await boss.createQueue(QUEUE);
  return async ({ event }) => {
    if ((await boss.send(QUEUE, event)) === null) throw new Error("pg-boss took no job.");
  };
}

/** The few functions of it that are called here. */
interface GraphileWorker {
  makeWorkerUtils(options: { connectionString: string }): Promise<{
    migrate(): Promise<void>;
    addJob(name: string, payload: object, options: { jobKey: string }): Promise<unknown>;
  }>;
}

async function startGraphileWorker(connectionString: string): Promise<Keep> {
  const { makeWorkerUtils }: GraphileWorker = peerPackages()("graphile-worker");
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  return async ({ event, identity }) => {
    await utils.addJob(QUEUE, event, { jobKey: identity });
  };
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
