/** An example as a real process in a folder of its own, and deliveries to it. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { onTestFinished } from "vitest";

export const SECRET = "an-example-secret-of-32-bytes-xx";
export const PREVIOUS_SECRET = "the-secret-before-it-of-32-bytes";

export type ExampleName = "express" | "fastify" | "express-bullmq" | "fastify-postgres";

/** Examples that end by themselves are programmes beside the servers. */
type ProgrammeName = ExampleName | "send-and-wait";

const PROGRAMMES: Readonly<Record<ProgrammeName, string>> = {
  express: "express/server.js",
  fastify: "fastify/server.js",
  "fastify-postgres": "fastify-postgres/server.js",
  "express-bullmq": "express-bullmq/server.js",
  "send-and-wait": "express/send-and-wait.js",
};

export interface Exit {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

export interface HandledRow {
  readonly message_id: string | null;
  readonly sequence: number;
  readonly event_type: string;
}

/** The example itself, compiled by the tests' global set-up. */
function directly(name: ProgrammeName): string[] {
  return [
    process.execPath,
    fileURLToPath(new URL(`../../.build/examples/servers/${PROGRAMMES[name]}`, import.meta.url)),
  ];
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Launches `command` with `environment` alone; its inbox lies in a folder that goes with the test. */
function launch(
  command: readonly string[],
  environment: NodeJS.ProcessEnv,
): { child: ChildProcess; inboxPath: string } {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-example-"));
  const inboxPath = join(folder, "inbox.db");
  const { PATH, HOME } = process.env;
  const [program = "", ...args] = command;
  const env = { PATH, HOME, PORT: "0", INBOX_PATH: inboxPath, ...environment };
  const child = spawn(program, args, { cwd: ROOT, env });
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    rmSync(folder, { recursive: true, force: true });
  });
  return { child, inboxPath };
}

/** For an example that is expected to end by itself. */
export async function runToEnd(
  name: ProgrammeName,
  environment: NodeJS.ProcessEnv,
  args: readonly string[] = [],
): Promise<Exit> {
  const { child } = launch([...directly(name), ...args], environment);
  let output = "";
  let errors = "";
  child.stdout?.on("data", (chunk) => (output += chunk));
  child.stderr?.on("data", (chunk) => (errors += chunk));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output, errors };
}

/** Runs one of the package's scripts as a newcomer does, with a folder of its own for temporary files. */
export function runScript(script: "demo" | "demo:crash") {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, TMPDIR: folder };
  const { status, stdout, stderr } = spawnSync("npm", ["run", "--silent", script], {
    cwd: ROOT,
    env,
    encoding: "utf8",
  });
  const failed = stdout.split("\n").filter((line) => line.startsWith("  ✗"));
  // npm's own, from Node 22 on.
  const leftovers = readdirSync(folder).filter((name) => name !== "node-compile-cache");
  return { status, stdout, stderr, failed, leftovers };
}

export class RunningExample {
  readonly url: string;
  /** Everything printed after the address. */
  readonly lines: string[];
  readonly inboxPath: string;
  readonly #child: ChildProcess;

  private constructor(url: string, lines: string[], child: ChildProcess, inboxPath: string) {
    this.url = url;
    this.lines = lines;
    this.#child = child;
    this.inboxPath = inboxPath;
  }

  static async start(
    name: ExampleName,
    environment: NodeJS.ProcessEnv = {},
    command: readonly string[] = directly(name),
  ): Promise<RunningExample> {
    const { child, inboxPath } = launch(command, { WEBHOOK_SECRET: SECRET, ...environment });
    const lines: string[] = [];
    let errors = "";
    child.stderr?.on("data", (chunk) => (errors += chunk));
    const url = await new Promise<string>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`The example ended with ${code}: ${errors}`)));
      if (child.stdout === null) throw new Error("No standard output.");
      createInterface({ input: child.stdout }).on("line", (line) => {
        const { listening } = JSON.parse(line) as { listening?: string };
        if (listening === undefined) lines.push(line);
        else resolve(listening);
      });
    });
    return new RunningExample(url, lines, child, inboxPath);
  }

  deliver(content: object | string, secret = SECRET): Promise<Response> {
    const body = typeof content === "string" ? content : JSON.stringify(content);
    const timestamp = String(Date.now());
    const signature = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
    return this.post("/webhooks", body, { "x-service-timestamp": timestamp, "x-service-signature": signature });
  }

  post(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
    const all = { "content-type": "application/json", ...headers };
    return fetch(`${this.url}${path}`, { method: "POST", body, headers: all });
  }

  /** Sends a request and the beginning of another, on one connection; resolves once the first is answered and so both are read. */
  async beginRequest(): Promise<void> {
    const { hostname, port, host } = new URL(this.url);
    const socket = connect(Number(port), hostname).on("error", () => {});
    onTestFinished(() => void socket.destroy());
    const begun = `GET /health HTTP/1.1\r\nHost: ${host}\r\n`;
    socket.write(`${begun}\r\n${begun}`);
    await once(socket, "data");
  }

  /** False once nobody takes connections any more. */
  async isListening(): Promise<boolean> {
    const { hostname, port } = new URL(this.url);
    const socket = connect(Number(port), hostname);
    try {
      await once(socket, "connect");
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  }

  /** The example's table, in the order of handling. */
  handled(): HandledRow[] {
    const db = new Database(this.inboxPath, { readonly: true });
    try {
      return db.prepare("select message_id, sequence, event_type from handled order by id").all() as HandledRow[];
    } finally {
      db.close();
    }
  }

  /** Does not wait for what becomes of it. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Resolves with the exit code, or null if the signal ended it. */
  async terminate(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    const exited = once(this.#child, "exit");
    this.signal(signal);
    const [code] = (await exited) as [number | null];
    return code;
  }
}
