/** How each side that stores is served on Fastify, where it stores, and how many events it holds afterwards. */
import { join } from "node:path";
import Database from "better-sqlite3";
import { Queue } from "bullmq";
import { startPostgres } from "../test/stores/postgres/server.ts";
import type { Served } from "./http.ts";
import { QUEUE, queryOnce, redisAt } from "./queues.ts";
import { type Sync, startRedis } from "./redis.ts";
import type { Route } from "./server.ts";
import type { Side } from "./sides.ts";

export type KeptSide = Exclude<Side, "bare" | "verify">;

interface Kept {
  readonly route: Route;
  readonly place: "file" | "process" | "postgres" | Sync;
  /** Of a round, where it takes long for each. Default: all. */
  readonly requests?: number;
  /** How many it holds; null where nobody else can look. */
  readonly count: ((location: string) => Promise<number>) | null;
}

const inTable = (table: string) => (url: string) => countRows(url, table);
const KEPT: Readonly<Record<KeptSide, Kept>> = {
  accept: { route: "accept", place: "file", count: countEvents },
  memory: { route: "memory", place: "process", count: null },
  postgres: { route: "postgres", place: "postgres", requests: 15_000, count: inTable("oncehook.event") },
  insert: { route: "insert", place: "postgres", requests: 10_000, count: inTable("webhook") },
  "pg-boss": { route: "pg-boss", place: "postgres", requests: 4_000, count: inTable("pgboss.job") },
  "graphile-worker": {
    ...{ route: "graphile-worker", place: "postgres", requests: 2_000 },
    count: inTable("graphile_worker._private_jobs"),
  },
  "bullmq-everysec": { route: "bullmq", place: "everysec", requests: 15_000, count: countJobs },
  "bullmq-always": { route: "bullmq", place: "always", requests: 15_000, count: countJobs },
};

/** Where the sides store: the address of each server, null for one that is not installed. */
export interface Places {
  readonly locations: ReadonlyMap<Kept["place"], string | null>;
  stop(): Promise<void>;
}

/** Starts the servers that the sides need, once each. */
export async function startPlaces(sides: readonly KeptSide[], directory: string): Promise<Places> {
  const locations = new Map<Kept["place"], string | null>();
  const servers: { stop(): Promise<unknown> }[] = [];
  const stop = async () => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  try {
    for (const place of new Set(sides.map((side) => KEPT[side].place))) {
      if (place === "file" || place === "process") locations.set(place, join(directory, "inbox.db"));
      else {
        const server = await (place === "postgres" ? startPostgres({ inMemory: false }) : startRedis(directory, place));
        if (server !== null) servers.push(server);
        locations.set(place, server?.url ?? null);
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { locations, stop };
}

/** Null where its server is not installed. */
export function servedOf(side: KeptSide, { locations }: Places): Served | null {
  const { route, place, requests } = KEPT[side];
  const inbox = locations.get(place) ?? null;
  if (inbox === null) return null;
  return { route, framework: "fastify", inbox, ...(requests === undefined ? {} : { requests }) };
}

/** A side that answers 200 without having stored each request would win by it. */
export async function checkStored(side: KeptSide, { locations }: Places, expected: number): Promise<void> {
  const { place, count } = KEPT[side];
  const stored = await count?.(locations.get(place) ?? "");
  if (stored !== undefined && stored !== expected) throw new Error(`${side} holds ${stored} of ${expected} events.`);
}

async function countEvents(path: string): Promise<number> {
  const db = new Database(path, { readonly: true });
  const count = db.prepare("select count(*) from oncehook_event").pluck().get();
  db.close();
  return Number(count);
}

export async function countRows(url: string, table: string): Promise<number> {
  const [row] = await queryOnce<{ readonly count: number }>(url, `select count(*)::int as count from ${table}`);
  return row?.count ?? 0;
}

async function countJobs(url: string): Promise<number> {
  const queue = new Queue(QUEUE, { connection: redisAt(url) });
  const { waiting = 0 } = await queue.getJobCounts("waiting");
  await queue.close();
  return waiting;
}
