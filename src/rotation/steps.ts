/** The first steps of a rotation: a new secret in the store, and a look at it before the service gets it. */
import { randomBytes } from "node:crypto";
import type { WebhookConfig } from "../client/types.ts";
import type { NextSecret, SecretSlots, StoredSecrets } from "../signature/secret-store.ts";
import { configOf } from "./config.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";
import { refuseTooManySecrets, refuseUnlessSettled } from "./refusals.ts";
import { NOTHING_STORED, timestampOf, withNext } from "./slots.ts";
import { storedVersion } from "./waiting.ts";

const SECRET_BYTES = 32;
/** Each loss means that somebody else's write went through: more than a few are no coincidence. */
export const MOST_WRITES = 10;

/** Installs a new secret as `next`, or takes up the one that is there: the service may have it already. */
export async function begin(rotation: Rotation): Promise<{ next: NextSecret; resumed: boolean }> {
  const { kind, logger } = rotation;
  for (let write = 0; write < MOST_WRITES; write++) {
    const stored = await storedOf(rotation);
    if (stored.next !== null) {
      logger.info({ kind, since: stored.next.since }, "A rotation is under way: it is taken up.");
      return { next: stored.next, resumed: true };
    }
    rotation.signal?.throwIfAborted();
    const next = await install(rotation, stored);
    if (next !== null) return { next, resumed: false };
  }
  throw conflict(rotation);
}

/** Null when somebody else wrote meanwhile. */
async function install(rotation: Rotation, stored: StoredSecrets): Promise<NextSecret | null> {
  const { secrets, kind, logger } = rotation;
  const config = await firstLook(rotation);
  const now = rotation.clock.now();
  refuseUnlessSettled(rotation, { stored, config, now });
  const hadSecret = config.hasCurrentSecret === true;
  const rotatedAtBefore = timestampOf(config.rotatedAt);
  const next = { secret: randomBytes(SECRET_BYTES).toString("hex"), since: now, rotatedAtBefore, hadSecret };
  const slots = withNext(stored, next, now);
  await refuseTooManySecrets(rotation, slots, now);
  if (!(await secrets.write(kind, slots, stored.revision))) return null;
  await takeBackIfTooMany(rotation, slots, next);
  logger.info({ kind, since: now, rotatedAtBefore }, "A new secret is installed as next.");
  return next;
}

/** The caller's own reason is told, and not the client's error around it. */
async function firstLook(rotation: Rotation): Promise<WebhookConfig> {
  try {
    return await configOf(rotation, rotation.signal);
  } catch (error) {
    rotation.signal?.throwIfAborted();
    throw error;
  }
}

/** The other kind has a revision of its own: somebody may have written it since the secrets were counted. */
async function takeBackIfTooMany(rotation: Rotation, slots: SecretSlots, next: NextSecret): Promise<void> {
  const { secrets, kind, clock } = rotation;
  try {
    await refuseTooManySecrets(rotation, slots, clock.now());
  } catch (error) {
    if (!(error instanceof RotationError)) throw error;
    const stored = await storedOf(rotation);
    // Where that does not succeed, it is counted once more before the service gets it.
    if (stored.next?.secret === next.secret) await secrets.write(kind, { ...stored, next: null }, stored.revision);
    throw error;
  }
}

/**
 * The secrets, with `next` still among them; those of the ended rotation when somebody else has made it current.
 *
 * @throws RotationError, or what a keyring of them is refused with, when receivers could not use them all
 */
export async function installed(
  rotation: Rotation,
  next: NextSecret,
): Promise<{ readonly stored: StoredSecrets; readonly isEnded: boolean }> {
  const stored = await storedOf(rotation);
  if (stored.next?.secret === next.secret) {
    await refuseTooManySecrets(rotation, stored, rotation.clock.now());
    await storedVersion(rotation.secrets, rotation.clock.now());
    return { stored, isEnded: false };
  }
  if (stored.current === next.secret) return { stored, isEnded: true };
  throw conflict(rotation);
}

export async function storedOf({ secrets, kind }: Rotation): Promise<StoredSecrets> {
  return (await secrets.read(kind)) ?? NOTHING_STORED;
}

export function conflict({ kind }: Pick<Rotation, "kind">): RotationError {
  const message = `Another rotation of the ${kind} secret went on at the same time and ended with another secret. This one changed nothing since: look at rotationStatus(), and rotate again if the secret is to be replaced once more.`;
  return new RotationError("rotation_conflict", message, { fields: { kind } });
}
