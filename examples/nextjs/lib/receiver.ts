/**
 * The receiver of all routes. Next.js evaluates this file once per bundle, and again on each reload in development:
 * `nextWebhook` makes the newest receiver go on with the inbox and the worker of the one before.
 */
import { createReceiver, type HandlerContext, isKnownEvent, type WebhookEvent } from "oncehook";
import { nextWebhook } from "oncehook/next";
import { type SqliteDatabase, sqliteStore } from "oncehook/sqlite";
import { readSecrets } from "./environment";

const store = sqliteStore(process.env.INBOX_PATH || "./inbox.db", {
  onOpen: (db) =>
    db.exec(
      "create table if not exists handled (id integer primary key autoincrement, message_id text, sequence integer, event_type text)",
    ),
});

export const receiver = createReceiver({ secrets: readSecrets(), store });

receiver.onAny((event, ctx) => {
  const { messageId, sequence } = placeOf(event);
  ctx.commit((db) =>
    db
      .prepare("insert into handled (message_id, sequence, event_type) values (?, ?, ?)")
      .run(messageId, sequence, event.eventType),
  );
  print(event, ctx);
});
receiver.onLate(print);

/** The methods of `app/webhooks/route.ts`. Made here, behind the handlers, so that each bundle joins the same inbox. */
export const webhooks = nextWebhook(receiver);

/** Before the row is committed: after a crash in between the line is printed again. Never numbers or texts of people. */
function print(event: WebhookEvent, ctx: HandlerContext<SqliteDatabase>): void {
  const line = { handled: ctx.identity, ...placeOf(event), eventType: event.eventType, attempt: ctx.attempt };
  const late = ctx.outOfOrder && !ctx.replay ? { late: true } : {};
  console.log(JSON.stringify({ ...line, ...late, ...(ctx.missing === null ? {} : { missing: ctx.missing }) }));
}

function placeOf(event: WebhookEvent): { messageId: string | null; sequence: number } {
  if (!isKnownEvent(event)) {
    const { messageId, sequence } = event;
    return {
      messageId: typeof messageId === "string" ? messageId : null,
      sequence: typeof sequence === "number" ? sequence : 0,
    };
  }
  if (event.direction === "outbound") return { messageId: event.messageId, sequence: event.sequence };
  return { messageId: event.data.messageId, sequence: 0 };
}
