/** The receiver's process, as the demo starts, kills and stops it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type EventKey, nameOf } from "./load.ts";
import type { DemoState } from "./receiver.ts";

/** Compiled, it lies next to this file. */
const PROGRAM = fileURLToPath(new URL("./receiver.js", import.meta.url));

export class ReceiverProcess {
  /** Names of the events whose handlers ran to their end, as the process printed them. */
  readonly handled = new Set<string>();
  /** Its warnings and errors: refusals and failures that the demo provokes. */
  readonly log: string[] = [];
  readonly #environment: NodeJS.ProcessEnv;
  #child: ChildProcess | undefined;
  #listening: Promise<string> = Promise.reject(new Error("The receiver was not started."));

  constructor(environment: NodeJS.ProcessEnv) {
    this.#environment = environment;
    this.#listening.catch(() => {});
  }

  /** Its address, once it listens. */
  get url(): Promise<string> {
    return this.#listening;
  }

  /** Starts it, on the port it had before if any, and resolves with its address. */
  start(port = "0"): Promise<string> {
    this.#listening = this.#launch(port);
    return this.#listening;
  }

  /**
   * Kills it without warning and starts another one on the same inbox. Callers that ask for `url` meanwhile wait.
   * Resolves with what the killed one had handled.
   */
  async killAndRestart(): Promise<ReadonlySet<string>> {
    const { port } = new URL(await this.#listening);
    const exited = this.#exited();
    const handled = exited.then(() => new Set(this.handled));
    this.#listening = handled.then(() => this.#launch(port));
    this.#child?.kill("SIGKILL");
    await this.#listening;
    return handled;
  }

  #launch(port: string): Promise<string> {
    const child = spawn(process.execPath, [PROGRAM], {
      env: { ...process.env, ...this.#environment, PORT: port },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    createInterface({ input: child.stderr }).on("line", (line) => this.log.push(line));
    return new Promise((resolve, reject) => {
      child.once("exit", (code) =>
        reject(new Error(`The receiver ended with ${code} before it listened: ${this.log.at(-1)}`)),
      );
      createInterface({ input: child.stdout }).on("line", (text) => {
        const line = JSON.parse(text) as { listening: string } | EventKey;
        if ("listening" in line) resolve(line.listening);
        else this.handled.add(nameOf(line));
      });
    });
  }

  /** Asks it to stop, and resolves with its exit code. */
  async stop(): Promise<number | null> {
    const exited = this.#exited();
    this.#child?.kill("SIGTERM");
    return exited;
  }

  async state(): Promise<DemoState> {
    const response = await fetch(`${await this.#listening}/demo/state`);
    return (await response.json()) as DemoState;
  }

  async #exited(): Promise<number | null> {
    if (this.#child === undefined || this.#child.exitCode !== null || this.#child.signalCode !== null) return null;
    // "close" comes behind the last line that it printed.
    const [code] = (await once(this.#child, "close")) as [number | null];
    return code;
  }
}
