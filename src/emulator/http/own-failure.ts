/** A failure of the emulator's own: a line in its log, and to its caller nothing of the cause. */
import { guardedLogger, type LogFields } from "../../internal/logger.ts";
import type { Settings } from "../options.ts";

/** What a caller is told. */
export const OWN_FAILURE = "The emulator failed to answer; its log says why.";

/** Tells the log, also one that fails itself. */
export function logFailure(
  { logger }: Pick<Settings, "logger">,
  error: unknown,
  { message, ...fields }: LogFields & { readonly message: string },
): void {
  const reason = error instanceof Error ? error.message : String(error);
  guardedLogger(logger).error({ ...fields, reason }, message);
}
