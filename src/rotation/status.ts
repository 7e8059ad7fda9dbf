/** `rotationStatus()`: where the secrets of a kind stand, and whether the receivers have them. */
import { KeyringError } from "../errors.ts";
import { systemClock } from "../internal/clock.ts";
import { refuseUnknownOptions } from "../internal/options.ts";
import { otherKind, type WebhookKind } from "../internal/webhook-kind.ts";
import type { ReceiverSighting, SecretStore, StoredSecrets } from "../signature/secret-store.ts";
import { secretStoreOption } from "../signature/secret-store-option.ts";
import { kindOption } from "./options.ts";
import { NOTHING_STORED, previousEnd } from "./slots.ts";
import type { RotationStatus, RotationStatusOptions } from "./types.ts";
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
  // Before the first secret there is nothing to be ready for.
  const version = living.length === 0 ? null : await storedVersion(secrets, now).catch(nothingStored);
  return living.map((receiver) => ({ ...receiver, ready: receiver.keyringVersion === version }));
}

function nothingStored(error: unknown): null {
  if (error instanceof KeyringError) return null;
  throw error;
}
