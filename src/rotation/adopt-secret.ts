/** `adoptSecret()`: puts the secret that is in use today into a store, before its first rotation. */
import { refuseUnknownOptions } from "../internal/options.ts";
import { checkSecretText } from "../signature/secret.ts";
import { RotationError } from "./errors.ts";
import { kindOption, secretsOption } from "./options.ts";
import { NOTHING_STORED } from "./slots.ts";
import type { AdoptSecretOptions } from "./types.ts";

/**
 * Stores the secret that the service signs with today as `current`. Needed once per kind, for a secret that was in use
 * before the store. The same secret again changes nothing.
 *
 * @throws SetupError for a wrong option, and for a secret that is none
 * @throws RotationError `rotation_refused` when the store has secrets of that kind already, which are never overwritten
 * @example
 * await adoptSecret({ kind: "delivery", secrets, secret: process.env.WEBHOOK_SECRET ?? "" });
 */
export async function adoptSecret(options: AdoptSecretOptions): Promise<void> {
  refuseUnknownOptions("adoptSecret", options, ["kind", "secrets", "secret"]);
  const kind = kindOption(options.kind);
  const secrets = secretsOption(options.secrets);
  const { secret } = options;
  checkSecretText("secret", secret, secrets.encoding);
  const stored = (await secrets.read(kind)) ?? NOTHING_STORED;
  if (stored.current === secret) return;
  const isEmpty = stored.current === null && stored.next === null;
  if (
    isEmpty &&
    (await secrets.write(kind, { current: secret, previous: [], next: null, rotatedAt: null }, stored.revision))
  )
    return;
  // Another process of the application may have stored the same one meanwhile.
  if ((await secrets.read(kind))?.current === secret) return;
  const message = `The store has ${kind} secrets already, and they are not overwritten: replace the current one with rotateSecret().`;
  throw new RotationError("rotation_refused", message, { fields: { kind, until: null } });
}
