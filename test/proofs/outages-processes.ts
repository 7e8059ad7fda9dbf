/** The Express and Fastify examples as processes on a fixed port, unchanged, with an inbox that outlives them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Database from "better-sqlite3";
import { freePort } from "../support/free-port.ts";
import { type HandledRow, PREVIOUS_SECRET, type Restartable, SECRET } from "./outages-survive.ts";
import { compiled } from "./process.ts";

export class ExampleProcess implements Restartable {
  readonly url: string;
  readonly #program: string;
  readonly #port: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "oncehook-outages-"));
  #child: ChildProcess | null = null;
  #late = 0;

  private constructor(name: "express" | "fastify", port: number) {
    this.#program = compiled(`../../examples/servers/${name}/server.js`);
    this.#port = port;
    this.url = `http://127.0.0.1:${port}/webhooks`;
  }

  static async create(name: "express" | "fastify"): Promise<ExampleProcess> {
    return new ExampleProcess(name, await freePort());
  }

  async start(): Promise<void> {
    const { PATH, HOME } = process.env;
    const child = spawn(process.execPath, [this.#program], {
      env: { PATH, HOME, PORT: String(this.#port), INBOX_PATH: this.#inboxPath, ...secrets() },
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    const ready = new Promise<void>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`The example ended with ${code}.`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (line.includes('"late":true')) this.#late += 1;
        if (line.includes('"listening"')) resolve();
      });
    });
    await ready;
  }

  /** As when a machine loses its power: what runs is not asked. */
  async stop(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return;
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
  }

  handled(): readonly HandledRow[] {
    const db = new Database(this.#inboxPath, { readonly: true });
    try {
      return db.prepare("select message_id, sequence, event_type from handled order by id").all() as HandledRow[];
    } finally {
      db.close();
    }
  }

  lateLines(): number {
    return this.#late;
  }

  async dispose(): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #inboxPath(): string {
    return join(this.#folder, "inbox.db");
  }
}

/** Both secrets of a rotation, as the examples take them. */
export function secrets(): Record<string, string> {
  return {
    WEBHOOK_SECRET: SECRET,
    WEBHOOK_PREVIOUS_SECRET: PREVIOUS_SECRET,
    WEBHOOK_PREVIOUS_VALID_UNTIL: String(Date.now() + 3_600_000),
  };
}
