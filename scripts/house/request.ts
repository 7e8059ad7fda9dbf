/**
 * Prints the sources that one delivery runs through, from the adapter to the settled event, one path a line: a real server, a real inbox
 * on a file, and the engine's own account of the functions that ran.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import express from "express";
import { expressWebhook } from "../../adapters/express.ts";
import { createReceiver } from "../../src/index.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures, signedRequest, TEST_SECRET } from "../../src/testing/index.ts";

const folder = mkdtempSync(join(tmpdir(), "oncehook-house-"));
let handled = () => {};
const receiver = createReceiver({
  secrets: TEST_SECRET,
  store: sqliteStore(join(folder, "inbox.db")),
});
receiver.on("message.queued", () => handled());
const app = express().all("/webhooks", expressWebhook(receiver));
await receiver.start();
const server = app.listen(0);
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;

const session = new Session();
session.connect();
await session.post("Profiler.enable");
// The first delivery prepares statements and starts timers; the second shows what each one takes. The service signs, not the receiver.
const [first, second] = ["msg_1", "msg_2"].map((messageId) => signedRequest(fixtures.queued({ messageId })));
await deliver(first);
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
await deliver(second);
const { result } = await session.post("Profiler.takePreciseCoverage");
session.disconnect();

server.close();
server.closeAllConnections();
await receiver.stop();
rmSync(folder, { recursive: true });

const root = fileURLToPath(new URL("../..", import.meta.url));
const ran = result
  .filter(({ functions }) =>
    functions.some(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0),
  )
  .filter(({ url: script }) => script.startsWith("file:"))
  .map(({ url: script }) => relative(root, fileURLToPath(script)))
  .filter((path) => /^(?:src|adapters)\//.test(path));
console.log(ran.sort().join("\n"));

/** Ends once the event is handled, and a moment later, when its end is written. */
async function deliver(request: RequestInit | undefined): Promise<void> {
  const done = new Promise<void>((resolve) => {
    handled = resolve;
  });
  const { status } = await fetch(url, request);
  if (status !== 200) throw new Error(`answered ${status}`);
  await done;
  await new Promise((resolve) => setTimeout(resolve, 100));
}
