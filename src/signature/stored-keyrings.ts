/** Makes a keyring of what a secret store holds. */
import { KeyringError } from "../errors.ts";
import type { Keyring } from "./keyring.ts";
import type { Direction, ScopedSecret, WebhookKind } from "./secret.ts";
import type { SecretStore, StoredSecrets } from "./secret-store.ts";

/** The service sends outbound events to the delivery target and inbound ones to the inbound target (DLV-1). */
const DIRECTIONS: Readonly<Record<WebhookKind, Direction>> = { inbound: "inbound", delivery: "outbound" };

/**
 * Reads the secrets of both kinds as one keyring, in which each secret vouches for events of its own kind only. A kind
 * without secrets has none: its deliveries are refused. Previous secrets that ended are left out. While a first rotation is
 * under way, `current` is an empty list, and `next` alone is accepted.
 *
 * `compileKeyring(await storedKeyring(secrets, now), now).version` is what a receiver reports that uses these secrets.
 *
 * @param now - epoch milliseconds
 * @throws KeyringError when nothing is stored yet; and whatever the store's `read` rejects with
 */
export async function storedKeyring(secrets: Pick<SecretStore, "read">, now: number): Promise<Keyring> {
  const kinds = ["inbound", "delivery"] as const;
  const [inbound, delivery] = await Promise.all(kinds.map((kind) => secrets.read(kind)));
  const stored = [
    { direction: DIRECTIONS.inbound, slots: inbound ?? null },
    { direction: DIRECTIONS.delivery, slots: delivery ?? null },
  ];
  const keyring = {
    current: stored.flatMap(({ direction, slots }) => scoped(slots?.current, direction)),
    previous: stored.flatMap(({ direction, slots }) => previousOf(slots, direction, now)),
    next: stored.flatMap(({ direction, slots }) => scoped(slots?.next?.secret, direction)),
  };
  if (keyring.current.length + keyring.next.length > 0) return keyring;
  throw new KeyringError(
    "No webhook secret is stored yet: call adoptSecret() with the one the service signs with, or rotateSecret(), both of oncehook/rotation.",
  );
}

function scoped(secret: string | null | undefined, direction: Direction): ScopedSecret[] {
  return typeof secret === "string" ? [{ secret, direction }] : [];
}

function previousOf(slots: StoredSecrets | null, direction: Direction, now: number) {
  const previous = slots?.previous ?? [];
  return previous
    .filter(({ validUntil }) => validUntil > now)
    .map(({ secret, validUntil }) => ({ secret, validUntil, direction }));
}
