/** `rotateSecret()`: gives the service a new signing secret that every receiver has already. `adoptSecret()`: stores the one in use. */
import { randomBytes } from "node:crypto";
import { OncehookError, type OncehookErrorCode, SetupError, StoreError } from "../../errors.ts";
import { sleep, systemClock } from "../../internal/clock.ts";
import { isRecord, refuseUnknownOptions } from "../../internal/options.ts";
import {
  type NextSecret,
  type SecretSlots,
  type SecretStore,
  type StoredSecrets,
  secretStoreOption,
} from "../../sources/messaging/secret-store.ts";
import { checkSecretText } from "../../sources/secret.ts";
import { ConnectionError, ResponseValidationError, ServiceError } from "../client/errors.ts";
import type { WebhookConfig } from "../client/types.ts";
import {
  checkedConfig,
  configOf,
  livePrevious,
  NOTHING_STORED,
  type Replacement,
  refuseTooManySecrets,
  refuseUnlessSettled,
  timestampOf,
  validityOf,
  withCurrent,
  withNext,
  withPrevious,
} from "./slots.ts";
import {
  type AdoptSecretOptions,
  kindOption,
  type RotateSecretOptions,
  type Rotation,
  RotationError,
  type RotationResult,
  resolveRotationOptions,
} from "./types.ts";
import { storedVersion, untilReceiversAreReady } from "./waiting.ts";

// `rotateSecret()`: gives the service a new signing secret that every receiver has already.

/**
 * Rotates the signing secret of a webhook kind: makes one, installs it as `next`, waits until every living receiver has it,
 * gives it to the service, and makes it `current`. Each step is durable before the next: a call that was cut off anywhere is
 * made again, and goes on with the same secret. What was replaced still counts for as long as a delivery signed with it can
 * come: the service's own window, all retries (DLV-6, DLV-17), and the receivers' tolerance.
 *
 * @returns when the service signs with the new secret
 * @throws SetupError for a wrong option
 * @throws RotationError `rotation_refused`: a replaced secret is still valid (`fields.until`, epoch ms), the store lacks the service's secret or
 *   its last rotation, or there would be more than 8 secrets. This call gave the service no secret
 * @throws RotationError `receivers_not_ready`: some did not get the secret in time (`fields.receivers`). This call gave the service no secret
 * @throws RotationError `not_rotated`: the service shows no rotation
 * @throws RotationError `rotation_conflict`: another rotation ended meanwhile
 * @throws RotationError `invalid_response`: the service's answer is not a configuration
 * @throws StoreError when a secret that the service made could not be stored for 2 minutes and is lost; its `code` says why
 * @throws what client and secret store reject with, such as `NotFoundError` (WHK-27), and the reason of `signal`
 * @example
 * const { previousValidUntil } = await rotateSecret({ client, kind: "delivery", secrets });
 */
export async function rotateSecret(options: RotateSecretOptions): Promise<RotationResult> {
  const rotation = resolveRotationOptions(options);
  const { kind, signal, logger } = rotation;
  signal?.throwIfAborted();
  const early = { ...rotation, secrets: promptStore(rotation, "early") };
  const { next, resumed } = await begin(early);
  signal?.throwIfAborted();
  const receivers = await untilReceiversAreReady(early);
  const { stored, isEnded } = await installed(early, next);
  signal?.throwIfAborted();
  // From here on only a failure ends it: the service may make a secret that nothing but its answer tells.
  const late = { ...rotation, secrets: promptStore({ ...rotation, signal: undefined }, "late") };
  const ending = isEnded
    ? await endedElsewhere(late, stored)
    : await commit(late, { ...(await handOver(late, next)), next, stored });
  logger.info({ kind, ...ending }, "The rotation has ended.");
  return { kind, resumed, receivers, ...ending };
}

// The first steps of a rotation: a new secret in the store, and a look at it before the service gets it.

const SECRET_BYTES = 32;
/** Each loss means that somebody else's write went through: more than a few are no coincidence. */
const MOST_WRITES = 10;

/** Installs a new secret as `next`, or takes up the one that is there: the service may have it already. */
async function begin(rotation: Rotation): Promise<{ next: NextSecret; resumed: boolean }> {
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

/** The caller's own reason, not the client's error around it. */
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
async function installed(
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

async function storedOf({ secrets, kind }: Rotation): Promise<StoredSecrets> {
  return (await secrets.read(kind)) ?? NOTHING_STORED;
}

function conflict({ kind }: Pick<Rotation, "kind">): RotationError {
  const message = `Another rotation of the ${kind} secret went on at the same time and ended with another secret. This one changed nothing since: look at rotationStatus(), and rotate again if the secret is to be replaced once more.`;
  return new RotationError("rotation_conflict", message, { fields: { kind } });
}

// The step of a rotation that gives the service its new secret, and makes sure that the service signs with it.

/** What the service signs with since its answer. */
interface HandedOver {
  readonly secret: string;
  readonly config: WebhookConfig;
}

/** Gives the secret to the service. Sending it again does not rotate again (WHK-20), so this can be repeated. */
async function handOver(rotation: Rotation, next: NextSecret): Promise<HandedOver> {
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

/** A first secret replaces none; for the service it is not a rotation (WHK-19). */
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

// The last step of a rotation: the secret that the service signs with becomes `current`, whatever others write meanwhile.

/** What the end of a rotation reports. */
type Ending = Pick<RotationResult, "generated" | "rotatedAt" | "previousValidUntil">;

/** A secret that the service has, and the secrets as they were read before it got it. */
interface Exchange extends HandedOver {
  readonly next: NextSecret;
  readonly stored: StoredSecrets;
}

/**
 * Writes at once, without another look: a secret that the service made is known to nobody else, and is not given up at the
 * first failure. Where the secret is our own, the next call finds it in the store.
 */
async function commit(rotation: Rotation, exchange: Exchange): Promise<Ending> {
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
async function endedElsewhere(rotation: Rotation, stored: StoredSecrets): Promise<Ending> {
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

// Trying again to store a secret that the service made, which nobody else knows.

const LONGEST_MS = 120_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/**
 * Does the work until it succeeds, with growing pauses, for 2 minutes. The signal does not end it: the secret would be lost.
 *
 * @param work - gets how often it has failed
 * @throws StoreError, which says that the secret is lost, with the code of what the work failed with last
 */
async function persistently<T>(rotation: Rotation, work: (failures: number) => Promise<T>): Promise<T> {
  const { clock, kind, logger } = rotation;
  const begunAt = clock.monotonic();
  let pauseMs = FIRST_PAUSE_MS;
  for (let failures = 0; ; failures++) {
    try {
      return await work(failures);
    } catch (error) {
      if (clock.monotonic() - begunAt >= LONGEST_MS) throw lost(rotation, error);
      if (failures === 0)
        logger.warn({ kind }, "The secret that the service made is not stored yet: it is tried again.");
    }
    await sleep(clock, pauseMs);
    pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS);
  }
}

/** Store and service alike can have failed: the message blames neither. */
function lost({ kind }: Rotation, error: unknown): StoreError {
  const message = `The service made a ${kind} secret of its own, and it could not be stored for ${LONGEST_MS / 1_000} s: that secret is lost, and deliveries are refused. See to what failed, which the code and the cause name, and call rotateSecret() again: the service makes another one.`;
  // A foreign error may quote what was to be stored.
  return new StoreError(codeOf(error), message, error instanceof OncehookError ? { cause: error } : {});
}

/** A code that the service wrote is none of ours: it stays with the cause. */
function codeOf(error: unknown): OncehookErrorCode {
  if (error instanceof StoreError || error instanceof SetupError || error instanceof RotationError) return error.code;
  if (error instanceof ConnectionError) return error.code;
  return error instanceof ServiceError ? "api_error" : "store_unavailable";
}

// A secret store whose answers a rotation does not wait for without end.

const LONGEST_ANSWER_MS = 10_000;

/** Where a call stands when its store does not answer. */
const STANDINGS = {
  early: "This call gave the service no secret; an earlier one may have.",
  late: "The service has a new secret by then.",
} as const;

/**
 * The store, for the steps before this call gives the service the secret, `early`, or for those after it: what it is asked ends with an
 * answer, with the signal if there is one, or after 10 s. What became of a write without an answer, the next look at the store shows.
 */
function promptStore(
  { secrets, clock, signal }: Pick<Rotation, "secrets" | "clock" | "signal">,
  standing: keyof typeof STANDINGS,
): SecretStore {
  const prompt = <T>(method: string, ask: () => Promise<T>) =>
    new Promise<T>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const end = () => {
        timer.cancel();
        signal?.removeEventListener("abort", abort);
      };
      // The answer may never come, and the timer would keep the process until its end.
      const giveUp = (reason: unknown) => {
        end();
        reject(reason);
      };
      const abort = () => giveUp(signal?.reason);
      const timer = clock.setTimeout(() => giveUp(noAnswer(method, standing)), LONGEST_ANSWER_MS);
      timer.keepAlive();
      signal?.addEventListener("abort", abort, { once: true });
      const answer = (async () => ask())();
      answer.then(resolve, reject).finally(end);
    });
  return {
    refreshMs: secrets.refreshMs,
    encoding: secrets.encoding,
    read: (kind) => prompt("read", () => secrets.read(kind)),
    receivers: () => prompt("receivers", () => secrets.receivers()),
    write: (kind, slots, revision) => prompt("write", () => secrets.write(kind, slots, revision)),
    close: () => secrets.close(),
  };
}

function noAnswer(method: string, standing: keyof typeof STANDINGS): StoreError {
  const seconds = LONGEST_ANSWER_MS / 1_000;
  const message = `The secret store did not answer ${method}() within ${seconds} s. ${STANDINGS[standing]} Call rotateSecret() again when the store answers.`;
  return new StoreError("store_unavailable", message);
}

// `adoptSecret()`: puts the secret that is in use today into a store, before its first rotation.

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
