/** What nobody caught, while a test runs. */
import { onTestFinished } from "vitest";

/** What would end the process from now on to the end of the test, in the place of the test runner's own watch. */
export function uncaughtErrors(): unknown[] {
  const errors: unknown[] = [];
  const before = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", (error) => void errors.push(error));
  onTestFinished(() => {
    process.removeAllListeners("uncaughtException");
    for (const listener of before) process.on("uncaughtException", listener);
  });
  return errors;
}
