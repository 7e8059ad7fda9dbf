// `next build` ran without any secret. The standalone server has them, and receives with both routers; without them it says what is missing.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

const secret = "a-consumer-secret-of-32-characters";
const content = { eventType: "message.queued", direction: "outbound", occurredAt: Date.now(), apiClientId: "client-1" };
const data = { externalReference: "r", sendFrom: "+15550100001", to: "+15550100002", status: "QUEUED", error: null };

assert.deepEqual(await statuses({ WEBHOOK_SECRET: secret }), [200, 200, 401]);
console.log("ok the standalone server receives with both routers");
assert.deepEqual(await statuses({}), [500, 500, 500]);
console.log("ok without its secret it refuses everything");

async function statuses(environment) {
  const port = await freePort();
  const env = { PATH: process.env.PATH, PORT: String(port), HOSTNAME: "127.0.0.1", ...environment };
  const child = spawn(process.execPath, [".next/standalone/server.js"], { env, stdio: "inherit" });
  const ended = once(child, "exit");
  try {
    for (;;) {
      const answer = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
      if (answer?.ok) break;
      if (child.exitCode !== null) throw new Error(`The server ended with ${child.exitCode}.`);
      await wait(100);
    }
    const post = (path, messageId, key) => send(`http://127.0.0.1:${port}${path}`, messageId, key);
    return [
      await post("/webhooks", "message-1", secret),
      await post("/api/webhooks", "message-2", secret),
      await post("/webhooks", "message-3", "a-secret-that-nobody-installed-xx"),
    ];
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

async function send(url, messageId, key) {
  const body = JSON.stringify({ ...content, messageId, sequence: 1, data: { messageId, ...data } });
  const timestamp = String(Date.now());
  const signature = createHmac("sha256", key).update(`${timestamp}.${body}`).digest("hex");
  const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
  return (await fetch(url, { method: "POST", body, headers })).status;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
