/** What the steps of a rotation make of a kind's secrets (pure), and where a rotation stands. */

import { KeyringError } from "../../errors.ts";
import { systemClock } from "../../internal/clock.ts";
import { refuseUnknownOptions } from "../../internal/options.ts";
import type { Slot } from "../../sources/keys.ts";
import {
  type NextSecret,
  type ReceiverSighting,
  type SecretSlots,
  type SecretStore,
  type StoredSecrets,
  secretStoreOption,
} from "../../sources/messaging/secret-store.ts";
import { otherKind, type WebhookKind } from "../../sources/messaging/webhook-kind.ts";
import type { WebhookConfig } from "../client/types.ts";
import { kindOption, type Rotation, RotationError, type RotationStatus, type RotationStatusOptions } from "./types.ts";
import { livingOf, storedVersion } from "./waiting.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** From a delivery's first attempt to its last retry (DLV-6): an attempt that was signed once comes so much later (DLV-17). */
const ALL_ATTEMPTS_MS = 81 * MINUTE_MS;
/** A keyring takes a previous secret for 8 days at most; a minute less, for a receiver whose clock is behind ours. */
const LONGEST_PREVIOUS_MS = 8 * DAY_MS - MINUTE_MS;

/** The secrets of a kind before anything is stored. */
export const NOTHING_STORED: StoredSecrets = {
  current: null,
  previous: [],
  next: null,
  rotatedAt: null,
  revision: 0,
};

/** A timestamp of the service, or null: it may be absent, null or 0 (WHK-16). */
export function timestampOf(value: number | null | undefined): number | null {
  return typeof value === "number" && value > 0 ? value : null;
}

/** The replaced secrets that still count. */
export function livePrevious({ previous }: SecretSlots, now: number): SecretSlots["previous"] {
  return previous.filter(({ validUntil }) => validUntil > now);
}

/** When the last of the replaced secrets ends, epoch ms; null when none counts any more. */
function previousEnd(slots: SecretSlots, now: number): number | null {
  const ends = livePrevious(slots, now).map(({ validUntil }) => validUntil);
  return ends.length === 0 ? null : Math.max(...ends);
}

/** All texts that vouch for a delivery now. */
export function liveSecrets(slots: SecretSlots, now: number): readonly string[] {
  const { current, next } = slots;
  return [
    ...(current === null ? [] : [current]),
    ...livePrevious(slots, now).map(({ secret }) => secret),
    ...(next === null ? [] : [next.secret]),
  ];
}

/**
 * Until when a replaced secret counts. The service may sign with it to the last moment of its own window, keep that signature
 * for all retries, and the receiver takes it while it is not older than its tolerance.
 */
export function validityOf(
  replaced: { readonly serviceEnd: number | null; readonly toleranceMs: number },
  now: number,
): { readonly validUntil: number; readonly isCutShort: boolean } {
  const wanted = Math.max(now, replaced.serviceEnd ?? 0) + ALL_ATTEMPTS_MS + replaced.toleranceMs;
  const validUntil = Math.min(wanted, now + LONGEST_PREVIOUS_MS);
  return { validUntil, isCutShort: validUntil < wanted };
}

/** A rotation begins. */
export function withNext(slots: SecretSlots, next: NextSecret, now: number): SecretSlots {
  return { current: slots.current, previous: livePrevious(slots, now), next, rotatedAt: slots.rotatedAt };
}

/**
 * The same secrets as they were before the last rotation's last step, if there was one: `next` for what is `current` now. Who uses these
 * accepts exactly what is accepted now.
 */
function beforeLastStep(slots: SecretSlots): SecretSlots | null {
  const { current, previous, next, rotatedAt } = slots;
  if (current === null || next !== null) return null;
  const [replaced, ...older] = previous;
  const then = { secret: current, since: 0, rotatedAtBefore: null, hadSecret: replaced !== undefined };
  return { current: replaced?.secret ?? null, previous: older, next: then, rotatedAt };
}

/** Which secret becomes the current one, what becomes of the one it replaces, and the rotation that ends with it. */
export interface Replacement {
  readonly secret: string;
  readonly validUntil: number;
  readonly next: NextSecret | null;
  /** When that was, as the service shows it. */
  readonly rotatedAt: number | null;
  readonly now: number;
}

/** `secret` is what the service signs with. */
export function withCurrent(
  slots: SecretSlots,
  { secret, validUntil, next, rotatedAt, now }: Replacement,
): SecretSlots {
  const others = livePrevious(slots, now).filter((previous) => previous.secret !== secret);
  const replaced = slots.current === null || slots.current === secret ? [] : [{ secret: slots.current, validUntil }];
  return { current: secret, previous: [...replaced, ...others], next, rotatedAt };
}

/** `secret` is what the service signed with for a moment, before another rotation replaced it, perhaps with the same one. */
export function withPrevious(slots: SecretSlots, { secret, validUntil, next, now }: Replacement): SecretSlots {
  const others = livePrevious(slots, now).filter((previous) => previous.secret !== secret);
  const replaced = slots.current === secret ? [] : [{ secret, validUntil }];
  return { current: slots.current, previous: [...replaced, ...others], next, rotatedAt: slots.rotatedAt };
}

// When a rotation must not begin: each refusal says until when, or what to do first.

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

// What the service shows of a webhook kind, as far as it can be used.

/**
 * @param signal - only of a look that precedes all else: a later one is to end what the service has begun
 * @throws RotationError `invalid_response` when the client gives anything but the defaults of both kinds
 */
export async function configOf(
  { client, kind }: Pick<Rotation, "client" | "kind">,
  signal?: AbortSignal,
): Promise<WebhookConfig> {
  const answer: { readonly defaults?: Readonly<Record<string, unknown>> | null } | null = await client.webhooks.get(
    signal === undefined ? {} : { signal },
  );
  return checkedConfig(answer?.defaults?.[kind], "webhooks.get()");
}

/** The client lets answers pass whose fields it does not know, and tests pass clients of their own. */
export function checkedConfig(config: unknown, call: string): WebhookConfig {
  if (typeof config === "object" && config !== null && !Array.isArray(config)) return config as WebhookConfig;
  const message = `The answer to ${call} is not the configuration of a webhook kind. Check the client's baseUrl. Nothing was changed, and rotateSecret() can be called again.`;
  throw new RotationError("invalid_response", message);
}

/**
 * Tells where the secrets of a webhook kind stand; shows none of them. When `phase` is `overlap` and `previousUses` has not
 * grown for a while, the service no longer uses what was replaced.
 *
 * @throws SetupError for a wrong option, and what the secret store rejects with
 * @example
 * const { phase, receivers } = await rotationStatus({ kind: "delivery", secrets });
 */
export async function rotationStatus(options: RotationStatusOptions): Promise<RotationStatus> {
  refuseUnknownOptions("rotationStatus", options, ["kind", "secrets", "clock"]);
  const kind = kindOption(options.kind);
  const secrets = secretStoreOption("secrets", options.secrets);
  const now = (options.clock ?? systemClock).now();
  const stored = (await secrets.read(kind)) ?? NOTHING_STORED;
  const living = livingOrNull(await secrets.receivers(), now);
  return {
    kind,
    phase: phaseOf(stored, now),
    previousValidUntil: previousEnd(stored, now),
    previousUses: usesOf("previous", living),
    nextUses: await nextUsesOf(kind, secrets, living),
    receivers: living && (await withReadiness(living, secrets, now)),
  };
}

function phaseOf(stored: StoredSecrets, now: number): RotationStatus["phase"] {
  if (stored.next !== null) return "installing";
  if (stored.current === null) return "none";
  return previousEnd(stored, now) === null ? "settled" : "overlap";
}

/** Counted for each source of a receiver; which of them has these secrets is not known here. */
function usesOf(slot: Slot, living: readonly ReceiverSighting[] | null): number | null {
  if (living === null) return null;
  const counts = living.flatMap(({ counters }) => Object.entries(counters));
  return counts.reduce(
    (uses, [name, count]) => (name.startsWith("slot:") && name.endsWith(`:${slot}`) ? uses + count : uses),
    0,
  );
}

/** Receivers count by slot, not by kind: next to a `next` of the other kind nobody knows which of the two was used. */
async function nextUsesOf(
  kind: WebhookKind,
  secrets: SecretStore,
  living: readonly ReceiverSighting[] | null,
): Promise<number | null> {
  const other = living && (await secrets.read(otherKind(kind)));
  return other?.next ? null : usesOf("next", living);
}

function livingOrNull(sightings: readonly ReceiverSighting[] | null, now: number) {
  return sightings === null ? null : livingOf(sightings, now);
}

async function withReadiness(
  living: readonly ReceiverSighting[],
  secrets: SecretStore,
  now: number,
): Promise<NonNullable<RotationStatus["receivers"]>> {
  const versions = living.length === 0 ? new Set() : await acceptedVersions(secrets, now);
  return living.map((receiver) => ({ ...receiver, ready: versions.has(receiver.keyringVersion) }));
}

/**
 * What receivers report that accept the secrets as they are stored. Right after a rotation they still have them in the slots of the
 * moment before, until they read the store again. Of both kinds, because a receiver reports both as one.
 */
async function acceptedVersions(secrets: SecretStore, now: number): Promise<ReadonlySet<string | null>> {
  const [inbound, delivery] = await Promise.all([placesOf(secrets, "inbound"), placesOf(secrets, "delivery")]);
  const pairs = inbound.flatMap((one) => delivery.map((other) => ({ inbound: one, delivery: other })));
  const versions = pairs.map((slots) =>
    // Before the first secret there is nothing to be ready for.
    storedVersion({ encoding: secrets.encoding, read: async (kind) => slots[kind] }, now).catch(nothingStored),
  );
  return new Set((await Promise.all(versions)).filter((version) => version !== null));
}

/** As they are stored, and as they were before the last step of a rotation. */
async function placesOf(secrets: SecretStore, kind: WebhookKind): Promise<readonly (StoredSecrets | null)[]> {
  const stored = await secrets.read(kind);
  const before = stored && beforeLastStep(stored);
  return stored && before ? [stored, { ...before, revision: stored.revision }] : [stored];
}

function nothingStored(error: unknown): null {
  if (error instanceof KeyringError) return null;
  throw error;
}
