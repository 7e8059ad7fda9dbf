/** The process that sends and waits: it never starts its receiver, and ends when there is nothing left to do. */

import { createReceiver } from "../../../src/index.ts";
import { createClient } from "../../../src/messaging/client/client.ts";
import { sqliteStore } from "../../../src/stores/sqlite.ts";

const [inboxPath = "", baseUrl = "", clientId = "", clientSecret = "", sendFrom = "", secret = ""] =
  process.argv.slice(2);

const client = createClient({ baseUrl, clientId, clientSecret });
const receiver = createReceiver({ secrets: secret, store: sqliteStore(inboxPath) });

const { apiClientId } = await client.whoami();
const message = { sendFrom, to: ["+14155550101"], messageType: "SMS", text: "hello" } as const;
const sent = await client.messages.send({ ...message, externalReference: "order-1" });
for (const { messageId } of sent.throwIfRejected().results) {
  const event = await receiver.waitFor({ apiClientId, messageId }, "message.delivery");
  process.stdout.write(`${event.eventType} of ${messageId}`);
}
await receiver.stop();
