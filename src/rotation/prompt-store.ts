/** A secret store whose answers a rotation does not wait for without end. */
import { StoreError } from "../errors.ts";
import type { SecretStore } from "../signature/secret-store.ts";
import type { Rotation } from "./options.ts";

const LONGEST_ANSWER_MS = 10_000;

/**
 * The store, for the steps before the service has the secret: what it is asked ends with an answer, with the signal, or after
 * 10 s. Its writes are not cut off: nobody would know what became of them.
 */
export function promptStore({ secrets, clock, signal }: Pick<Rotation, "secrets" | "clock" | "signal">): SecretStore {
  const prompt = <T>(method: string, ask: () => Promise<T>) =>
    new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = () => {
        timer.cancel();
        signal?.removeEventListener("abort", abort);
      };
      const abort = () => reject(signal?.reason);
      const timer = clock.setTimeout(() => reject(noAnswer(method)), LONGEST_ANSWER_MS);
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
    write: (kind, slots, revision) => secrets.write(kind, slots, revision),
    close: () => secrets.close(),
  };
}

function noAnswer(method: string): StoreError {
  const seconds = LONGEST_ANSWER_MS / 1_000;
  const message = `The secret store did not answer ${method}() within ${seconds} s. The service has no new secret: call rotateSecret() again when the store answers.`;
  return new StoreError("store_unavailable", message);
}
