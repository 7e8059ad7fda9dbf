/** A backlog of messages of many keys in an inbox on Postgres, and what became of it. */
import { hash } from "node:crypto";
import pg from "pg";
import type { NewEvent } from "../../../src/inbox/record.ts";
import { createReceiver } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { postgresStore } from "../../../src/stores/postgres.ts";

export const SECRET = "whsec_rates_0123456789abcdef";
/** The events of a message. */
const SEQUENCES = 2;
const BATCH = 250;
const MINUTE = 60_000;

export interface Handled {
  readonly message: string;
  readonly sequence: number;
  /** When its handler started, epoch milliseconds. */
  readonly at: number;
}

export interface Place {
  readonly url: string;
  readonly schema: string;
}

/** A message's id is `k7-3`: the fourth of the key `k7`. */
export const keyOf = (message: string): string => message.split("-", 1)[0] ?? "";

/** The keys behind each other: the worst order for the last one. */
export async function fill({ url, schema }: Place, keys: number, events: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`create table ${schema}_handled (message text, sequence int, at bigint)`);
  await client.end();
  const store = postgresStore(url, { schema });
  const receiver = createReceiver({ secrets: SECRET, store, logger: silentLogger }).onAny(() => {});
  // Its inbox is made here, and nothing is handled.
  await receiver.inbox.stats();
  const perKey = Math.floor(events / keys / SEQUENCES);
  const all = Array.from({ length: keys * perKey }, (_, index) => `k${Math.floor(index / perKey)}-${index % perKey}`);
  for (let from = 0; from < all.length; from += BATCH) {
    const accepts = all.slice(from, from + BATCH).flatMap((message) => [eventOf(message, 1), eventOf(message, 2)]);
    await store.step({
      ...{ settles: [], accepts, quarantines: [] },
      quarantineQuota: { maxRows: 1, maxBytes: 1 },
      claim: { limit: 0, leaseMs: 0, maxAttempts: 1, onDead: "continue", takes: () => true, mode: "ordinary" },
    });
  }
  await receiver.stop();
}

function eventOf(messageId: string, sequence: number): NewEvent {
  // Long before now: none of them is fresh.
  const at = Date.now() - 10 * MINUTE;
  const data = {
    messageId,
    externalReference: "order 1",
    sendFrom: "+15550100001",
    to: "+15550100002",
    status: "sent",
    error: null,
  };
  const event = {
    eventType: "message.sent",
    direction: "outbound",
    occurredAt: at,
    apiClientId: "apc_1",
    messageId,
    sequence,
    data,
  };
  const raw = Buffer.from(JSON.stringify(event));
  return {
    lane: { apiClientId: "apc_1", tag: "outbound", messageId },
    ...{ sequence, eventType: event.eventType, occurredAt: at, signedAt: at, gapWaitMs: MINUTE },
    ...{ digest: hash("sha256", raw, "buffer"), raw, trace: null, peer: null, externalReference: null },
  };
}

export async function handledAt({
  url,
  schema,
}: Place): Promise<{ readonly handled: readonly Handled[]; readonly pending: number }> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `select message, sequence, at::float8 as at from ${schema}_handled order by at`,
    );
    const { rows: left } = await client.query(`select count(*)::int as pending from ${schema}.event where state = 0`);
    return { handled: rows, pending: left[0].pending };
  } finally {
    await client.end();
  }
}
