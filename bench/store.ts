/** The stores by themselves, as the core drives them. */
import { hash } from "node:crypto";
import type { NewEvent } from "../src/inbox/record.ts";
import { DEFAULT_SEQUENCE_RULES } from "../src/inbox/sequence-rules.ts";
import type { OpenContext, Turn } from "../src/inbox/store.ts";
import { systemClock } from "../src/internal/clock.ts";
import { silentLogger } from "../src/internal/logger.ts";
import { thisInstance } from "../src/internal/process.ts";
import { type PostgresStoreOptions, postgresStore } from "../src/stores/postgres.ts";
import { type SqliteDatabase, sqliteStore } from "../src/stores/sqlite.ts";
import { bodyOf, nextMessageId, randomMessageId } from "./deliveries.ts";

const CONTEXT = {
  clock: systemClock,
  logger: silentLogger,
  rules: { name: "default", toleranceMs: 300_000 },
  migrate: "auto",
  instance: thisInstance(),
} as const satisfies OpenContext;

/** As a receiver records it before it accepts: without it a store looks for the entry in each batch. */
const ENTRY = { name: "service", preset: "service", shows: [], sequence: DEFAULT_SEQUENCE_RULES };

export async function openStore(path: string) {
  const store = sqliteStore(path);
  await store.open(CONTEXT);
  await store.admit([ENTRY]);
  return store;
}

export async function openPostgres(url: string, options: PostgresStoreOptions = {}) {
  const store = postgresStore(url, options);
  await store.open(CONTEXT);
  await store.admit([ENTRY]);
  return store;
}

export function turnOf<Db = SqliteDatabase>(turn: Partial<Turn<Db>>, limit: number): Turn<Db> {
  return {
    settles: [],
    accepts: [],
    quarantines: [],
    quarantineQuota: { maxRows: 1_000, maxBytes: 2 ** 26 },
    claim: { limit, leaseMs: 60_000, maxAttempts: 12, onDead: "continue", mode: "ordinary", takes: () => true },
    ...turn,
  };
}

/** A new message's event, by how its id relates to the ids before it. */
export const MESSAGES = {
  ordered: { event: (sequence: number) => eventOf(nextMessageId(), sequence) },
  random: { event: (sequence: number) => eventOf(randomMessageId(), sequence) },
};

export function eventOf(messageId: string, sequence: number): NewEvent {
  const raw = bodyOf(messageId, sequence);
  const now = Date.now();
  return {
    lane: { source: "service", tenant: "apc_1", name: messageId, order: "sequence" },
    sequence,
    eventType: "message.queued",
    occurredAt: now,
    signedAt: now,
    gapWaitMs: 80_000_000,
    digest: hash("sha256", raw, "buffer"),
    raw,
    trace: null,
    peer: "+14155550101",
    externalReference: `order-${messageId.slice(-8)}`,
  };
}
