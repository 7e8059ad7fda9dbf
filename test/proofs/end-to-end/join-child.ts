/** The process that receives and handles, on the inbox and port it is given; a message's `externalReference` says how. */
import { once } from "node:events";
import { createServer } from "node:http";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver, PermanentError, type WebhookEvent } from "../../../src/index.ts";
import { silentLogger } from "../../../src/internal/logger.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";

const [inboxPath = "", port = "0", secret = ""] = process.argv.slice(2);

const receiver = createReceiver({ secrets: secret, store: sqliteStore(inboxPath), logger: silentLogger });

receiver.onAny(async (event, ctx) => {
  const wish = wishOf(event);
  if (event.eventType !== "message.delivery") return;
  if (wish === "dead") throw new PermanentError("This one can not be mended.");
  if (wish !== "killed" || ctx.attempt > 1) return;
  process.stdout.write("in the handler\n");
  // For as long as the process lives.
  await new Promise(() => {});
});

function wishOf(event: WebhookEvent): unknown {
  const { externalReference } = event.data as { readonly externalReference?: unknown };
  return externalReference;
}

await receiver.start();
const server = createServer(nodeWebhook(receiver)).listen(Number(port), "127.0.0.1");
await once(server, "listening");
process.stdout.write("listening\n");
