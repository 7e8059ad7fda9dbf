/** `rotationStatus()`: where the secrets of a kind stand, and whether the receivers have them. */
import { KeyringError } from "../errors.ts";
import { systemClock } from "../internal/clock.ts";
import { refuseUnknownOptions } from "../internal/options.ts";
import { otherKind, type WebhookKind } from "../internal/webhook-kind.ts";
import {
  type ReceiverSighting,
  type SecretStore,
  type StoredSecrets,
  secretStoreOption,
} from "../signature/secret-store.ts";
import { beforeLastStep, NOTHING_STORED, previousEnd } from "./slots.ts";
import { kindOption, type RotationStatus, type RotationStatusOptions } from "./types.ts";
import { livingOf, storedVersion } from "./waiting.ts";

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
    previousUses: usesOf("slot:previous", living),
    nextUses: await nextUsesOf(kind, secrets, living),
    receivers: living && (await withReadiness(living, secrets, now)),
  };
}

function phaseOf(stored: StoredSecrets, now: number): RotationStatus["phase"] {
  if (stored.next !== null) return "installing";
  if (stored.current === null) return "none";
  return previousEnd(stored, now) === null ? "settled" : "overlap";
}

function usesOf(counter: string, living: readonly ReceiverSighting[] | null): number | null {
  return living?.reduce((uses, { counters }) => uses + (counters[counter] ?? 0), 0) ?? null;
}

/** Receivers count by slot, not by kind: beside a `next` of the other kind nobody knows which of the two was used. */
async function nextUsesOf(
  kind: WebhookKind,
  secrets: SecretStore,
  living: readonly ReceiverSighting[] | null,
): Promise<number | null> {
  const other = living && (await secrets.read(otherKind(kind)));
  return other?.next ? null : usesOf("slot:next", living);
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
