/** The application's own table: a row for each event, written in the transaction in which the event is completed. */
import { isKnownEvent, type WebhookEvent } from "../../events/types.ts";
import type { HandlerContext } from "../../inbox/handlers.ts";
import { connect, loadDriver, type SqliteDatabase } from "../../internal/sqlite-driver.ts";

export interface HandledRow {
  readonly message_id: string;
  readonly sequence: number;
}

const BUSY_MS = 1_000;

export function createHandledTable(db: SqliteDatabase): void {
  db.exec("create table handled (id integer primary key autoincrement, message_id text, sequence integer)");
}

/** A handler. An inbound message has no sequence: 0. */
export function keepRow(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): void {
  const { messageId } = ctx.meta.lane;
  const sequence = isKnownEvent(event) && event.direction === "outbound" ? event.sequence : 0;
  ctx.commit((db) => db.prepare("insert into handled (message_id, sequence) values (?, ?)").run(messageId, sequence));
}

/** The rows in the order of handling. */
export async function readHandled(inboxPath: string): Promise<HandledRow[]> {
  const Database = await loadDriver();
  const db = connect(Database, inboxPath, { timeout: BUSY_MS, fileMustExist: true });
  try {
    return db.prepare("select message_id, sequence from handled order by id").all() as HandledRow[];
  } finally {
    db.close();
  }
}
