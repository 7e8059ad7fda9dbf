/** Makes a keyring of what a secret store holds. */
import { KeyringError } from "../errors.ts";
import { LONGEST_PREVIOUS_MS, MAX_LIVE_SECRETS } from "./keyring.ts";
import type { Direction, PreviousSecret, ScopedSecret, SecretEncoding, WebhookKind } from "./secret.ts";
import type { SecretStore, StoredSecrets } from "./secret-store.ts";

/** The service sends outbound events to the delivery target and inbound ones to the inbound target (DLV-1). */
const DIRECTIONS: Readonly<Record<WebhookKind, Direction>> = { inbound: "inbound", delivery: "outbound" };
const KINDS = ["inbound", "delivery"] as const satisfies readonly WebhookKind[];
const DAY_MS = 86_400_000;

/** A keyring of both kinds, each secret with the direction of its own. */
export interface StoredKeyring {
  readonly current: readonly ScopedSecret[];
  readonly previous: readonly PreviousSecret[];
  readonly next: readonly ScopedSecret[];
}

/** What all secrets of a kind have in common. */
interface Kind {
  readonly slots: StoredSecrets | null;
  readonly direction: Direction;
  readonly encoding: SecretEncoding;
}

/**
 * Reads the secrets of both kinds as one keyring, in which each secret vouches for events of its own kind only. A kind
 * without secrets has none: its deliveries are refused. Previous secrets that ended were left out; so are those that end
 * soonest where a keyring would have more than 8. While a first rotation is under way, `current` is an empty list, and `next`
 * alone is accepted.
 *
 * `compileKeyring(await storedKeyring(secrets, now), now).version` is what a receiver reports that uses these secrets.
 *
 * @param now - epoch milliseconds
 * @throws KeyringError when nothing is stored yet; and whatever the store's `read` rejects with
 */
export async function storedKeyring(
  secrets: Pick<SecretStore, "read" | "encoding">,
  now: number,
): Promise<StoredKeyring> {
  const { encoding } = secrets;
  const [inbound = null, delivery = null] = await Promise.all(KINDS.map((kind) => secrets.read(kind)));
  const stored: readonly Kind[] = [
    { slots: inbound, direction: DIRECTIONS.inbound, encoding },
    { slots: delivery, direction: DIRECTIONS.delivery, encoding },
  ];
  const current = stored.flatMap((kind) => scoped(kind.slots?.current, kind));
  const next = stored.flatMap((kind) => scoped(kind.slots?.next?.secret, kind));
  const previous = stored.flatMap((kind) => previousOf(kind, now));
  if (current.length + next.length > 0) return { current, next, previous: longestOf(previous, [...current, ...next]) };
  throw new KeyringError(
    "No webhook secret is stored yet: call adoptSecret() with the one the service signs with, or rotateSecret(), both of oncehook/rotation.",
  );
}

/** The kinds whose deliveries are all refused. */
export function kindsWithoutSecret({ current, next }: StoredKeyring): readonly WebhookKind[] {
  const directions = new Set([...current, ...next].map(({ direction }) => direction));
  return KINDS.filter((kind) => !directions.has(DIRECTIONS[kind]));
}

function scoped(secret: string | null | undefined, { direction, encoding }: Kind): ScopedSecret[] {
  return typeof secret === "string" ? [{ secret, direction, encoding }] : [];
}

function previousOf(kind: Kind, now: number): PreviousSecret[] {
  const previous = kind.slots?.previous ?? [];
  return previous
    .filter(({ validUntil }) => validUntil > now)
    .flatMap(({ secret, validUntil }) =>
      scoped(secret, kind).map((each) => ({ ...each, validUntil: plausibleEnd(validUntil, now) })),
    );
}

/**
 * A keyring refuses an end that is more than 8 days ahead, and one bad end must not cost all other secrets: our clock may be
 * behind that of who wrote it. The last midnight before the limit, so that the version does not change with every read.
 */
function plausibleEnd(validUntil: number, now: number): number {
  const limit = now + LONGEST_PREVIOUS_MS;
  return validUntil <= limit ? validUntil : limit - (limit % DAY_MS);
}

/** Of the previous secrets those that end last, in their order, so many that a keyring takes them beside the others. */
function longestOf(previous: readonly PreviousSecret[], others: readonly ScopedSecret[]): readonly PreviousSecret[] {
  const texts = new Set(others.map(({ secret }) => secret));
  const taken = new Set<PreviousSecret>();
  for (const each of [...previous].sort((a, b) => b.validUntil - a.validUntil)) {
    if (texts.size >= MAX_LIVE_SECRETS && !texts.has(each.secret)) continue;
    texts.add(each.secret);
    taken.add(each);
  }
  return previous.filter((each) => taken.has(each));
}
