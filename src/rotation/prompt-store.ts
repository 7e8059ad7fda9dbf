/** A secret store whose answers a rotation does not wait for without end. */
import { StoreError } from "../errors.ts";
import type { SecretStore } from "../signature/secret-store.ts";
import type { Rotation } from "./options.ts";

const LONGEST_ANSWER_MS = 10_000;

/** Where a call stands when its store does not answer. */
const STANDINGS = {
  early: "This call gave the service no secret; an earlier one may have.",
  late: "The service has a new secret by then.",
} as const;

/**
 * The store, for the steps before this call gives the service the secret, `early`, or for those after it: what it is asked ends with an
 * answer, with the signal if there is one, or after 10 s. What became of a write without an answer, the next look at the store shows.
 */
export function promptStore(
  { secrets, clock, signal }: Pick<Rotation, "secrets" | "clock" | "signal">,
  standing: keyof typeof STANDINGS,
): SecretStore {
  const prompt = <T>(method: string, ask: () => Promise<T>) =>
    new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = () => {
        timer.cancel();
        signal?.removeEventListener("abort", abort);
      };
      // The answer may never come, and the timer would keep the process until its end.
      const giveUp = (reason: unknown) => {
        end();
        reject(reason);
      };
      const abort = () => giveUp(signal?.reason);
      const timer = clock.setTimeout(() => giveUp(noAnswer(method, standing)), LONGEST_ANSWER_MS);
      timer.keepAlive();
      signal?.addEventListener("abort", abort, { once: true });
      const answer = (async () => ask())();
      answer.then(resolve, reject).finally(end);
    });
  return {
    refreshMs: secrets.refreshMs,
    encoding: secrets.encoding,
    read: (kind) => prompt("read", () => secrets.read(kind)),
    receivers: () => prompt("receivers", () => secrets.receivers()),
    write: (kind, slots, revision) => prompt("write", () => secrets.write(kind, slots, revision)),
    close: () => secrets.close(),
  };
}

function noAnswer(method: string, standing: keyof typeof STANDINGS): StoreError {
  const seconds = LONGEST_ANSWER_MS / 1_000;
  const message = `The secret store did not answer ${method}() within ${seconds} s. ${STANDINGS[standing]} Call rotateSecret() again when the store answers.`;
  return new StoreError("store_unavailable", message);
}
