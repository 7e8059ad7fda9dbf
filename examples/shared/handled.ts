/** What the examples do with an event: a row in `handled`, committed together with the event's completion, and a line of JSON. */
import Database from "better-sqlite3";
import type { HandlerContext, Receiver, WebhookEvent } from "oncehook";
import type { SqliteDatabase } from "oncehook/sqlite";
import { placeOf, printEvent } from "./event-line.ts";

/** A row of the examples' own table. */
export interface HandledRow {
  readonly message_id: string | null;
  readonly sequence: number;
  readonly event_type: string;
}

/** Makes the examples' own table; for the `onOpen` option of `sqliteStore`. */
export function createHandledTable(db: SqliteDatabase): void {
  db.exec(
    "create table if not exists handled (id integer primary key autoincrement, message_id text, sequence integer, event_type text)",
  );
}

/**
 * Records and prints every event.
 *
 * The row is written exactly once: it commits with the completion of its event, and a message's rows are in ascending
 * sequence. The line is printed while the handler runs, just before that commit: a crash in between, or a handler registered
 * after this one that fails, prints it again with the next attempt. So a row without a line does not exist; a line twice can.
 * A late event is printed only, because the table holds what happened in order.
 */
export function recordHandled(receiver: Receiver<SqliteDatabase>): void {
  receiver.onAny(keepRow);
  receiver.onAny(printEvent);
  receiver.onLate(printEvent);
}

/** A handler that writes the event's row. */
export function keepRow(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): void {
  const { messageId, sequence } = placeOf(event);
  ctx.commit((db) =>
    db
      .prepare("insert into handled (message_id, sequence, event_type) values (?, ?, ?)")
      .run(messageId, sequence, event.eventType),
  );
}

/** The rows in the order of handling. */
export function readHandled(inboxPath: string): HandledRow[] {
  const db = new Database(inboxPath, { readonly: true });
  try {
    return db.prepare("select message_id, sequence, event_type from handled order by id").all() as HandledRow[];
  } finally {
    db.close();
  }
}
