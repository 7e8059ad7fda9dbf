/** A machine as its operator meets it: a process on a port of its own that is killed, paused and started again. */
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../../concurrency/family.ts";
import { freePort } from "../../support/free-port.ts";
import type { Flaw } from "./terms.ts";

/** Beside this file, where it was compiled to. */
const PROGRAM = fileURLToPath(new URL("./child.js", import.meta.url));
/** How long a handler is waited for before a process is killed or paused outside of one. */
const HANDLER_LIMIT_MS = 1_000;

export interface MachineOptions {
  readonly name: string;
  readonly port: number;
  /** Of the server, and the schema that the machines share. */
  readonly url: string;
  readonly schema: string;
  readonly gapWaitMs: number;
  readonly flaws: readonly Flaw[];
}

export type Order = { readonly kind: "hold" } | { readonly kind: "stop" };

export class Machine {
  readonly name: string;
  readonly url: string;
  readonly #options: MachineOptions;
  readonly #ended: Child[] = [];
  #child: Child;

  private constructor(options: MachineOptions) {
    this.#options = options;
    this.name = options.name;
    this.url = `http://127.0.0.1:${options.port}/webhooks`;
    this.#child = new Child(options, PROGRAM);
  }

  static async start(options: Omit<MachineOptions, "port">): Promise<Machine> {
    const machine = new Machine({ ...options, port: await freePort() });
    await machine.#child.ready;
    return machine;
  }

  /** A line for each of its processes that ended otherwise than it was made to. */
  get strangeEnds(): readonly string[] {
    return [...this.#ended, this.#child].flatMap(({ strangeEnd }) =>
      strangeEnd === null ? [] : [`machine ${this.name} ${strangeEnd}`],
    );
  }

  /** As when it loses its power, in the midst of a handler; after `downMs` it starts again on the same port. */
  async crash(downMs: number): Promise<void> {
    await this.#inHandler();
    await this.#child.kill();
    await sleep(downMs);
    this.#ended.push(this.#child);
    this.#child = new Child(this.#options, PROGRAM);
    await this.#child.ready;
  }

  /** Stands still in the midst of a handler, which goes on after `ms` as if nothing had been. */
  async pause(ms: number): Promise<void> {
    await this.#inHandler();
    this.#child.process.kill("SIGSTOP");
    await sleep(ms);
    this.#child.process.kill("SIGCONT");
  }

  /** Lets it end what it does. */
  stop(): Promise<void> {
    return this.#child.stop();
  }

  kill(): Promise<void> {
    return this.#child.kill();
  }

  /** Resolves when a handler has just begun and is held up for a moment, or when none began for too long. */
  async #inHandler(): Promise<void> {
    const { process } = this.#child;
    const said = once(process, "message", { signal: AbortSignal.timeout(HANDLER_LIMIT_MS) });
    // One that has ended takes no message; its end is told at the end of the run.
    process.send({ kind: "hold" } satisfies Order, () => {});
    await said.catch(() => {});
  }
}
