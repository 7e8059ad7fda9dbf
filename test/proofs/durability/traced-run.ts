/** Deliveries to a receiver that runs under strace, and the kernel's account of them. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fixtures, signedRequest } from "../../../src/testing/index.ts";
import { endTraced, Joiner, traced } from "./strace.ts";
import { Account, type Verdicts } from "./trace.ts";

const SERVER = ".build/test/proofs/durability/server.js";
const CALLS = "read,readv,write,writev,pwrite64,pwritev,fsync,fdatasync";
const PARALLEL = 8;

export interface TracedRun {
  readonly deliveries: number;
  /** What the driver sets in place of `synchronous=FULL`. */
  readonly pretence?: "NORMAL" | "OFF";
}

/** Starts the server, sends deliveries over eight connections, and says of each what was synced before its 2xx. */
export async function tracedRun({ deliveries, pretence }: TracedRun): Promise<Verdicts> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-strace-"));
  const log = join(folder, "calls");
  const driver = pretence === undefined ? [] : [pretence];
  const tracing = { calls: CALLS, more: ["-s", "9000"], log };
  const server = traced(tracing, [SERVER, join(folder, "inbox.db"), ...driver]);
  try {
    const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
    const port = await portOf(server);
    const sent = Array.from({ length: deliveries }, (_, index) => deliver(port, agent, markerOf(index)));
    const refused = (await Promise.all(sent)).filter((status) => status !== 200);
    agent.destroy();
    if (refused.length > 0) throw new Error(`${refused.length} deliveries were answered with ${refused[0]}.`);
    await endTraced(server);
    return await verdictsOf(log);
  } finally {
    server.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

async function verdictsOf(log: string): Promise<Verdicts> {
  const account = new Account();
  const joiner = new Joiner();
  for await (const line of createInterface({ input: createReadStream(log, "utf8") })) {
    const call = joiner.join(line);
    if (call !== null) account.hear(call);
  }
  return account.verdicts;
}

/** What the server prints first. */
export async function portOf(server: ChildProcess): Promise<number> {
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return Number(first.toString().trim());
}

/** A message id that can be told from anything else in the bytes of a call. */
export function markerOf(index: number): string {
  return `row-${String(index).padStart(5, "0")}`;
}

/** Delivers the first event of a message; the status of the answer. */
export function deliver(port: number, agent: Agent, messageId: string): Promise<number | undefined> {
  const { method, headers, body } = signedRequest(fixtures.queued({ messageId }));
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { port, agent, method, headers: { ...headers, "content-length": body.length }, path: "/" },
      (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      },
    );
    outgoing.once("error", reject).end(body);
  });
}
