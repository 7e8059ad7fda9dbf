/** A second receiver of the example, with an inbox of its own: messages of the service, and events of Stripe that are held back. */
import { createReceiver, type HandlerContext } from "oncehook";
import { nextWebhook } from "oncehook/next";
import { type PgClient, postgresStore } from "oncehook/postgres";
import { service, stripe } from "oncehook/sources";

export const receiver = createReceiver({
  store: postgresStore(process.env.DATABASE_URL ?? "", { schema: "billing", maxConnections: 1, listen: false }),
  sources: {
    messages: service({ secrets: process.env.WEBHOOK_SECRET ?? "" }),
    billing: stripe({
      secrets: process.env.STRIPE_WEBHOOK_SECRET ?? "",
      holdBackMs: Number(process.env.HOLD_BACK_MS ?? 0),
    }),
  },
});

const billing = receiver.source("billing");
billing.onAny(({ id }, ctx) => keepRow([ctx.meta.lane, id], ctx));
billing.onLate(({ id }, ctx) => keepRow([ctx.meta.lane, `${id}, late`], ctx));
const messages = receiver.source("messages");
messages.onAny((event, ctx) => keepRow([ctx.meta.lane ?? ctx.meta.id, event.eventType], ctx));

/** The methods of `app/billing/route.ts`. */
export const billingWebhooks = nextWebhook(billing);
/** The methods of `app/billing-messages/route.ts`. */
export const messageWebhooks = nextWebhook(messages);

function keepRow(row: readonly [lane: string, event: string], ctx: HandlerContext<PgClient>): void {
  ctx.commit((client) => client.query("insert into billed (lane, event) values ($1, $2)", row));
}
