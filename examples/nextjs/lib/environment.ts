/** The environment of the server: WEBHOOK_SECRET, for a rotation WEBHOOK_PREVIOUS_SECRET with its end. */
import type { SecretSet } from "oncehook";

/** A secret that is not set fails when the receiver is made; in `next build`, which should not know it, nothing is missing. */
export function readSecrets(): SecretSet {
  const { WEBHOOK_PREVIOUS_SECRET: previous, WEBHOOK_PREVIOUS_VALID_UNTIL: validUntil } = process.env;
  const current = process.env.WEBHOOK_SECRET ?? "";
  if (!previous) return { current };
  if (!validUntil) throw new Error("WEBHOOK_PREVIOUS_VALID_UNTIL is not set: epoch milliseconds at which it ends.");
  return { current, previous: { secret: previous, validUntil: Number(validUntil) } };
}
