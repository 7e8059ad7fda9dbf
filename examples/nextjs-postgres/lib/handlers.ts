/** What this application does with events: all its handlers, whichever route and process runs them. */
import type { HandlerContext, Receiver, WebhookEvent } from "oncehook";
import type { PgClient } from "oncehook/postgres";

type Context = HandlerContext<PgClient>;

/** The routes call it through `lib/receiver.ts`, once per receiver. */
export function registerHandlers(receiver: Receiver<PgClient>): void {
  receiver.on(["message.queued", "message.sent", "message.delivery", "message.failed"], (event, ctx) =>
    keepRow([event.messageId, event.sequence, event.eventType], ctx),
  );
  // A customer's message stands alone: it has no sequence.
  receiver.on("message.inbound", (event, ctx) => keepRow([event.data.messageId, 0, event.eventType], ctx));
  // Ids and types only: numbers and texts of people do not belong in a log.
  receiver.onLate((event: WebhookEvent, ctx) => {
    console.log(JSON.stringify({ late: ctx.identity, eventType: event.eventType }));
  });
}

/** The row commits together with the event's completion, or not at all. */
function keepRow(row: readonly [messageId: string, sequence: number, eventType: string], ctx: Context): void {
  ctx.commit(async (client) => {
    await client.query("insert into handled (message_id, sequence, event_type) values ($1, $2, $3)", row);
  });
}
