/** A process of its own that answers questions: how it is started, asked, stopped and killed, and the side that answers. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Question {
  readonly id: number;
  readonly kind: string;
  readonly input: unknown;
}

interface Reply {
  readonly id: number;
  readonly answer: unknown;
  /** In place of an answer: what the process threw. */
  readonly error: string | null;
}

/** A file of this folder as Node 20 can run it: programmes run where it is compiled to, tests where it is written. */
export function compiled(file: string): string {
  const folder = import.meta.url.endsWith(".ts") ? "../../.build/test/proofs/" : "./";
  return fileURLToPath(new URL(`${folder}${file}`, import.meta.url));
}

/** By which command, with which arguments before the program. Default: by Node itself. */
export interface Started {
  readonly execPath?: string;
  readonly execArgv: string[];
}

export class Asked {
  readonly process: ChildProcess;
  readonly #exited: Promise<unknown>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  readonly #wishes = new Set<"stop" | "kill">();
  #strangeEnd: string | null = null;
  #lastId = 0;

  /** Starts the compiled file `program` with `options`. @param env - besides this process's own */
  constructor(program: string, options: object, env: NodeJS.ProcessEnv = {}, started: Started = { execArgv: [] }) {
    this.process = fork(program, [JSON.stringify(options)], { ...started, env: { ...process.env, ...env } });
    this.#exited = once(this.process, "exit");
    this.process.on("message", (reply: Reply) => this.#settle(reply));
    this.process.once("exit", (code, signal) => {
      const isStopped = this.#wishes.has("stop") && code === 0;
      const isKilled = this.#wishes.has("kill") && signal === "SIGKILL";
      const wish = [...this.#wishes].at(-1);
      const end = `ended with ${code ?? signal} ${wish === undefined ? "by itself" : `at a ${wish}`}`;
      if (!isStopped && !isKilled) this.#strangeEnd = end;
      for (const id of [...this.#waiting.keys()]) this.#settle({ id, answer: null, error: `it ${end}` });
    });
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** How it ended, when it was neither killed by `kill()` nor let go by `stop()` with code 0. */
  get strangeEnd(): string | null {
    return this.#strangeEnd;
  }

  get isKilled(): boolean {
    return this.#wishes.has("kill");
  }

  /** @throws what the process threw, or how it ended instead */
  async ask<Answer>(kind: string, input: unknown = null): Promise<Answer> {
    const id = ++this.#lastId;
    const { answer, error } = await new Promise<Reply>((resolve) => {
      this.#waiting.set(id, resolve);
      // Of a process that has just died the exit answers; one that died before takes no question.
      if (this.process.connected) this.process.send({ id, kind, input } satisfies Question, () => {});
      else this.#settle({ id, answer: null, error: "it has ended" });
    });
    if (error !== null) throw new Error(`A process that was asked for "${kind}": ${error}`);
    // The program on the other side answers each kind with one type.
    return answer as Answer;
  }

  /** Lets it end what it does, and waits for its exit; a line if it ended otherwise than it was told to. */
  async stop(): Promise<readonly string[]> {
    if (!this.#hasEnded) {
      this.#wishes.add("stop");
      if (this.process.connected) this.process.disconnect();
      await this.#exited;
    }
    return this.#strangeEnd === null ? [] : [`a process ${this.#strangeEnd}`];
  }

  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    this.#wishes.add("kill");
    this.process.kill("SIGKILL");
    await this.#exited;
  }

  get #hasEnded(): boolean {
    return this.process.exitCode !== null || this.process.signalCode !== null;
  }

  #settle(reply: Reply): void {
    this.#waiting.get(reply.id)?.(reply);
    this.#waiting.delete(reply.id);
  }
}

/** The other side: `answers` has a function for each kind; `end` runs when nobody asks any more, and is followed by the exit. */
export function answering(
  answers: Readonly<Record<string, (input: never) => unknown>>,
  end: () => unknown = () => {},
): void {
  process.on("message", async ({ id, kind, input }: Question) => {
    // A parent that is gone hears nothing.
    const reply = (answer: unknown, error: string | null) =>
      void process.send?.({ id, answer, error } satisfies Reply, undefined, undefined, () => {});
    try {
      reply(await answers[kind]?.(input as never), null);
    } catch (error) {
      reply(null, error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  });
  const isLeft = async () => {
    await end();
    process.exit(0);
  };
  if (process.connected) process.once("disconnect", isLeft);
  else void isLeft();
}

/** What such a process was given: the JSON of its options. */
export function givenOptions<Options>(): Options {
  return JSON.parse(process.argv[2] ?? "{}") as Options;
}

/** What work apart came to. */
export type Answer<Outcome> = { readonly outcome: Outcome } | { readonly error: string };

export interface Work {
  /** The URL of a module, and which function of it does the work. */
  readonly module: string;
  readonly name: string;
}

/** A process that does `work`, which `file` of this folder exports, each time it is asked for `work`. */
export function worker(file: string, work: (input: never) => unknown): Asked {
  const module = pathToFileURL(compiled(file)).href;
  return new Asked(compiled("worker-child.js"), { module, name: work.name } satisfies Work);
}

/** Does such work once, so that all cores work. */
export async function apart<Input, Outcome>(
  file: string,
  work: (input: Input) => Promise<Outcome>,
  input: Input,
): Promise<Answer<Outcome>> {
  const apart = worker(file, work);
  try {
    return { outcome: await apart.ask<Outcome>("work", input) };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  } finally {
    await apart.stop();
  }
}
