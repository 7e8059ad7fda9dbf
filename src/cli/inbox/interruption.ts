/** Long work that a signal ends between two steps. */
import { CommandError } from "../failure.ts";
import { codeOf, endingSignal } from "../signals.ts";

/**
 * Resolves once the work has ended: with undefined, or, if a signal ended it, with the error to throw after what was done is told.
 *
 * @param advice - how to go on
 */
export async function interruptible(
  work: (signal: AbortSignal) => Promise<void>,
  advice: string,
): Promise<CommandError | undefined> {
  const stop = new AbortController();
  let heard: NodeJS.Signals | undefined;
  void endingSignal().then((signal) => {
    heard = signal;
    stop.abort();
  });
  try {
    await work(stop.signal);
    return undefined;
  } catch (error) {
    if (heard === undefined || error !== stop.signal.reason) throw error;
    return new CommandError(`Stopped. ${advice}`, codeOf(heard), { cause: error });
  }
}
