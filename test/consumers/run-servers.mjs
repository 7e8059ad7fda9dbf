// Runs servers of the guides: `node run-servers.mjs [--inspector] FILE...`. Each must take a signed webhook and refuse a forged one, and serve
// the inspector if that is asked.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";

const secret = "a-consumer-secret-of-32-characters";
const body = JSON.stringify({
  eventType: "message.delivery",
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
    status: "DELIVERED",
    error: null,
  },
});

const { values, positionals } = parseArgs({ options: { inspector: { type: "boolean" } }, allowPositionals: true });
for (const file of positionals) {
  const port = await freePort();
  const child = spawn(process.execPath, [resolve(file)], {
    cwd: mkdtempSync("inbox-"),
    env: { PATH: process.env.PATH, PORT: String(port), WEBHOOK_SECRET: secret },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const ended = once(child, "exit");
  try {
    const page = await answerOf(child, `http://127.0.0.1:${port}/inspector`);
    if (values.inspector) {
      assert.equal(page.status, 200);
      assert.match(await page.text(), /<html/);
    }
    assert.deepEqual([await post(port, body), await post(port, `${body} `)], [200, 401]);
    console.log(`ok ${file} receives${values.inspector ? ", and serves the inspector" : ""}`);
  } catch (cause) {
    throw new Error(`${file}: ${said}`, { cause });
  } finally {
    child.kill();
    await ended;
  }
}

async function answerOf(child, url) {
  for (;;) {
    try {
      return await fetch(url);
    } catch (error) {
      if (child.exitCode !== null) throw error;
      await wait(50);
    }
  }
}

async function post(port, sent) {
  const timestamp = String(Date.now());
  const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  const headers = { "x-service-timestamp": timestamp, "x-service-signature": signature };
  return (await fetch(`http://127.0.0.1:${port}/webhooks`, { method: "POST", body: sent, headers })).status;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
