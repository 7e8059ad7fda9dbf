/** The first steps of a rotation: a new secret in the store, and then at the service. */
import { randomBytes } from "node:crypto";
import type { WebhookConfig } from "../client/types.ts";
import type { NextSecret, StoredSecrets } from "../signature/secret-store.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";
import { refuseTooManySecrets, refuseUnlessSettled } from "./refusals.ts";
import { NOTHING_STORED, timestampOf, withNext } from "./slots.ts";

const SECRET_BYTES = 32;
/** Each loss means that somebody else's write went through: more than a few are no coincidence. */
export const MOST_WRITES = 10;

/** What the service signs with since its answer. */
export interface HandedOver {
  readonly secret: string;
  readonly config: WebhookConfig;
}

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
  const config = await configOf(rotation);
  const now = rotation.clock.now();
  refuseUnlessSettled(rotation, { stored, config, now });
  await refuseTooManySecrets(rotation, stored, now);
  // A first secret replaces none, and is no rotation to the service (WHK-19).
  const rotatedAtBefore = config.hasCurrentSecret ? timestampOf(config.rotatedAt) : null;
  const next = {
    secret: randomBytes(SECRET_BYTES).toString("hex"),
    since: now,
    rotatedAtBefore,
    hadSecret: config.hasCurrentSecret === true,
  };
  if (!(await secrets.write(kind, withNext(stored, next, now), stored.revision))) return null;
  logger.info({ kind, since: now, rotatedAtBefore }, "A new secret is installed as next.");
  return next;
}

/** The secrets, with `next` still among them; those of the ended rotation when somebody else has made it current. */
export async function installed(
  rotation: Rotation,
  next: NextSecret,
): Promise<{ readonly stored: StoredSecrets; readonly isEnded: boolean }> {
  const stored = await storedOf(rotation);
  if (stored.next?.secret === next.secret) return { stored, isEnded: false };
  if (stored.current === next.secret) return { stored, isEnded: true };
  throw conflict(rotation);
}

/** Gives the secret to the service. Sent again it is no second rotation (WHK-20), so this can be repeated. */
export async function handOver({ client, kind, logger }: Rotation, next: NextSecret): Promise<HandedOver> {
  const config = await client.webhooks.update(kind, { signingEnabled: true, secret: next.secret });
  const { generatedSecret = "" } = config;
  if (generatedSecret !== "" && generatedSecret !== next.secret) {
    logger.warn({ kind }, "The service made a secret of its own though one was supplied: that one becomes current.");
    return { secret: generatedSecret, config };
  }
  const rotatedAt = timestampOf(config.rotatedAt);
  const isUnchanged = next.rotatedAtBefore !== null && rotatedAt === next.rotatedAtBefore;
  if (isUnchanged || config.hasCurrentSecret === false) throw notRotated({ kind, rotatedAt, isUnchanged });
  logger.info({ kind, rotatedAt }, "The service has the new secret.");
  return { secret: next.secret, config };
}

export async function storedOf({ secrets, kind }: Rotation): Promise<StoredSecrets> {
  return (await secrets.read(kind)) ?? NOTHING_STORED;
}

export async function configOf({ client, kind }: Rotation): Promise<WebhookConfig> {
  const { defaults } = await client.webhooks.get();
  return defaults[kind];
}

export function conflict({ kind }: Rotation): RotationError {
  const message = `Another rotation of the ${kind} secret went on at the same time and ended with another secret. This one changed nothing since: look at rotationStatus(), and rotate again if the secret is to be replaced once more.`;
  return new RotationError("rotation_conflict", message, { fields: { kind } });
}

function notRotated({
  kind,
  rotatedAt,
  isUnchanged,
}: {
  kind: string;
  rotatedAt: number | null;
  isUnchanged: boolean;
}): RotationError {
  const shown = isUnchanged ? "the same rotatedAt as before" : "no current secret";
  const message = `The service took the new ${kind} secret but shows ${shown}: it is not known which secret it signs with. Receivers accept both. Call rotateSecret() again, which goes on with the same secret; if that changes nothing, ask the service's operators.`;
  return new RotationError("not_rotated", message, { fields: { kind, rotatedAt } });
}
