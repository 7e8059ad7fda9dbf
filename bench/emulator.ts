/** The emulator as a tool: how soon it is ready, what it takes, how fast its time passes, and what it keeps. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { silentLogger } from "../src/internal/logger.ts";
import { createEmulator, type Emulator } from "../src/messaging/emulator/index.ts";
import { listenOnLoopback } from "../test/support/loopback.ts";
import { median } from "../test/support/statistics.ts";
import { type Group, grouped, type Limit, type Row, row } from "./rows.ts";

const READY: Limit = { name: "emulator: command ready", target: 1_000, bound: "at most", unit: "ms" };
const SENDS: Limit = { name: "emulator: sends over HTTP", target: 2_000, bound: "at least", unit: "sends/s" };
const ADVANCE: Limit = { name: "emulator: advance over 10,000 retries", target: 10_000, bound: "at most", unit: "ms" };
const MEMORY: Limit = {
  name: "emulator: heap at 100,000 / 30,000 messages, 10,000 kept",
  target: 1.1,
  bound: "at most",
};
const COMMAND = join(import.meta.dirname, "..", "..", "dist", "cli.js");

const MEASURES = new Map<Limit, () => Promise<Row>>([
  [READY, ready],
  [SENDS, sends],
  [ADVANCE, advance],
  [MEMORY, memory],
]);

export const emulatorGroup: Group = {
  names: [...MEASURES.keys()].map(({ name }) => name),
  async run(wanted) {
    const rows: Row[] = [];
    for (const [{ name }, measure] of MEASURES) if (wanted.has(name)) rows.push(await measure());
    return rows;
  },
};

async function ready(): Promise<Row> {
  const times: number[] = [];
  for (let round = 0; round < 7; round++) {
    const startedAt = performance.now();
    const { child } = await startCommand([]);
    times.push(performance.now() - startedAt);
    await end(child);
  }
  return row(READY, median(times), `slowest ${Math.max(...times).toFixed(0)} ms of ${times.length}`);
}

/** One process serves, this one asks; 16 connections. */
async function sends(): Promise<Row> {
  const { child, url, clientId, clientSecret, numberId } = await startCommand(["--lifecycle", "instant"]);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const credentials = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const { access_token } = await post(`${url}/api/auth/token`, credentials, {}, agent);
  const rounds: number[] = [];
  let key = 0;
  for (let round = 0; round < 5; round++) {
    const startedAt = performance.now();
    const lane = async () => {
      for (let i = 0; i < 250; i++) {
        const headers = { authorization: `Bearer ${access_token}`, "idempotency-key": `key-${++key}` };
        await post(`${url}/api/core/messages/send`, messageFrom(numberId), headers, agent);
      }
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    rounds.push(4_000 / ((performance.now() - startedAt) / 1000));
  }
  agent.destroy();
  await end(child);
  return row(SENDS, median(rounds), `rounds ${grouped(Math.min(...rounds))} to ${grouped(Math.max(...rounds))}`);
}

/** All first attempts are refused, then the receiver answers; both in this process. */
async function advance(): Promise<Row> {
  let status = 503;
  const server = createServer((incoming, response) =>
    incoming.resume().on("end", () => response.writeHead(status).end()),
  );
  const deliveryUrl = `http://127.0.0.1:${await listenOnLoopback(server)}/`;
  const emulator = await createEmulator({ port: null, lifecycle: "manual", deliveryUrl, logger: silentLogger });
  await sendAll(emulator, 10_000);
  await emulator.clock.idle();
  status = 200;
  const startedAt = performance.now();
  await emulator.clock.advance(60_000);
  const elapsed = performance.now() - startedAt;
  const open = emulator.control.deliveries({ state: "pending", limit: 1 }).length;
  await emulator.close();
  server.close();
  if (open > 0) throw new Error("Not every retry was made.");
  return row(ADVANCE, elapsed, `${grouped(10_000 / (elapsed / 1000))} attempts/s`);
}

async function memory(): Promise<Row> {
  const emulator = await createEmulator({ port: null, lifecycle: "instant", keep: 10_000, logger: silentLogger });
  await sendAll(emulator, 30_000);
  const early = heapBytes();
  await sendAll(emulator, 70_000);
  const late = heapBytes();
  await emulator.close();
  const mebibytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  return row(MEMORY, late / early, `${mebibytes(late)} / ${mebibytes(early)}`);
}

async function sendAll(emulator: Emulator, count: number): Promise<void> {
  const call = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const all = { "content-type": "application/json", ...headers };
    const sent = new Request(`${emulator.url}${path}`, { method: "POST", headers: all, body: JSON.stringify(body) });
    const response = await emulator.handle(sent);
    if (!response.ok) throw new Error(`${path} answered ${response.status}.`);
    return response.json() as Promise<Record<string, string>>;
  };
  const { clientId, clientSecret, fixtures } = emulator;
  const credentials = { grant_type: "client_credentials", client_id: clientId, client_secret: clientSecret };
  const { access_token } = await call("/api/auth/token", credentials);
  const before = emulator.control.requests().at(-1)?.number ?? 0;
  for (let i = 0; i < count; i++) {
    const headers = { authorization: `Bearer ${access_token}`, "idempotency-key": `key-${before + i}` };
    await call("/api/core/messages/send", messageFrom(fixtures.numbers.full), headers);
  }
}

function messageFrom(sendFrom: string): object {
  return { sendFrom, to: ["+14155550123"], messageType: "SMS", text: "hello", externalReference: "order-1" };
}

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

async function startCommand(args: readonly string[]) {
  const child = spawn(process.execPath, [COMMAND, "emulator", "--port", "0", "--json", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { url, clientId, clientSecret, fixtures } = JSON.parse(line);
  return { child, url, clientId, clientSecret, numberId: fixtures.numbers.full as string };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill();
  await exited;
}

function post(
  url: string,
  body: object,
  headers: Record<string, string>,
  agent: Agent,
): Promise<Record<string, string>> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers: { "content-type": "application/json", ...headers } });
    sent.on("error", reject);
    sent.on("response", async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      if ((response.statusCode ?? 500) < 300) resolve(JSON.parse(text));
      else reject(new Error(`${url} answered ${response.statusCode}.`));
    });
    sent.end(JSON.stringify(body));
  });
}
