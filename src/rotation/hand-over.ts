/** The step of a rotation that gives the service its new secret, and makes sure that the service signs with it. */
import { ResponseValidationError } from "../client/errors.ts";
import type { WebhookConfig } from "../client/types.ts";
import { isRecord } from "../internal/type-guards.ts";
import { checkSecretText } from "../signature/secret.ts";
import type { NextSecret } from "../signature/secret-store.ts";
import { checkedConfig, configOf } from "./config.ts";
import { RotationError } from "./errors.ts";
import type { Rotation } from "./options.ts";
import { timestampOf } from "./slots.ts";

/** What the service signs with since its answer. */
export interface HandedOver {
  readonly secret: string;
  readonly config: WebhookConfig;
}

/** Gives the secret to the service. Sent again it is no second rotation (WHK-20), so this can be repeated. */
export async function handOver(rotation: Rotation, next: NextSecret): Promise<HandedOver> {
  const { kind, logger } = rotation;
  const config: WebhookConfig & { readonly generatedSecret?: unknown } = checkedConfig(
    await answerTo(rotation, next),
    "webhooks.update()",
  );
  const { generatedSecret } = config;
  refuseShort(rotation, generatedSecret);
  if (isSecret(generatedSecret) && generatedSecret !== next.secret) {
    logger.warn({ kind }, "The service made a secret of its own though one was supplied: that one becomes current.");
    return { secret: generatedSecret, config };
  }
  const shown = await verified(rotation, { next, config });
  logger.info({ kind, rotatedAt: timestampOf(shown.rotatedAt) }, "The service has the new secret.");
  return { secret: next.secret, config: shown };
}

/**
 * The service has done what was asked when a strict client refuses its answer, and refuses it each time: so it is gone by what it
 * shows, which may be the only copy of a secret that the service made.
 */
async function answerTo({ client, kind, logger }: Rotation, { secret }: NextSecret): Promise<unknown> {
  try {
    return await client.webhooks.update(kind, { signingEnabled: true, secret });
  } catch (error) {
    if (!(error instanceof ResponseValidationError && isRecord(error.data))) throw error;
    logger.warn({ kind, issues: error.issues }, "The service's answer is not as specified.");
    return error.data;
  }
}

/** A word in the place of a secret: `[hidden]`. */
const PLACEHOLDER = /^\W*(?:hidden|masked|none|not shown|null|omitted|redacted|secret|undefined|unchanged)?\W*$/i;

/**
 * Throws for a secret that is too short for any receiver. The service signs with it, so every delivery is refused: going on with the
 * rotation's own secret would hide that.
 *
 * @throws RotationError `invalid_secret`
 */
function refuseShort({ kind, secrets }: Rotation, value: unknown): void {
  if (typeof value !== "string" || isMask(value) || PLACEHOLDER.test(value)) return;
  try {
    checkSecretText("generatedSecret", value, secrets.encoding);
  } catch {
    const message = `The service made a ${kind} secret of its own though one was supplied, and it is one that no receiver takes, mostly because it has fewer than 16 bytes: deliveries are refused until the service signs with another one. Nothing was stored. If the service has a setting for it, turn it off and call rotateSecret() again. Otherwise give it no more secrets by rotation: webhooks.update() without a secret shows a new one, which a receiver takes as { secret, dangerouslyShort: true }; see "When the service makes short secrets" in docs/guides/rotation.md.`;
    throw new RotationError("invalid_secret", message, { fields: { kind } });
  }
}

/** Anything else in its place, such as null or a mask, says that there is none. */
function isSecret(value: unknown): value is string {
  return typeof value === "string" && !isMask(value) && !PLACEHOLDER.test(value);
}

/** A row of signs that no encoding of a secret has, perhaps between its first and last characters. */
const MASKED = /([*•●·…])\1\1|…/u;

/**
 * Such a row, or more than half of it is one character, perhaps with dashes between or the last digits shown. Chance makes no secret
 * like that: of 32 hexadecimal digits, fewer than one in ten thousand million.
 */
function isMask(text: string): boolean {
  if (MASKED.test(text)) return true;
  const sorted = [...text].sort();
  // Such a character takes up the middle.
  const middle = sorted[Math.floor(sorted.length / 2)];
  return sorted.filter((character) => character === middle).length > sorted.length / 2;
}

/** @throws RotationError `not_rotated` when neither the answer nor another look shows the rotation; not when forced */
async function verified(
  rotation: Rotation,
  { next, config }: { readonly next: NextSecret; readonly config: WebhookConfig },
): Promise<WebhookConfig> {
  const { kind, force, logger } = rotation;
  if (isRotated(config, next)) return config;
  const latest = await configOf(rotation);
  if (isRotated(latest, next)) return latest;
  const hasNoSecret = latest.hasCurrentSecret === false;
  if (!force || hasNoSecret) throw notRotated(rotation, { rotatedAt: timestampOf(latest.rotatedAt), hasNoSecret });
  logger.warn(
    { kind, rotatedAt: timestampOf(latest.rotatedAt) },
    "The service shows no rotation. It is forced: the new secret becomes current, the replaced one counts until its end.",
  );
  return latest;
}

/** A first secret replaces none, and is no rotation to the service (WHK-19). */
function isRotated(config: WebhookConfig, next: NextSecret): boolean {
  if (config.hasCurrentSecret === false) return false;
  const rotatedAt = timestampOf(config.rotatedAt);
  return !next.hadSecret || (rotatedAt !== null && rotatedAt !== next.rotatedAtBefore);
}

function notRotated(
  { kind }: Rotation,
  { rotatedAt, hasNoSecret }: { readonly rotatedAt: number | null; readonly hasNoSecret: boolean },
): RotationError {
  const shown = hasNoSecret
    ? "no current secret"
    : rotatedAt === null
      ? "no rotatedAt"
      : "the same rotatedAt as before";
  const force = hasNoSecret
    ? ""
    : " If nextUses of rotationStatus() grows, the service signs with it: pass force: true, which ends the rotation. It is null while a rotation of the other kind is under way: end that one first.";
  const message = `The service took the new ${kind} secret but shows ${shown}: it is not known which secret it signs with. Receivers accept both. Call rotateSecret() again, which goes on with the same secret.${force} If that changes nothing, ask the service's operators.`;
  return new RotationError("not_rotated", message, { fields: { kind, rotatedAt } });
}
