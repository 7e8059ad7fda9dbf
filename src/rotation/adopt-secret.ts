/** `adoptSecret()`: puts the secret that is in use today into a store, before its first rotation. */
import { systemClock } from "../internal/clock.ts";
import { refuseUnknownOptions } from "../internal/options.ts";
import { checkSecretText } from "../signature/secret.ts";
import { secretStoreOption } from "../signature/secret-store.ts";
import { conflict, MOST_WRITES } from "./rotate-secret.ts";
import { livePrevious, NOTHING_STORED, refuseTooManySecrets } from "./slots.ts";
import { type AdoptSecretOptions, kindOption } from "./types.ts";

/**
 * Stores the secret that the service signs with today as `current`, if the store has none of that kind yet. Needed once per
 * kind, and harmless at every start: what the store has is never overwritten, whatever it is.
 *
 * @returns true when it stored the secret; false when the store has secrets of that kind already
 * @throws SetupError for a wrong option, and for a secret that is none
 * @throws RotationError `rotation_refused` when there would be more than 8 secrets, those of both kinds together
 * @throws what the secret store rejects with
 * @example
 * await adoptSecret({ kind: "delivery", secrets, secret: process.env.WEBHOOK_SECRET ?? "" });
 */
export async function adoptSecret(options: AdoptSecretOptions): Promise<boolean> {
  refuseUnknownOptions("adoptSecret", options, ["kind", "secrets", "secret"]);
  const kind = kindOption(options.kind);
  const secrets = secretStoreOption("secrets", options.secrets);
  const current = checkSecretText("secret", options.secret, secrets.encoding);
  for (let write = 0; write < MOST_WRITES; write++) {
    const stored = (await secrets.read(kind)) ?? NOTHING_STORED;
    if (stored.current !== null || stored.next !== null) return false;
    const now = systemClock.now();
    const slots = { current, previous: livePrevious(stored, now), next: null, rotatedAt: null };
    await refuseTooManySecrets({ kind, secrets }, slots, now);
    if (await secrets.write(kind, slots, stored.revision)) return true;
  }
  throw conflict({ kind });
}
