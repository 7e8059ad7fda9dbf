/**
 * Prints which functions a delivery runs, from the adapter to the settled event, as JSON: a real server, a real inbox, and the engine's own
 * account of the functions that ran. The argument is `sqlite` or `postgres`. Ends with 3 and the reason where there is no such store.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { Session } from "node:inspector/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import express from "express";
import { expressWebhook } from "../../adapters/express.ts";
import type { InboxStore } from "../../src/inbox/store.ts";
import { createReceiver } from "../../src/index.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { fixtures, signedRequest, TEST_SECRET } from "../../src/tools/testing/index.ts";
import type { Ran } from "./ran.ts";

/** The first ones prepare statements and start timers. */
const WARM = 2;
const TRACED = 5;

const root = fileURLToPath(new URL("../..", import.meta.url));
const { store, close } = await openStore(process.argv[2] ?? "");
let handled = () => {};
const receiver = createReceiver({ secrets: TEST_SECRET, store });
receiver.on("message.queued", () => handled());
const app = express().all("/webhooks", expressWebhook(receiver));
await receiver.start();
const server = app.listen(0);
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks`;

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
const traces: Ran[][] = [];
for (let request = 0; request < WARM + TRACED; request++) {
  // The service signs, not the receiver.
  const signed = signedRequest(fixtures.queued({ messageId: `msg_${request}` }));
  await session.post("Profiler.takePreciseCoverage");
  await deliver(signed);
  if (request < WARM) await session.post("Profiler.takePreciseCoverage");
  else traces.push(await ranSinceLast());
}
session.disconnect();

server.close();
server.closeAllConnections();
await receiver.stop();
await close();

// What a timer ran next to one of them is not part of a request.
const [first = [], ...others] = traces;
const always = first.filter((ran) => others.every((trace) => trace.some((other) => same(ran, other))));
process.stdout.write(JSON.stringify(always));

async function openStore(kind: string): Promise<{ store: InboxStore<unknown>; close: () => Promise<void> }> {
  if (kind === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-house-"));
    const close = () => Promise.resolve(rmSync(folder, { recursive: true }));
    return { store: sqliteStore(join(folder, "inbox.db")), close };
  }
  const { startPostgres } = await import("../../test/stores/postgres/server.ts");
  const { url, stop } = await startPostgres().catch((error: Error): never => {
    process.stderr.write(error.message);
    process.exit(3);
  });
  return { store: postgresStore(url), close: stop };
}

/** Ends once the event is handled, and a moment later, when its end is written. */
async function deliver(request: RequestInit): Promise<void> {
  const done = new Promise<void>((resolve) => {
    handled = resolve;
  });
  const { status } = await fetch(url, request);
  if (status !== 200) throw new Error(`answered ${status}`);
  await done;
  await new Promise((resolve) => setTimeout(resolve, 100));
}

/** The functions of the package's own sources; not the bodies of modules, which an import runs. */
async function ranSinceLast(): Promise<Ran[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result
    .filter(({ url: script }) => script.startsWith("file:"))
    .map((script) => ({ ...script, path: relative(root, fileURLToPath(script.url)) }))
    .filter(({ path }) => /^(?:src|adapters)\//.test(path))
    .flatMap(({ path, functions }) =>
      functions.flatMap(({ ranges: [range] }) =>
        range === undefined || range.count === 0 || range.startOffset === 0
          ? []
          : [{ path, start: range.startOffset, end: range.endOffset }],
      ),
    );
}

function same(a: Ran, b: Ran): boolean {
  return a.path === b.path && a.start === b.start && a.end === b.end;
}
