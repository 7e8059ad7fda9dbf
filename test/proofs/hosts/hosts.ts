/** Hosts that run: a server that is asked over HTTP, and a function that is called with the events of AWS. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, request as ask } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type SignedRequest, TEST_SECRET } from "../../../src/tools/testing/index.ts";
import { freePort } from "../../support/free-port.ts";
import { Asked } from "../process.ts";
import { compiledOf } from "./apps.ts";
import type { Trigger } from "./lambda-events.ts";

const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
/** It listens on a free port of loopback, and tells which. */
const PRELOAD = pathToFileURL(join(ROOT, "scripts", "docs", "listen-anywhere.mjs")).href;
const LAMBDA_CHILD = fileURLToPath(new URL("./lambda-child.js", import.meta.url));
const PATIENCE_MS = 30_000;
const STOPS_WITHIN_MS = 10_000;

export interface Delivery extends Omit<SignedRequest, "method"> {
  readonly method?: string;
  /** Sends the body in chunks, without its length. */
  readonly isChunked?: true;
}

/** One host with one application and one inbox. */
export interface Host {
  /** The status of the answer; 0 for none. All are sent on one connection as long as the host keeps it. */
  send(delivery: Delivery): Promise<number>;
  /** Waits until what was accepted is handled, as far as that takes a call. */
  drain(): Promise<void>;
  /** Ends the process; a line for each thing that went wrong in it. */
  end(): Promise<readonly string[]>;
}

export async function startServer(name: string, inbox: string): Promise<Host> {
  const child = spawn(process.execPath, ["--import", PRELOAD, compiledOf(name)], {
    env: await environment(inbox),
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let log = "";
  child.stderr?.on("data", (chunk) => (log += chunk));
  const exited = once(child, "exit").then(([code, signal]) => `${code ?? signal}`);
  const port = await Promise.race([portOf(child), exited]);
  if (typeof port !== "number") throw new Error(`${name} ended with ${port} before it listened: ${log.slice(-2_000)}`);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    send: (delivery) => post(port, agent, delivery),
    drain: async () => {},
    async end() {
      agent.destroy();
      const early = child.exitCode ?? child.signalCode;
      child.kill("SIGTERM");
      const isStuck = await Promise.race([exited.then(() => false), sleep(STOPS_WITHIN_MS, true, { ref: false })]);
      child.kill("SIGKILL");
      return [
        ...(early === null ? [] : [`the process ended with ${early}`]),
        ...(isStuck ? ["SIGTERM did not end the process"] : []),
        ...complaintsIn(log),
      ];
    },
  };
}

export async function startFunction(name: string, inbox: string, trigger: Trigger): Promise<Host> {
  const asked = new Asked(LAMBDA_CHILD, { compiled: compiledOf(name) }, await environment(inbox));
  return {
    async send({ method = "POST", headers, body }) {
      const request = { method, headers, body: Buffer.from(body).toString("base64") };
      return asked.ask<number>("send", { trigger, request });
    },
    drain: () => asked.ask("drain"),
    end: () => asked.stop(),
  };
}

async function environment(inbox: string): Promise<NodeJS.ProcessEnv> {
  const PORT = `${await freePort()}`;
  return { ...process.env, NODE_ENV: "production", WEBHOOK_SECRET: TEST_SECRET, INBOX_PATH: inbox, PORT };
}

function portOf(child: ChildProcess): Promise<number> {
  return once(child, "message").then(([{ port }]) => port);
}

/** What the log of a host that is mounted rightly does not say. */
function complaintsIn(log: string): string[] {
  const codes = ["already_answered", "answer_failed", "wrong_arguments", "raw_body_unavailable"];
  return codes.filter((code) => log.includes(`"${code}"`)).map((code) => `the log says ${code}`);
}

function post(port: number, agent: Agent, { method = "POST", headers, body, isChunked }: Delivery): Promise<number> {
  return new Promise((resolve) => {
    const length = isChunked ? {} : { "content-length": body.length };
    const options = { host: "127.0.0.1", port, path: "/webhooks", method, agent, timeout: PATIENCE_MS };
    const request = ask({ ...options, headers: { ...headers, ...length } });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(0));
    request.on("response", (response) => {
      response.resume();
      // The connection is free for the next one, or gone.
      response.once("close", () => resolve(response.statusCode ?? 0));
    });
    const pieces = isChunked ? Math.ceil(body.length / 65_536) : 1;
    const size = Math.ceil(body.length / pieces);
    for (let at = 0; at < body.length; at += size) request.write(body.subarray(at, at + size));
    request.end();
  });
}
