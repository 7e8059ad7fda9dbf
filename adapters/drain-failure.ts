/** What the log says of a drain that failed. */
import { type Logger, OncehookError } from "../src/index.ts";
import { placeOf } from "../src/internal/foreign-error.ts";

/** Our own errors are told whole, for they name the fix and hold nothing secret; of others no more than their kind. */
export function logDrainFailure(logger: Logger, error: unknown, message: string): void {
  if (error instanceof OncehookError) return logger.error({ code: error.code }, `${message} ${error.message}`);
  const { at } = placeOf(error);
  logger.error({ reason: error instanceof Error ? error.name : typeof error, ...(at && { at }) }, message);
}
