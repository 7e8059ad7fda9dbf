/** When a rotation must not begin: each refusal says until when, or what to do first. */
import type { WebhookConfig } from "../client/types.ts";
import type { WebhookKind } from "../internal/webhook-kind.ts";
import { otherKind } from "../internal/webhook-kind.ts";
import type { SecretSlots, StoredSecrets } from "../signature/secret-store.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";
import { livePrevious, liveSecrets, NOTHING_STORED, previousEnd, timestampOf } from "./slots.ts";

/** A keyring takes no more, since each is tried in turn. */
const MOST_SECRETS = 8;

/** Where store and service stand before a rotation. */
interface Standing {
  readonly stored: StoredSecrets;
  readonly config: WebhookConfig;
  readonly now: number;
}

/**
 * The service has one place for a replaced secret, and a rotation may empty it at once (WHK-21).
 *
 * @throws RotationError while one is still valid, or when receivers do not know what the service signs with; not when forced
 */
export function refuseUnlessSettled({ kind, force }: Rotation, { stored, config, now }: Standing): void {
  if (force) return;
  const rotatedAt = timestampOf(config.rotatedAt);
  // Only a rotation through this store lets it know one: before the first there is nothing to compare with.
  const isForeign = stored.rotatedAt !== null && rotatedAt !== null && rotatedAt !== stored.rotatedAt;
  if (isForeign) throw rotatedElsewhere(kind, { shown: rotatedAt, remembered: stored.rotatedAt });
  const serviceEnd = timestampOf(config.previousSecretValidUntil);
  const isOpenThere = config.hasPreviousSecret && (serviceEnd === null || serviceEnd > now);
  const storedEnd = previousEnd(stored, now);
  if (isOpenThere || storedEnd !== null) {
    const end = Math.max(storedEnd ?? 0, isOpenThere ? (serviceEnd ?? 0) : 0);
    throw stillOpen(kind, end === 0 ? null : end);
  }
  if (stored.current !== null || config.hasCurrentSecret !== true) return;
  const message = `The service signs ${kind} webhooks with a secret that the store does not have: a rotation would leave the deliveries it signed refused. Store it with adoptSecret() first; if nobody has it any more, pass force: true.`;
  throw new RotationError("rotation_refused", message, { fields: { kind, until: null } });
}

function rotatedElsewhere(
  kind: WebhookKind,
  { shown, remembered }: { readonly shown: number; readonly remembered: number },
): RotationError {
  const message = `The service shows a rotation of the ${kind} secret (rotatedAt ${shown}) that the store does not know (its last one: ${remembered}): the secret was rotated elsewhere, or this store was restored from a backup. Receivers may lack what the service signs with. If somebody has that secret, store it; if not, pass force: true, which gives the service and the receivers a new one.`;
  return new RotationError("rotation_refused", message, { fields: { kind, until: null } });
}

function stillOpen(kind: WebhookKind, until: number | null): RotationError {
  const end =
    until === null ? ", the service does not say until when" : ` until ${new Date(until).toISOString()} (${until})`;
  const message = `The ${kind} secret that was replaced last is still valid${end}: the service may drop it when another rotation begins, and deliveries signed with it would be refused. Rotate after that, or pass force: true.`;
  return new RotationError("rotation_refused", message, { fields: { kind, until } });
}

/**
 * @param slots - of the rotation's kind, as they are or are to be stored
 * @throws RotationError when they are too many for the keyring of both kinds, forced or not
 */
export async function refuseTooManySecrets(
  { kind, secrets, force = false }: Pick<Rotation, "kind" | "secrets"> & { readonly force?: boolean },
  slots: SecretSlots,
  now: number,
): Promise<void> {
  const other = await secrets.read(otherKind(kind));
  const all = [slots, other ?? NOTHING_STORED];
  if (new Set(all.flatMap((each) => liveSecrets(each, now))).size <= MOST_SECRETS) return;
  const until = Math.min(...all.flatMap((each) => livePrevious(each, now)).map(({ validUntil }) => validUntil));
  const message = `Receivers try at most ${MOST_SECRETS} secrets, those of both kinds and the replaced ones together, and another one would be too many: try again after ${new Date(until).toISOString()} (${until}), when one has ended.${force ? " force: true does not change that." : ""}`;
  throw new RotationError("rotation_refused", message, { fields: { kind, until } });
}
