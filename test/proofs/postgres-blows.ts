/** What happens to processes on a Postgres inbox, their server and the pooler in front of it, while deliveries come. */
import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, shuffled } from "../../src/tools/testing/index.ts";
import type { PgBouncer } from "../stores/postgres/pgbouncer.ts";
import type { PostgresServer } from "../stores/postgres/server.ts";
import type { Family } from "./family.ts";
import { OWN_NAME } from "./inbox.ts";

/** How often each happens. */
export interface Blows {
  /** Of a process. */
  readonly kills: number;
  /** Crashes of the server. */
  readonly restarts: number;
  /** Ends of all connections of the inbox. */
  readonly cuts: number;
  /** Kills of the pooler. */
  readonly bounces: number;
  /** A process stands still for `pauseMs`, in the middle of handlers. */
  readonly pauses: number;
  readonly pauseMs: number;
}

export interface Place {
  readonly family: Family;
  readonly server: PostgresServer;
  readonly bouncer: PgBouncer | null;
  readonly seed: number;
  /** Resolves with the next acknowledgement. */
  nextAnswer(): Promise<void>;
  say(line: string): void;
}

export interface Pause {
  /** Events in handlers of the process that stood still. */
  readonly inHandlers: number;
  /** Of them, those that others had completed before it went on. */
  readonly takenOver: number;
}

/** What was seen of it. */
export interface Struck {
  /** From a restart of the server to the next acknowledgement, ms, by a process that was running before it. */
  slowestReturnMs: number;
  /** By the server's own count. */
  deadlocks: number;
  /** Transactions that ended with their connections. */
  cutTransactions: number;
  readonly pauses: Pause[];
}

const MOST_CUTS = 50;
/** Ends every connection of the inbox; returns in how many of them a transaction was open. */
const CUT = `with cut as materialized (select pg_terminate_backend(pid) as is_cut, xact_start from pg_stat_activity
    where backend_type = 'client backend' and application_name <> '${OWN_NAME}')
  select count(*) from cut where is_cut and xact_start is not null`;

type Blow = Exclude<keyof Blows, "pauses" | "pauseMs">;

/** All of them, in an order that `seed` decides; pauses at the same time. */
export async function strikeAll(place: Place, blows: Blows): Promise<Struck> {
  const { family, seed, say } = place;
  const struck: Struck = { slowestReturnMs: 0, deadlocks: 0, cutTransactions: 0, pauses: [] };
  const random = seededRandom(seed);
  const kinds = ["kills", "restarts", "cuts", "bounces"] as const;
  const order = shuffled(
    kinds.flatMap((kind) => Array.from({ length: blows[kind] }, () => kind)),
    random,
  );
  const strikeEach = async () => {
    for (const [index, blow] of order.entries()) {
      await sleep(50 + random() * 250);
      await strike(blow, place, random, struck);
      if ((index + 1) % 20 === 0) say(`${index + 1} of ${order.length} blows, ${JSON.stringify(struck)}`);
    }
  };
  const pauseEach = async () => {
    for (let pause = 0; pause < blows.pauses; pause++) struck.pauses.push(await standStill(family, blows.pauseMs));
  };
  await Promise.all([strikeEach(), pauseEach()]);
  struck.deadlocks += await deadlocksOf(family);
  return struck;
}

async function strike(blow: Blow, place: Place, random: () => number, struck: Struck): Promise<void> {
  const { family, server, bouncer } = place;
  switch (blow) {
    case "kills": {
      const { running } = family;
      const child = running[Math.floor(random() * running.length)];
      return child === undefined ? undefined : family.replace(child);
    }
    case "restarts": {
      // A crash forgets them.
      struck.deadlocks += await deadlocksOf(family);
      await server.restart();
      const upAt = performance.now();
      await place.nextAnswer();
      struck.slowestReturnMs = Math.max(struck.slowestReturnMs, Math.round(performance.now() - upAt));
      return;
    }
    case "cuts":
      struck.cutTransactions += await cutTransactions(family);
      return;
    case "bounces":
      return bouncer?.restart();
    default:
      return blow satisfies never;
  }
}

/** Ends all connections, again and again until some of them had a transaction. */
async function cutTransactions(family: Family): Promise<number> {
  for (let tries = 0; tries < MOST_CUTS; tries++) {
    const count = await family.look.seen(CUT);
    if (count > 0) return count;
    await sleep(20);
  }
  return 0;
}

async function standStill(family: Family, pauseMs: number): Promise<Pause> {
  // Not the one that lacks a source.
  const child = family.having("code")[0];
  if (child === undefined) return { inHandlers: 0, takenOver: 0 };
  const events = await family.stopInHandlers(child);
  await sleep(pauseMs);
  const takenOver = await family.look.seen(
    `select count(distinct event) from {effect} where event in (${events}) and pid <> ${child.pid}`,
  );
  family.goOn(child);
  return { inHandlers: events.length, takenOver };
}

function deadlocksOf(family: Family): Promise<number> {
  return family.look.seen("select deadlocks from pg_stat_database where datname = current_database()");
}
