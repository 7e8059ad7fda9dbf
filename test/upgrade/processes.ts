/** Processes of version 0.1.0, from its own package, and of this version, from `dist/`: the same programme for both. */
import { type ChildProcess, execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";

/** A programme runs compiled, and what it starts is not. */
const ROOT = join(import.meta.dirname, import.meta.url.endsWith(".ts") ? "../.." : "../../..");
const HOME = join(ROOT, "test", "upgrade");

/** The package of this version, as it is published. */
export const OWN_PACKAGE = ROOT;

/** Unpacks 0.1.0 into `folder`; returns where it is. */
export function unpackOld(folder: string): string {
  execFileSync("tar", ["-xzf", join(HOME, "oncehook-0.1.0.tgz"), "-C", folder]);
  // Its drivers are those of this repository.
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return join(folder, "package");
}

export interface ProcessOptions {
  readonly leaseMs?: number;
  /** Its handlers write the table `effect`, on Postgres next to the schema. */
  readonly writes?: true;
}

interface Answer {
  readonly result?: unknown;
  /** In place of a result: of the error. */
  readonly code?: string;
}

const ENDED: Answer = { code: "ended" };

export class VersionProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #asked = 0;

  private constructor(from: string, place: string, options: ProcessOptions) {
    this.#child = fork(join(HOME, "process.mjs"), [from, place, JSON.stringify(options)], { execArgv: [] });
    this.#child.on("message", ({ id, ...answer }: Answer & { readonly id: number }) => {
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
    this.#exited = once(this.#child, "exit");
    this.#child.on("exit", () => {
      for (const resolve of this.#waiting.values()) resolve(ENDED);
      this.#waiting.clear();
    });
  }

  /** @param from - the folder of a package. @param place - a file, or the URL and the schema of Postgres */
  static async begin(from: string, place: string, options: ProcessOptions = {}): Promise<VersionProcess> {
    const begun = new VersionProcess(from, place, options);
    await begun.#answer(0);
    return begun;
  }

  /** Rejects with the code of the error. */
  async ask(act: "start" | "send" | "handled" | "stop", content?: object): Promise<unknown> {
    const id = ++this.#asked;
    const answered = this.#answer(id);
    if (!this.#child.connected) throw new Error(ENDED.code);
    this.#child.send({ id, act, content }, () => {});
    const { code, result } = await answered;
    if (code !== undefined) throw new Error(code);
    return result;
  }

  /** Whether something that was asked is not answered. */
  get isAsked(): boolean {
    return this.#waiting.size > 0;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  #answer(id: number): Promise<Answer> {
    return new Promise((resolve) => this.#waiting.set(id, resolve));
  }
}
