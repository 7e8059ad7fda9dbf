/** Starts processes that share an inbox, and talks to them: deliveries, signals, and their end. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import type { SqliteStoreOptions } from "../../src/stores/sqlite.ts";
import { type SignedRequest, signedRequest } from "../../src/testing/index.ts";
import type { SourceName } from "../proofs/sources.ts";

/** Compiled by the tests' global set-up. */
const PROGRAM = fileURLToPath(new URL("../../.build/test/concurrency/child.js", import.meta.url));

export interface ChildOptions {
  readonly path: string;
  /** Where it writes the starts and ends of its handlers. */
  readonly log: string;
  /** Its worker is started. */
  readonly works: boolean;
  readonly prunes: boolean;
  readonly seed: number;
  /** The share of attempts that fail, 0 to 1. */
  readonly failures: number;
  readonly receiver: { readonly leaseMs?: number; readonly maxAttempts?: number; readonly concurrency?: number };
  readonly store: Pick<SqliteStoreOptions, "busyTimeoutMs" | "maxDatabaseBytes">;
}

export type Request =
  | { readonly id: number; readonly kind: "stall" }
  | { readonly id: number; readonly kind: "stop" }
  | {
      readonly id: number;
      readonly kind: "deliver";
      readonly source: SourceName;
      readonly headers: Record<string, string>;
      readonly text: string;
    };

/** The answer to a request; id 0 for what a child says by itself. */
export interface Answered {
  readonly id: number;
  readonly status?: number;
  readonly outcome?: string;
  readonly stallMs?: number;
  readonly dead?: number;
}

/** A delivery that a killed process leaves unanswered has status 0. */
const UNANSWERED: Answered = { id: 0, status: 0, outcome: "" };

export class Child {
  readonly process: ChildProcess;
  readonly ready: Promise<unknown>;
  readonly dead: number[] = [];
  readonly #waiting = new Map<number, (answered: Answered) => void>();
  readonly #wishes = new Set<"stop" | "kill">();
  #strangeEnd: string | null = null;
  #lastId = 0;

  /** @param env - beside this process's own */
  constructor(options: object, program = PROGRAM, env: Readonly<Record<string, string>> = {}) {
    this.process = fork(program, [JSON.stringify(options)], {
      execArgv: [],
      env: { ...process.env, ...env },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.ready = Promise.race([once(this.process, "message"), once(this.process, "exit").then(endedEarly)]);
    this.ready.catch(() => {});
    this.process.on("message", (answered: Answered) => {
      if (answered.dead !== undefined) this.dead.push(answered.dead);
      this.#waiting.get(answered.id)?.(answered);
      this.#waiting.delete(answered.id);
    });
    this.process.once("exit", (code, signal) => {
      const isStopped = this.#wishes.has("stop") && code === 0;
      const isKilled = this.#wishes.has("kill") && signal === "SIGKILL";
      if (!isStopped && !isKilled) this.#strangeEnd = this.#endOf(code ?? signal);
      for (const resolve of this.#waiting.values()) resolve(UNANSWERED);
      this.#waiting.clear();
    });
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** How it ended, when it was neither killed by `kill()` nor let go by `stop()` with code 0. */
  get strangeEnd(): string | null {
    return this.#strangeEnd;
  }

  deliver(event: object, space?: number): Promise<Answered> {
    return this.pass("messages", signedRequest(JSON.stringify(event, null, space)));
  }

  pass(source: SourceName, { headers, body }: SignedRequest): Promise<Answered> {
    return this.#ask({ kind: "deliver", source, headers, text: new TextDecoder().decode(body) });
  }

  /** The longest stall of its event loop since it was asked last, ms. */
  async stallMs(): Promise<number> {
    return (await this.#ask({ kind: "stall" })).stallMs ?? Number.NaN;
  }

  /** Lets it end what it does, and waits for its exit. */
  async stop(): Promise<void> {
    if (this.#hasEnded) return;
    this.#wishes.add("stop");
    const exited = once(this.process, "exit");
    void this.#ask({ kind: "stop" });
    await exited;
  }

  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    this.#wishes.add("kill");
    const exited = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exited;
  }

  get #hasEnded(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  #endOf(code: number | NodeJS.Signals | null): string {
    const wish = [...this.#wishes].at(-1);
    return `ended with ${code} ${wish === undefined ? "by itself" : `at a ${wish}`}`;
  }

  #ask(request: WithoutId<Request>): Promise<Answered> {
    if (!this.process.connected) return Promise.resolve(UNANSWERED);
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      // A process that has just died takes no message; its exit answers.
      this.process.send({ ...request, id }, () => {});
    });
  }
}

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;

function endedEarly([code]: unknown[]): never {
  throw new Error(`A child ended with ${String(code)} before it was ready.`);
}

/** Processes on one inbox in a directory of its own. */
export class Family {
  readonly path: string;
  readonly children: Child[] = [];
  readonly logs: string[] = [];
  readonly #folder: string;
  #db: InstanceType<typeof Database> | null = null;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "inbox.db");
  }

  async add(wish: Partial<ChildOptions> = {}): Promise<Child> {
    const log = join(this.#folder, `${this.logs.push("")}.log`);
    this.logs[this.logs.length - 1] = log;
    const child = new Child({
      ...{ path: this.path, log, works: true, prunes: false, seed: 1, failures: 0, receiver: {}, store: {} },
      ...wish,
    });
    this.children.push(child);
    await child.ready;
    return child;
  }

  /** A connection of the test's own, which only reads. */
  get db(): InstanceType<typeof Database> {
    this.#db ??= new Database(this.path, { readonly: true });
    return this.#db;
  }

  /** The first column of the first row. */
  number(sql: string, ...params: unknown[]): number {
    return Number(
      this.db
        .prepare(sql)
        .pluck()
        .get(...params),
    );
  }

  stop(): Promise<unknown> {
    return Promise.all(this.children.map((child) => child.stop()));
  }

  async remove(): Promise<void> {
    await Promise.all(this.children.map((child) => child.kill()));
    this.#db?.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export async function withFamily(work: (family: Family) => Promise<void>): Promise<void> {
  const family = new Family(await mkdtemp(join(tmpdir(), "oncehook-processes-")));
  try {
    await work(family);
  } finally {
    await family.remove();
  }
}

/** Waits for other processes, looking every few milliseconds; fails after `timeoutMs`. */
export async function until(what: string, holds: () => boolean, timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`Waited ${timeoutMs} ms in vain: ${what}.`);
    await sleep(10);
  }
}
