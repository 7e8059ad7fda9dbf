/** The receiver of all routes. It is never started: the webhook route drains after its responses, the cron's route the rest. */
import { createReceiver } from "oncehook";
import { nextWebhook } from "oncehook/next";
import { postgresStore } from "oncehook/postgres";
import { registerHandlers } from "./handlers";

// Set where the function runs, and not where `next build` does.
export const receiver = createReceiver({
  secrets: process.env.WEBHOOK_SECRET ?? "",
  // There are as many pools as instances of the function: one connection each, and none kept open to listen.
  store: postgresStore(process.env.DATABASE_URL ?? "", { maxConnections: 1, listen: false }),
});

registerHandlers(receiver);

/** The methods of `app/webhooks/route.ts`. Made here, behind the handlers, so that each bundle joins the same inbox. */
export const webhooks = nextWebhook(receiver);
