/** The environment of the server: WEBHOOK_SECRET, for a rotation WEBHOOK_PREVIOUS_SECRET with its end, and CRON_SECRET. */
import { randomBytes } from "node:crypto";
import type { SecretSet } from "oncehook";

/** `next build` loads every route, on a machine that should not know the secrets. */
const building = process.env.NEXT_PHASE === "phase-production-build";

export function readSecrets(): SecretSet {
  const { WEBHOOK_PREVIOUS_SECRET: previous, WEBHOOK_PREVIOUS_VALID_UNTIL: validUntil } = process.env;
  const current = readSecret("WEBHOOK_SECRET");
  if (!previous) return { current };
  if (!validUntil) throw new Error("WEBHOOK_PREVIOUS_VALID_UNTIL is not set: epoch milliseconds at which it ends.");
  return { current, previous: { secret: previous, validUntil: Number(validUntil) } };
}

/** While building: a random one, that nobody can sign with. */
export function readSecret(name: "WEBHOOK_SECRET" | "CRON_SECRET"): string {
  const secret = process.env[name];
  if (secret) return secret;
  if (building) return randomBytes(32).toString("hex");
  throw new Error(`${name} is not set: put the secret in it.`);
}
