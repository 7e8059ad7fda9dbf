/** A failure of the emulator's own: a line in its log, and to its caller nothing of the cause. */
import type { LogFields } from "../../internal/logger.ts";
import type { Settings } from "../options.ts";

/** What a caller is told. */
export const OWN_FAILURE = "The emulator failed to answer; its log says why.";

/** Tells the log. */
export function logFailure(
  { logger }: Pick<Settings, "logger">,
  error: unknown,
  { message, ...fields }: LogFields & { readonly message: string },
): void {
  const reason = error instanceof Error ? error.message : String(error);
  logger.error({ ...fields, reason }, message);
}
