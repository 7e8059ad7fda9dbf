/**
 * The receiver of all routes. Next.js evaluates this file once per bundle, and again on each reload in development:
 * `nextWebhook` makes the newest receiver go on with the inbox and the worker of the one before.
 */
import { createReceiver, type HandlerContext, isKnownEvent, type WebhookEvent } from "oncehook";
import { nextWebhook } from "oncehook/next";
import { sqliteStore } from "oncehook/sqlite";
import { readSecrets } from "./environment";

const store = sqliteStore(process.env.INBOX_PATH || "./inbox.db", {
  // Your own table, in the same file as the inbox.
  onOpen: (db) =>
    db.exec(
      "create table if not exists handled (id integer primary key autoincrement, message_id text, sequence integer, event_type text)",
    ),
});

export const receiver = createReceiver({ secrets: readSecrets(), store });

receiver.onAny((event, ctx) => {
  // Written in the transaction that completes the event: exactly once, also after a crash.
  ctx.commit({
    text: "insert into handled (message_id, sequence, event_type) values (?, ?, ?)",
    values: [ctx.meta.lane ?? ctx.meta.id, ctx.meta.sequence, event.eventType],
  });
  print(event, ctx);
});
receiver.onLate(print);

/** The methods of `app/webhooks/route.ts`. Made here, after the handlers, so that each bundle joins the same inbox. */
export const webhooks = nextWebhook(receiver);

/** Prints ids and types only, never numbers or texts. Comes before the commit, so a crash in between prints the line again. */
function print(event: WebhookEvent, ctx: HandlerContext): void {
  const { lane, id, sequence } = ctx.meta;
  const messageId = isKnownEvent(event) ? (lane ?? id) : null;
  const line = { handled: event.eventType, messageId, sequence, attempt: ctx.attempt };
  console.log(JSON.stringify(ctx.outOfOrder && !ctx.replay ? { ...line, late: true } : line));
}
