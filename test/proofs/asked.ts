/** A process of its own that answers questions, one kind at a time, until it is ended: both sides of it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

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

export class Asked {
  readonly #process: ChildProcess;
  readonly #exited: Promise<string>;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #lastId = 0;

  /** Starts the compiled file `program` with `options`; what it prints is printed here. */
  constructor(program: string, options: object, env: NodeJS.ProcessEnv = process.env) {
    this.#process = fork(program, [JSON.stringify(options)], { execArgv: [], env });
    this.#exited = once(this.#process, "exit").then(([code, signal]) => String(code ?? signal));
    this.#process.on("message", (reply: Reply) => {
      this.#waiting.get(reply.id)?.(reply);
      this.#waiting.delete(reply.id);
    });
    void this.#exited.then((end) => {
      for (const [id, settle] of this.#waiting) settle({ id, answer: null, error: `it ended with ${end}` });
      this.#waiting.clear();
    });
  }

  /** @throws what the process threw, or how it ended instead */
  async ask<Answer>(kind: string, input: unknown = null): Promise<Answer> {
    const id = ++this.#lastId;
    const { answer, error } = await new Promise<Reply>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#process.send({ id, kind, input } satisfies Question, (failure) => {
        if (failure !== null) resolve({ id, answer: null, error: failure.message });
      });
    });
    if (error !== null) throw new Error(`A process that was asked for "${kind}": ${error}`);
    // The programme on the other side answers each kind with one type.
    return answer as Answer;
  }

  /** Lets it go, and waits for its end; a line if it ended otherwise than by itself. */
  async end(): Promise<readonly string[]> {
    if (this.#process.connected) this.#process.disconnect();
    const end = await this.#exited;
    return end === "0" ? [] : [`a process ended with ${end}`];
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }
}

/** The other side: `answers` has a function for each kind; `end` runs when nobody asks any more, and is followed by the exit. */
export function answering(
  answers: Readonly<Record<string, (input: never) => unknown>>,
  end: () => Promise<void> | void,
): void {
  process.on("message", async ({ id, kind, input }: Question) => {
    const reply = (answer: unknown, error: string | null) => process.send?.({ id, answer, error } satisfies Reply);
    try {
      reply(await answers[kind]?.(input as never), null);
    } catch (error) {
      reply(null, error instanceof Error ? (error.stack ?? error.message) : String(error));
    }
  });
  process.once("disconnect", async () => {
    await end();
    process.exit(0);
  });
}
