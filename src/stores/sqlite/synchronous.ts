/** Refuses promises from functions of the application's that nothing waits for. */
import type { SetupError } from "../../errors.ts";

/** Throws `refusal()` when `answer` is a promise. */
export function refusePromise(answer: unknown, refusal: () => SetupError): void {
  if (typeof answer !== "object" || answer === null || !("then" in answer) || typeof answer.then !== "function") return;
  // Its outcome is not waited for, and must not become an unhandled rejection.
  answer.then(undefined, () => {});
  throw refusal();
}
