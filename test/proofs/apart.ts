/** Work in a process of its own, so that all cores work: how it is given there, and how its outcome comes back. */
import { fork } from "node:child_process";

/** What a child answers with. */
export type Answer<Outcome> = { readonly outcome: Outcome } | { readonly error: string };

/** Starts the compiled file `child`, which calls `answerWith`. */
export function apart<Outcome>(child: string, input: unknown): Promise<Answer<Outcome>> {
  const started = fork(child, [JSON.stringify(input)], { execArgv: [] });
  return new Promise((resolve) => {
    started.once("message", (answer: Answer<Outcome>) => resolve(answer));
    started.once("error", (error) => resolve({ error: error.message }));
    started.once("exit", (code, signal) => resolve({ error: `its process ended with ${code ?? signal}` }));
  });
}

/** The whole of a child: does the work it was started for, and ends. */
export async function answerWith<Input, Outcome>(work: (input: Input) => Promise<Outcome>): Promise<void> {
  const answer = (message: Answer<Outcome>) => process.send?.(message, () => process.disconnect());
  try {
    answer({ outcome: await work(JSON.parse(process.argv[2] ?? "") as Input) });
  } catch (error) {
    answer({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}
