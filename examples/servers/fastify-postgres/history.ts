/** The application's own table, in the inbox's database: what happened to each message. */

import type { HandlerContext, WebhookEvent } from "oncehook";
import type { PgClient } from "oncehook/postgres";
import { Client, type Pool } from "pg";
import { EnvironmentError } from "../../shared/environment.ts";
import { placeOf } from "../../shared/event-line.ts";

export interface HistoryEntry {
  readonly sequence: number;
  readonly eventType: string;
}

/** Two machines that start at once would both make it; the lock lasts for the transaction, which these statements are together. */
const SCHEMA = `
  select pg_advisory_xact_lock(hashtext('example message_history'));
  create table if not exists message_history (
    id bigint generated always as identity primary key, message_id text, sequence integer, event_type text, pid integer);
  create index if not exists message_history_by_message on message_history (message_id)`;

/**
 * Makes the table, as migrations of an application would. It is the first to speak to the database.
 *
 * @throws EnvironmentError that says what is wrong with the database of `DATABASE_URL`
 */
export async function createHistoryTable(databaseUrl: string): Promise<void> {
  try {
    const client = new Client({ connectionString: databaseUrl });
    await client.connect();
    try {
      await client.query(SCHEMA);
    } finally {
      await client.end();
    }
  } catch (error) {
    throw new EnvironmentError(`DATABASE_URL: ${reasonOf(error)}`);
  }
}

/** By the error's code alone: its text may quote a part of the address, and in a mistaken one that part can be the password. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known = REASONS.find(([pattern]) => pattern.test(code));
  if (known === undefined) return `the database cannot be used${code && ` (${code})`}: look into the server's log.`;
  return `${known[1]} (${code}).`;
}

const REASONS: readonly (readonly [code: RegExp, reason: string])[] = [
  [/^28/, "the server refused the role or its password"],
  [/^3D000$/, "the server has no such database"],
  [/^42501$/, "the role may make no table in this database"],
  [/^ERR_INVALID_URL$/, 'it is not an address; in a password "@" is written %40, "/" %2F, "#" %23, "?" %3F'],
  [/^E[A-Z]/, "the server cannot be reached: look at host and port"],
];

/** A handler that writes the event's row: it commits with the event's completion, or not at all. */
export function keepRow(event: WebhookEvent, ctx: HandlerContext<PgClient>): void {
  const { messageId, sequence } = placeOf(event);
  const row = [messageId, sequence, event.eventType, process.pid];
  ctx.commit(async (client) => {
    await client.query(
      "insert into message_history (message_id, sequence, event_type, pid) values ($1, $2, $3, $4)",
      row,
    );
  });
}

/** What happened to a message so far, by sequence; empty for one that is not known. */
export async function readHistory(pool: Pool, messageId: string): Promise<HistoryEntry[]> {
  const { rows } = await pool.query<HistoryEntry>(
    'select sequence, event_type as "eventType" from message_history where message_id = $1 order by sequence, id',
    [messageId],
  );
  return rows;
}
