// A receiver without any peer: node:http and the memory store.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createReceiver, signPayload, verifySignature } from "oncehook";
import { memoryStore } from "oncehook/memory";
import { nodeWebhook } from "oncehook/node";

const secret = "a-consumer-secret-of-32-characters";
const body = JSON.stringify({
  eventType: "message.queued",
  direction: "outbound",
  occurredAt: Date.now(),
  apiClientId: "client-1",
  messageId: "message-1",
  sequence: 1,
  data: {
    messageId: "message-1",
    externalReference: "r",
    sendFrom: "+15550100001",
    to: "+15550100002",
    status: "QUEUED",
    error: null,
  },
});
const headers = signPayload({ body, secret });
assert.equal(verifySignature({ headers, body, secrets: secret }).ok, true);
assert.equal(verifySignature({ headers, body: `${body} `, secrets: secret }).ok, false);
console.log("ok verify");

const handled = [];
const receiver = createReceiver({ secrets: secret, store: memoryStore(), ack: "handled" });
receiver.on("message.queued", (event) => {
  handled.push(event.messageId);
});
await receiver.start();
const server = createServer(nodeWebhook(receiver)).listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${server.address().port}/`;
assert.equal((await fetch(url, { method: "POST", body, headers })).status, 200);
assert.equal((await fetch(url, { method: "POST", body: `${body} `, headers })).status, 401);
assert.deepEqual(handled, ["message-1"]);
server.close();
await receiver.stop();
console.log("ok receive");
