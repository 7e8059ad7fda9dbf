/** The last step of a rotation: what the service signs with becomes `current`, whoever else writes meanwhile. */
import type { WebhookConfig } from "../client/types.ts";
import { checkSecretText } from "../signature/secret.ts";
import type { NextSecret, SecretSlots, StoredSecrets } from "../signature/secret-store.ts";
import { configOf } from "./config.ts";
import { RotationError } from "./errors.ts";
import type { HandedOver } from "./hand-over.ts";
import type { Rotation } from "./options.ts";
import { persistently } from "./persistence.ts";
import { livePrevious, type Replacement, timestampOf, validityOf, withCurrent, withPrevious } from "./slots.ts";
import { MOST_WRITES, storedOf } from "./steps.ts";
import type { RotationResult } from "./types.ts";

/** What the end of a rotation tells of it. */
export type Ending = Pick<RotationResult, "generated" | "rotatedAt" | "previousValidUntil">;

/** A secret that the service has, and the secrets as they were read before it got it. */
export interface Exchange extends HandedOver {
  readonly next: NextSecret;
  readonly stored: StoredSecrets;
}

/**
 * Writes at once, without another look: a secret that the service made is known to nobody else, and is not given up at the
 * first failure. Where the secret is our own, the next call finds it in the store.
 */
export async function commit(rotation: Rotation, exchange: Exchange): Promise<Ending> {
  const { secret, config, next } = exchange;
  checkSecretText("secret", secret, rotation.secrets.encoding);
  const replacement = { secret, validUntil: validUntilOf(rotation, config), rotatedAt: timestampOf(config.rotatedAt) };
  const store = (stored: StoredSecrets) => replace(rotation, { ...exchange, replacement }, stored);
  if (secret === next.secret) return store(exchange.stored);
  const ending = await persistently(rotation, async (failures) =>
    store(failures === 0 ? exchange.stored : await storedOf(rotation)),
  );
  return { ...ending, generated: true };
}

/** What becomes of the slots, whatever else they hold. */
type Becoming = Pick<Replacement, "secret" | "validUntil" | "rotatedAt">;

/** Every later write asks first what the service went on to, so that no write from before the latest rotation comes after its own. */
async function replace(
  rotation: Rotation,
  { next, config, replacement, stored: before }: Exchange & { readonly replacement: Becoming },
  latest: StoredSecrets,
): Promise<Ending> {
  const { secrets, kind, clock } = rotation;
  let stored = latest;
  for (let write = 0; write < MOST_WRITES; write++) {
    const isUnderWay = stored.next?.secret === next.secret;
    const isStored = stored.current === replacement.secret && stored.rotatedAt === replacement.rotatedAt;
    if (!isUnderWay && isStored) return endingOf(rotation, { stored, config });
    const isUntouched = stored.revision === before.revision;
    const place = isUntouched || (await isLatest(rotation, config)) ? withCurrent : withPrevious;
    const slots = place(stored, { ...replacement, next: isUnderWay ? null : stored.next, now: clock.now() });
    if (await secrets.write(kind, slots, stored.revision)) return endingOf(rotation, { stored: slots, config });
    stored = await storedOf(rotation);
  }
  throw notStored(rotation);
}

/** Somebody else has ended the rotation, with the same secret. */
export async function endedElsewhere(rotation: Rotation, stored: StoredSecrets): Promise<Ending> {
  return endingOf(rotation, { stored, config: await configOf(rotation) });
}

/**
 * Rotations at once can each have got a secret out of a service that makes its own (WHK-18), and one whose answer was lost gives
 * its secret again after another's. The latest one's counts: all look at the service to see whose that is. The others signed for a
 * moment, and are kept as replaced ones.
 */
async function isLatest(rotation: Rotation, config: WebhookConfig): Promise<boolean> {
  const latest = await configOf(rotation);
  return timestampOf(latest.rotatedAt) === timestampOf(config.rotatedAt);
}

function validUntilOf({ kind, clock, toleranceMs, logger }: Rotation, config: WebhookConfig): number {
  const serviceEnd = timestampOf(config.previousSecretValidUntil);
  const { validUntil, isCutShort } = validityOf({ serviceEnd, toleranceMs }, clock.now());
  if (isCutShort) {
    logger.warn(
      { kind, validUntil, serviceEnd },
      "The service may sign with the replaced secret for longer than receivers accept it, which is 8 days.",
    );
  }
  return validUntil;
}

function endingOf({ clock }: Rotation, { stored, config }: { stored: SecretSlots; config: WebhookConfig }): Ending {
  const [replaced] = livePrevious(stored, clock.now());
  return {
    generated: false,
    rotatedAt: timestampOf(config.rotatedAt),
    previousValidUntil: replaced?.validUntil ?? null,
  };
}

function notStored({ kind }: Rotation): RotationError {
  const message = `The service has a new ${kind} secret, and it could not become current in the store: somebody else wrote there each time. Call rotateSecret() again at once: it goes on from what the store has, or says what is to be done.`;
  return new RotationError("rotation_conflict", message, { fields: { kind } });
}
