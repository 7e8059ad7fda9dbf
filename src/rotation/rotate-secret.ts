/** `rotateSecret()`: gives the service a new signing secret that every receiver has already. */
import { commit, endedElsewhere } from "./commit.ts";
import { handOver } from "./hand-over.ts";
import { resolveOptions } from "./options.ts";
import { promptStore } from "./prompt-store.ts";
import { begin, installed } from "./steps.ts";
import type { RotateSecretOptions, RotationResult } from "./types.ts";
import { untilReceiversAreReady } from "./waiting.ts";

/**
 * Rotates the signing secret of a webhook kind: makes one, installs it as `next`, waits until every living receiver has it,
 * gives it to the service, and makes it `current`. Each step is durable before the next: a call that was cut off anywhere is
 * made again, and goes on with the same secret. What was replaced still counts for as long as a delivery signed with it can
 * come: the service's own window, all retries (DLV-6, DLV-17), and the receivers' tolerance.
 *
 * @returns when the service signs with the new secret
 * @throws SetupError for a wrong option
 * @throws RotationError `rotation_refused`, this call gave the service no secret: a replaced one is still valid (`fields.until`,
 *   epoch ms), the store lacks the service's secret or its last rotation, or there would be more than 8 secrets;
 *   `receivers_not_ready`, nor did this: some did not get the secret in time (`fields.receivers`); `not_rotated`: the service
 *   shows no rotation; `rotation_conflict`: another one ended meanwhile; `invalid_response`: the service's answer is no
 *   configuration
 * @throws StoreError when a secret that the service made could not be stored for 2 minutes and is lost; its `code` says why
 * @throws what client and secret store reject with, such as `NotFoundError` (WHK-27), and the reason of `signal`
 * @example
 * const { previousValidUntil } = await rotateSecret({ client, kind: "delivery", secrets });
 */
export async function rotateSecret(options: RotateSecretOptions): Promise<RotationResult> {
  const rotation = resolveOptions(options);
  const { kind, signal, logger } = rotation;
  signal?.throwIfAborted();
  const early = { ...rotation, secrets: promptStore(rotation, "early") };
  const { next, resumed } = await begin(early);
  signal?.throwIfAborted();
  const receivers = await untilReceiversAreReady(early);
  const { stored, isEnded } = await installed(early, next);
  signal?.throwIfAborted();
  // From here on only a failure ends it: the service may make a secret that nothing but its answer tells.
  const late = { ...rotation, secrets: promptStore({ ...rotation, signal: undefined }, "late") };
  const ending = isEnded
    ? await endedElsewhere(late, stored)
    : await commit(late, { ...(await handOver(late, next)), next, stored });
  logger.info({ kind, ...ending }, "The rotation has ended.");
  return { kind, resumed, receivers, ...ending };
}
