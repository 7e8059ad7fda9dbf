/** A receiver in a process of its own: it loads, stands by, is let go, and is killed or ended. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Flaw } from "./flaws.ts";

/** From the repository's root; compiled by the tests' global set-up, and with the proof programmes. */
const CHILD = ".build/test/proofs/crash/child.js";

export interface ChildOptions {
  readonly path: string;
  readonly flaws: readonly Flaw[];
}

/** What a child says when it listens. */
export interface Ready {
  readonly port: number;
  /** From the word to open the inbox until it listens. */
  readonly recoveryMs: number;
  /** The processor's time of it, without the loading of modules before, which tells more of Node than of the inbox. */
  readonly processorMs: number;
}

export class ReceiverProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown[]>;
  readonly #loaded: Promise<void>;
  readonly #ready: Promise<Ready>;
  #errors = "";

  constructor(options: ChildOptions) {
    const child = spawn(process.execPath, [CHILD, JSON.stringify(options)], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    this.#exited = once(child, "exit");
    child.stderr.on("data", (chunk) => (this.#errors += chunk));
    // A child that was just killed takes no word any more.
    child.stdin.on("error", () => {});
    const closed = once(child, "close").then(([code, signal]) => {
      throw new Error(`The child ended with ${code ?? signal}: ${this.#errors}`);
    });
    const lines = createInterface({ input: child.stdout });
    const loaded = once(lines, "line");
    this.#loaded = Promise.race([loaded, closed]).then(() => {});
    const ready = loaded.then(() => once(lines, "line")).then(([line]) => JSON.parse(String(line)) as Ready);
    this.#ready = Promise.race([ready, closed]);
    for (const promise of [closed, this.#loaded, this.#ready]) promise.catch(() => {});
  }

  /** Opens the inbox, as soon as everything is loaded. */
  async letGo(): Promise<void> {
    await this.#loaded;
    this.#child.stdin?.write("go\n");
  }

  /** Rejects with what the child printed if it ended before. */
  get ready(): Promise<Ready> {
    return this.#ready;
  }

  /** Or about to be. */
  get isKilled(): boolean {
    return this.#child.killed;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Lets it handle what is there. Its exit code, null after a signal. */
  async end(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    const [code] = await this.#exited;
    return code as number | null;
  }
}
