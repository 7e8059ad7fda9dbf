/** Measures the SQLite store alone: events a second accepted, and handled with a transactional effect. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NewEvent } from "../src/inbox/record.ts";
import type { Lease, Settle, Turn } from "../src/inbox/store.ts";
import { systemClock } from "../src/internal/clock.ts";
import { silentLogger } from "../src/internal/logger.ts";
import { thisInstance } from "../src/internal/process.ts";
import { type SqliteDatabase, sqliteStore } from "../src/stores/sqlite.ts";

const BATCH = 64;
const EVENTS = Number(process.argv[2] ?? 100_000);

const TYPES = ["message.queued", "message.sent", "message.delivery"];

/** An id that grows with time, as most services make them, or one without order. */
function idOf(index: number, random: boolean): string {
  if (random) return `msg_${createHash("sha256").update(`${index}`).digest("hex").slice(0, 24)}`;
  return `msg_01${index.toString(36).padStart(12, "0")}kx7q`;
}

export function makeEvent(message: number, sequence: number, random = false): NewEvent {
  const messageId = idOf(message, random);
  const now = Date.now();
  const eventType = TYPES[sequence - 1] ?? "message.failed";
  const data = { messageId, externalReference: `order-${message}`, sendFrom: "+15550001111", to: "+15552223333" };
  const raw = Buffer.from(
    JSON.stringify({
      eventType,
      direction: "outbound",
      occurredAt: now,
      apiClientId: "client_1",
      messageId,
      sequence,
      data,
    }),
  );
  return {
    lane: { apiClientId: "client_1", tag: "outbound", messageId },
    ...{ sequence, eventType, occurredAt: now, signedAt: now, gapWaitMs: 90_000, raw, trace: null },
    ...{
      digest: createHash("sha256").update(raw).digest(),
      peer: "+15552223333",
      externalReference: `order-${message}`,
    },
  };
}

export function turnOf(turn: Partial<Turn<SqliteDatabase>>, limit: number): Turn<SqliteDatabase> {
  return {
    ...{ settles: [], accepts: [], quarantines: [], repeats: [], lateEvents: "hand_out" },
    quarantineQuota: { maxRows: 1000, maxBytes: 2 ** 26 },
    claim: { limit, leaseMs: 60_000, maxAttempts: 12, onDead: "continue", mode: "ordinary" },
    ...turn,
  };
}

export async function openStore(path: string) {
  const store = sqliteStore(path);
  const instance = thisInstance();
  const context = { clock: systemClock, logger: silentLogger, name: "bench", firstSequence: 1, toleranceMs: 300_000 };
  await store.open({ ...context, migrate: "auto", instance });
  return store;
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), "oncehook-bench-"));
  try {
    for (const random of [false, true]) await accepted(join(directory, `accept-${random}.db`), random);
    for (const perMessage of [1, 3]) await handled(join(directory, `handle-${perMessage}.db`), perMessage);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function accepted(path: string, random: boolean): Promise<void> {
  const store = await openStore(path);
  const events = Array.from({ length: EVENTS }, (_, i) => makeEvent(Math.floor(i / 3), (i % 3) + 1, random));
  const start = now();
  for (let i = 0; i < EVENTS; i += BATCH) await store.step(turnOf({ accepts: events.slice(i, i + BATCH) }, 0));
  report(`accept, ${random ? "random" : "ordered"} ids`, EVENTS, start, path);
  await store.close();
}

async function handled(path: string, perMessage: number): Promise<void> {
  const store = await openStore(path);
  const events = Array.from({ length: EVENTS }, (_, i) => {
    // Batches of the same sequence, so that each event is its lane's only one.
    const block = Math.floor(i / (BATCH * perMessage));
    const within = i % (BATCH * perMessage);
    return makeEvent(block * BATCH + (within % BATCH), Math.floor(within / BATCH) + 1);
  });
  let table = false;
  let leases: readonly Lease[] = [];
  let done = 0;
  const start = now();
  for (let i = 0; done < EVENTS; i += BATCH) {
    const settles = leases.map((lease): Settle<SqliteDatabase> => {
      const effect = (tx: SqliteDatabase) => {
        if (!table) tx.exec("create table if not exists note (id integer primary key, event integer)");
        table = true;
        insert ??= tx.prepare("insert into note (event) values (?)");
        insert.run(lease.event);
      };
      return { kind: "complete", lease, outcome: "handled", effects: [effect] };
    });
    const result = await store.step(turnOf({ settles, accepts: events.slice(i, i + BATCH) }, BATCH));
    done += result.settled.filter(({ status }) => status === "settled").length;
    leases = result.leases;
  }
  insert = undefined;
  report(`accept, lease at once and complete with an effect, ${perMessage} a message`, EVENTS, start, path);
  await store.close();
}

let insert: ReturnType<SqliteDatabase["prepare"]> | undefined;

interface Start {
  readonly at: number;
  readonly cpu: NodeJS.CpuUsage;
}

function now(): Start {
  return { at: performance.now(), cpu: process.cpuUsage() };
}

function report(what: string, count: number, start: Start, path: string): void {
  const seconds = (performance.now() - start.at) / 1000;
  const { user, system } = process.cpuUsage(start.cpu);
  const cpu = (user + system) / count;
  const bytes = statSync(path).size + statSync(`${path}-wal`).size;
  console.log(
    `${what}: ${Math.round(count / seconds)} events/s, ${Math.round(bytes / count)} bytes an event in file and log, ${cpu.toFixed(1)} µs of processor`,
  );
}

await main();
