/** Trying again to store a secret that the service made, which nobody else knows. */
import { ConnectionError, ServiceError } from "../client/errors.ts";
import { OncehookError, type OncehookErrorCode, SetupError, StoreError } from "../errors.ts";
import { sleep } from "../internal/clock.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";

const LONGEST_MS = 120_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Does the work until it succeeds, with growing pauses, for 2 minutes. The signal does not end it: what is given up is lost.
 *
 * @param work - gets how often it has failed
 * @throws StoreError, which says that the secret is lost, with the code of what the work failed with last
 */
export async function persistently<T>(rotation: Rotation, work: (failures: number) => Promise<T>): Promise<T> {
  const { clock, kind, logger } = rotation;
  const begunAt = clock.monotonic();
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; failures++) {
    try {
      return await work(failures);
    } catch (error) {
      if (clock.monotonic() - begunAt >= LONGEST_MS) throw lost(rotation, error);
      if (failures === 0)
        logger.warn({ kind }, "The secret that the service made is not stored yet: it is tried again.");
    }
    await sleep(clock, pauseMs);
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS);
  }
}

/** Store and service alike can have failed: the message blames neither. */
function lost({ kind }: Rotation, error: unknown): StoreError {
  const message = `The service made a ${kind} secret of its own, and it could not be stored for ${LONGEST_MS / 1_000} s: that secret is lost, and deliveries are refused. See to what failed, which the code and the cause name, and call rotateSecret() again: the service makes another one.`;
  // A foreign error may quote what was to be stored.
  return new StoreError(codeOf(error), message, error instanceof OncehookError ? { cause: error } : {});
}

/** A code that the service wrote is none of ours: it stays with the cause. */
function codeOf(error: unknown): OncehookErrorCode {
  if (error instanceof StoreError || error instanceof SetupError || error instanceof RotationError) return error.code;
  if (error instanceof ConnectionError) return error.code;
  return error instanceof ServiceError ? "api_error" : "store_unavailable";
}
