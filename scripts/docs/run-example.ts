/** Runs one compiled example in a process and a folder of its own; a server is also sent signed webhooks and a forged one. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createEmulator, type Emulator } from "../../src/messaging/emulator/index.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { Example } from "./blocks.ts";

const SECRET = "an-example-secret-of-32-characters";
const KEY_FILE = "webhook.key";
const LIMIT_MS = 30_000;

/** What went wrong; empty when the example works. */
export async function runExample(example: Example, compiled: string, root: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-example-"));
  await writeFile(join(folder, KEY_FILE), randomBytes(32).toString("hex"), { mode: 0o600 });
  const port = await freePort();
  const emulator = example.needsEmulator ? await startEmulator(port) : null;
  const preload = pathToFileURL(join(root, "scripts/docs/listen-anywhere.mjs")).href;
  const child = spawn(process.execPath, ["--import", preload, compiled], {
    cwd: folder,
    env: { ...environment(folder, port), ...credentials(emulator) },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  try {
    return await watch(child, example);
  } finally {
    await emulator?.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Until it ends: by itself, by SIGTERM when it is a server, or by SIGKILL when it takes too long. */
async function watch(child: ChildProcess, { serves, servesFor }: Example): Promise<string[]> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (output += chunk));
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const exited = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  try {
    const problems =
      serves === undefined
        ? []
        : await converse(child, exited, serves, servesFor === "stripe" ? [paid] : [queued, inbound]);
    if (serves !== undefined) child.kill("SIGTERM");
    const [code, signal] = await exited;
    const stopped = serves !== undefined && signal === "SIGTERM";
    if (code !== 0 && !stopped) problems.push(`ended with ${code ?? signal}: ${output.trim().slice(-1_500)}`);
    return problems;
  } finally {
    clearTimeout(timer);
  }
}

function environment(folder: string, port: number): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  return {
    PATH,
    HOME,
    WEBHOOK_SECRET: SECRET,
    STRIPE_WEBHOOK_SECRET: SECRET,
    WEBHOOK_KEY_FILE: join(folder, KEY_FILE),
    CRON_SECRET: SECRET,
    INBOX_PATH: join(folder, "inbox.db"),
    PORT: `${port}`,
  };
}

/** A minute of its time is a second, and it hands its webhooks over to the port that the example gets. */
function startEmulator(port: number): Promise<Emulator> {
  const target = `http://127.0.0.1:${port}/webhooks`;
  return createEmulator({ clock: "x60", webhookSecret: SECRET, inboundUrl: target, deliveryUrl: target });
}

/** As `oncehook emulator --exec` gives them. */
function credentials(emulator: Emulator | null): Record<string, string> {
  if (emulator === null) return {};
  const { url, clientId, clientSecret } = emulator;
  return { SERVICE_BASE_URL: url, SERVICE_CLIENT_ID: clientId, SERVICE_CLIENT_SECRET: clientSecret };
}

async function converse(
  child: ChildProcess,
  exited: Promise<unknown>,
  path: string,
  events: readonly { readonly eventType: string }[],
): Promise<string[]> {
  const listening = once(child, "message").then(([message]) => (message as { port: number }).port);
  const port = await Promise.race([listening, exited.then(() => undefined)]);
  if (port === undefined) return ["it ended without listening"];
  const problems = [];
  for (const event of events) {
    const body = JSON.stringify(event);
    const signed = await post(port, path, body, sign(body));
    if (signed >= 200 && signed <= 299) continue;
    problems.push(`a signed ${event.eventType} to ${path} was answered with ${signed}`);
  }
  const body = JSON.stringify(events[0]);
  const forged = await post(port, path, body, sign(`${body} `));
  if (forged !== 401) problems.push(`a forged webhook to ${path} was answered with ${forged}`);
  return problems;
}

const queued = {
  eventType: "message.queued",
  direction: "outbound",
  occurredAt: Date.now(),
  apiClientId: "client-1",
  messageId: "message-1",
  sequence: 1,
  data: {
    messageId: "message-1",
    externalReference: "order-1",
    sendFrom: "+15550100001",
    to: "+15550100002",
    status: "QUEUED",
    error: null,
  },
};

/** Signed with the secret of the other webhook kind, which is the same here. */
const inbound = {
  eventType: "message.inbound",
  direction: "inbound",
  occurredAt: Date.now(),
  apiClientId: "client-1",
  data: {
    messageId: "message-2",
    conversationId: "conversation-1",
    numberId: "number-1",
    from: "+15550100002",
    to: "+15550100001",
    body: "Yes please",
    media: [],
    timestamp: Date.now(),
  },
};

/** An event of Stripe, with a name for problems. */
const paid = {
  eventType: "invoice.paid",
  type: "invoice.paid",
  id: "evt_1",
  created: 1_760_000_000,
  data: { object: {} },
};

/** For either source: each reads its own headers. */
function sign(body: string): Record<string, string> {
  const timestamp = String(Date.now());
  const seconds = timestamp.slice(0, -3);
  const signature = (time: string) => createHmac("sha256", SECRET).update(`${time}.${body}`).digest("hex");
  return {
    ...{ "x-service-timestamp": timestamp, "x-service-signature": signature(timestamp) },
    "stripe-signature": `t=${seconds},v1=${signature(seconds)}`,
    "content-type": "application/json",
  };
}

async function post(port: number, path: string, body: string, headers: Record<string, string>): Promise<number> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      body,
      headers,
      signal: AbortSignal.timeout(10_000),
    });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 0;
  }
}
