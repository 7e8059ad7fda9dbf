/** The Python example as a real process on a port that it comes back to, and what it keeps. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";

const SCRIPT = fileURLToPath(new URL("../../../examples/python-sidecar/app.py", import.meta.url)).replace(
  "/.build/",
  "/",
);

/** A row of its ledger. */
export interface Kept {
  readonly id: string;
  readonly key: string;
  readonly type: string;
  readonly sequence: number;
  readonly attempt: number;
  readonly late: 0 | 1;
  readonly body: Buffer;
}

/** Why it cannot run here; null when it can. */
export function pythonIsMissing(): string | null {
  const { status } = spawnSync("python3", ["-c", "import sys, sqlite3; sys.exit(sys.version_info < (3, 9))"]);
  return status === 0 ? null : "no python3 (3.9 or newer, with sqlite3) on the path";
}

export class PythonApplication {
  readonly #folder: string;
  readonly #secret: string;
  #child: ChildProcess | null = null;
  #port = "0";

  /** Its database lies in `folder`. */
  constructor(folder: string, secret: string) {
    this.#folder = folder;
    this.#secret = secret;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/events`;
  }

  get #database(): string {
    return join(this.#folder, "events.db");
  }

  /** Resolves when it listens: where it did before, if it did. */
  async start(): Promise<void> {
    const { PATH } = process.env;
    const environment = { PATH, PORT: this.#port, DATABASE: this.#database, ONCEHOOK_FORWARD_SECRET: this.#secret };
    const child = spawn("python3", [SCRIPT], { env: environment, stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    const [line] = await Promise.race([
      once(createInterface({ input: child.stdout }), "line"),
      once(child, "exit").then(([code]) => Promise.reject(new Error(`The Python application ended with ${code}.`))),
    ]);
    this.#port = new URL(JSON.parse(line).listening).port;
  }

  /** Ends it; SIGKILL in the midst of whatever it does. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    const child = this.#child;
    this.#child = null;
    if (child === null) return null;
    const ended = once(child, "exit");
    child.kill(signal);
    return (await ended)[0];
  }

  /** What it keeps, in the order in which it came. */
  kept(): Kept[] {
    return this.#ask("select * from event order by position") as Kept[];
  }

  /** The last event's type of each message. */
  states(): string[] {
    return (this.#ask("select type from state order by key") as { type: string }[]).map(({ type }) => type);
  }

  count(): number {
    const [row] = this.#ask("select count(*) as count from event") as { count: number }[];
    return row?.count ?? 0;
  }

  #ask(sql: string): unknown[] {
    const db = new Database(this.#database, { readonly: true });
    try {
      return db.prepare(sql).all();
    } finally {
      db.close();
    }
  }
}
