/** Another process of the benchmark, asked one thing at a time. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export interface Child {
  /** Sends a question and resolves with its answer. Rejects when the process ends instead. */
  ask<Answer>(question: object): Promise<Answer>;
  stop(): Promise<void>;
}

/** Starts `module` of this folder. Everything it needs goes through `ask`. */
export function startChild(
  module: "load" | "server" | "client-server" | "scale-worker" | "inspector-server",
  args: readonly string[] = [],
): Child {
  const child = fork(join(import.meta.dirname, `${module}.js`), args, { serialization: "advanced" });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`The process "${module} ${args.join(" ")}" ended with ${code}.`);
  });
  ended.catch(() => {});
  return {
    async ask<Answer>(question: object): Promise<Answer> {
      const answered = once(child, "message");
      child.send(question);
      const [answer] = await Promise.race([answered, ended]);
      // The module on the other side answers each question with one type.
      return answer as Answer;
    },
    async stop() {
      // One that has ended by itself is stopped too, with the others of a benchmark that failed.
      if (child.connected) child.disconnect();
      await ended.catch(() => {});
    },
  };
}

/** Serves the questions of the process that started this one, until it lets go. */
export function answerParent<Question>(answer: (question: Question) => Promise<unknown>): void {
  process.on("message", (question: Question) => {
    void answer(question).then((answered) => process.send?.(answered));
  });
  // A server that still listens would go on for ever.
  process.on("disconnect", () => process.exit());
}
