/** Signals that ask the process to end: the first one is told, a second one ends it at once. */
import { constants } from "node:os";

/** All that a terminal, its end and an init send: else a process group of ours would outlive this process. */
const SIGNALS = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const;

/** Resolves with the first signal from now on. A second one ends the process with 128 + its number. */
export function endingSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const hear = (signal: NodeJS.Signals) => {
      if (asked) process.exit(codeOf(signal));
      asked = true;
      resolve(signal);
    };
    for (const signal of SIGNALS) process.on(signal, hear);
  });
}

/** The exit code that shells give a process that a signal ended. */
export function codeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}
