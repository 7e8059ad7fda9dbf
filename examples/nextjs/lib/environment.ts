/** Reads `WEBHOOK_SECRET`, and for a rotation `WEBHOOK_PREVIOUS_SECRET` with its end. */
import type { SecretSet } from "oncehook";

/** Without a secret, `createReceiver` fails where the application runs. `next build` needs none. */
export function readSecrets(): SecretSet {
  const { WEBHOOK_PREVIOUS_SECRET: previous, WEBHOOK_PREVIOUS_VALID_UNTIL: validUntil } = process.env;
  const current = process.env.WEBHOOK_SECRET ?? "";
  if (!previous) return { current };
  if (!validUntil) throw new Error("WEBHOOK_PREVIOUS_VALID_UNTIL is not set: epoch milliseconds at which it ends.");
  return { current, previous: { secret: previous, validUntil: Number(validUntil) } };
}
