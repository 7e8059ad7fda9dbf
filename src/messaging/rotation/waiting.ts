/** The wait of a rotation until the receivers have the new secret, and which receivers those are. */
import { sleep } from "../../internal/clock.ts";
import { compileKeys } from "../../sources/keys.ts";
import { storedKeyring } from "../../sources/messaging/keyring-source.ts";
import type { ReceiverSighting, SecretStore } from "../../sources/messaging/secret-store.ts";
import { STRICT_RULES } from "../../sources/secret.ts";
import { type Rotation, RotationError } from "./types.ts";

/** A receiver that was seen within this time lives. It makes itself seen every 10 s, and reads its secrets every 30 s at least. */
const SEEN_MS = 90_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** In a message; the fields name all. */
const MOST_SHOWN = 10;

/** What keeps a rotation from going on. */
type Look =
  | { readonly outcome: "ready"; readonly receivers: number | null }
  | { readonly outcome: "lagging"; readonly receivers: readonly ReceiverSighting[] }
  | { readonly outcome: "unseen"; readonly leftMs: number };

/**
 * Waits until every living receiver has the secrets as they are stored.
 *
 * @returns how many there are; null when the store can not tell: then this call has waited for twice its refresh time
 * @throws RotationError `receivers_not_ready` after `waitMs`
 */
export async function untilReceiversAreReady(rotation: Rotation): Promise<number | null> {
  const { kind, clock, signal, waitMs, logger } = rotation;
  const begunAt = clock.monotonic();
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS)) {
    const waitedMs = clock.monotonic() - begunAt;
    const look = await lookAt(rotation, waitedMs);
    if (look.outcome === "ready") {
      const { receivers } = look;
      if (receivers !== 0) logger.info({ kind, receivers }, "The receivers are ready.");
      else logger.warn({ kind }, "No receiver has been seen for 90 s: the service gets a secret that none may have.");
      return receivers;
    }
    const leftMs = waitMs - waitedMs;
    if (leftMs <= 0) throw notReady(rotation, look);
    await sleep(clock, Math.min(look.outcome === "unseen" ? look.leftMs : pauseMs, leftMs), signal);
    signal?.throwIfAborted();
  }
}

async function lookAt({ secrets, clock }: Rotation, waitedMs: number): Promise<Look> {
  const sightings = await secrets.receivers();
  const now = clock.now();
  if (sightings === null) {
    // The time at which `next` was written may come from another machine's clock. The wait of this call is certain.
    const leftMs = 2 * secrets.refreshMs - waitedMs;
    return leftMs > 0 ? { outcome: "unseen", leftMs } : { outcome: "ready", receivers: null };
  }
  const living = livingOf(sightings, now);
  const version = await storedVersion(secrets, now);
  const lagging = living.filter(({ keyringVersion }) => keyringVersion !== version);
  if (lagging.length > 0) return { outcome: "lagging", receivers: lagging };
  return { outcome: "ready", receivers: living.length };
}

/** The receivers that live, as far as their heartbeats tell. */
export function livingOf(sightings: readonly ReceiverSighting[], now: number): readonly ReceiverSighting[] {
  return sightings.filter(({ seenAt }) => seenAt > now - SEEN_MS);
}

/** What a receiver reports that uses the secrets as they are stored. */
export async function storedVersion(secrets: Pick<SecretStore, "read" | "encoding">, now: number): Promise<string> {
  return compileKeys(await storedKeyring(secrets, now), STRICT_RULES, now).version;
}

function notReady({ kind, waitMs }: Rotation, look: Exclude<Look, { outcome: "ready" }>): RotationError {
  const advice = "The new secret stays installed, which harms nothing: call rotateSecret() again to go on.";
  if (look.outcome === "unseen") {
    const message = `The store does not know its receivers, so each call gives them time to read the new ${kind} secret: ${Math.ceil(look.leftMs)} ms more than waitMs (${waitMs}) allows. Raise it to twice the store's refreshMs at least. ${advice}`;
    return new RotationError("receivers_not_ready", message, { fields: { kind, receivers: null } });
  }
  const names = look.receivers.map(({ pid, host }) => `${pid}@${host}`);
  const shown = names.slice(0, MOST_SHOWN).join(", ") + (names.length > MOST_SHOWN ? ", …" : "");
  const lagging = names.length === 1 ? "1 receiver does not use" : `${names.length} receivers do not use`;
  const message = `${lagging} the new ${kind} secret after ${waitMs} ms: ${shown}. Check that they run, reach the secret store, and have no secrets of their own: each process that opens the inbox needs the same store. ${advice}`;
  return new RotationError("receivers_not_ready", message, { fields: { kind, receivers: names.join(", ") } });
}
