/** The application's own table, in the inbox's database: what happened to each message, in order. */

import type { HandlerContext, WebhookEvent } from "oncehook";
import type { PgClient } from "oncehook/postgres";
import { Client, type Pool } from "pg";
import { placeOf } from "../shared/event-line.ts";

export interface HistoryEntry {
  readonly sequence: number;
  readonly eventType: string;
}

/** Two machines that start at once would both make it; the lock lasts for the transaction, which these statements are together. */
const SCHEMA = `
  select pg_advisory_xact_lock(hashtext('example handled'));
  create table if not exists handled (
    id bigint generated always as identity primary key, message_id text, sequence integer, event_type text, pid integer);
  create index if not exists handled_by_message on handled (message_id)`;

/** Makes the table, as migrations of an application would. */
export async function createHandledTable(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(SCHEMA);
  } finally {
    await client.end();
  }
}

/** A handler that writes the event's row: it commits with the event's completion, or not at all. */
export function keepRow(event: WebhookEvent, ctx: HandlerContext<PgClient>): void {
  const { messageId, sequence } = placeOf(event);
  const row = [messageId, sequence, event.eventType, process.pid];
  ctx.commit(async (client) => {
    await client.query("insert into handled (message_id, sequence, event_type, pid) values ($1, $2, $3, $4)", row);
  });
}

/** What happened to a message so far; empty for one that is not known. */
export async function readHistory(pool: Pool, messageId: string): Promise<HistoryEntry[]> {
  const { rows } = await pool.query<HistoryEntry>(
    'select sequence, event_type as "eventType" from handled where message_id = $1 order by id',
    [messageId],
  );
  return rows;
}
