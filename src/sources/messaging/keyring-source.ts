/** The messaging service's secrets from a secret store, as the keyring of a receiver. */
import { KeyringError } from "../../errors.ts";
import type { Clock } from "../../internal/clock.ts";
import type { Logger } from "../../internal/logger.ts";
import { type KeyringSource, type KeyringSourceDeps, ProvidedKeyrings } from "../keyring-provider.ts";
import { LONGEST_PREVIOUS_MS, MAX_LIVE_SECRETS } from "../keys.ts";
import type { PreviousSecret, ScopedSecret, SecretEncoding, SecretRules } from "../secret.ts";
import { type SecretStore, type StoredSecrets, secretStoreOption } from "./secret-store.ts";
import type { WebhookKind } from "./webhook-kind.ts";

/** Tells a secret store from a keyring, which contains no functions. */
export function isSecretStore(secrets: object | string): secrets is SecretStore {
  return typeof secrets === "object" && secrets !== null && "read" in secrets;
}

/**
 * Reads a secret store again and again. It stays open when this source closes, because others may use it.
 *
 * @throws SetupError if `secrets` is not a secret store
 */
export function storedKeyrings(secrets: SecretStore, rules: SecretRules, deps: KeyringSourceDeps): KeyringSource {
  const { refreshMs: everyMs } = secretStoreOption("secrets", secrets);
  const reads = latestReads(secrets, deps.clock);
  let isFirst = true;
  const provider = async () => {
    const keyring = await storedKeyring(reads, deps.clock.now());
    if (isFirst) warnOfMissing(keyring, deps.logger);
    isFirst = false;
    return keyring;
  };
  const keyrings = new ProvidedKeyrings(provider, rules, deps, everyMs);
  // A store has neither routes nor tenants: one keyring serves all requests.
  return {
    read: () => keyrings.read({}),
    reread: (_, seen, cameAt) => keyrings.reread({}, seen, cameAt),
    version: () => keyrings.version(),
    get isFailing() {
      return keyrings.isFailing;
    },
    background: { everyMs, refresh: () => keyrings.refresh({}) },
    given: null,
    holds: () => false,
    close: () => keyrings.close(),
  };
}

/** Correct when only one kind is received. Otherwise a mistake that shows only as 401 answers to the service. */
function warnOfMissing(keyring: StoredKeyring, logger: Logger): void {
  for (const kind of kindsWithoutSecret(keyring)) {
    const message = `No secret for ${kind} webhooks is stored: they are refused. Store it with adoptSecret() of oncehook/rotation, unless none come here.`;
    logger.warn({ code: "keyring_warning", kind }, message);
  }
}

const KINDS = ["inbound", "delivery"] as const satisfies readonly WebhookKind[];
const DAY_MS = 86_400_000;

/** A keyring of both kinds, each secret with its own. */
interface StoredKeyring {
  readonly current: readonly ScopedSecret[];
  readonly previous: readonly PreviousSecret[];
  readonly next: readonly ScopedSecret[];
}

/** What all secrets of a kind share. */
interface KindSecrets {
  readonly slots: StoredSecrets | null;
  readonly kind: WebhookKind;
  readonly encoding: SecretEncoding;
}

/**
 * Reads the secrets of both kinds as one keyring in which each secret vouches only for events of its own kind. A kind
 * without secrets refuses its deliveries. Previous secrets that have ended are left out, and so are those that end
 * soonest if the keyring would have more than 8. During a first rotation `current` is an empty list, and only `next`
 * is accepted.
 *
 * A receiver with these secrets reports `compileKeys(await storedKeyring(secrets, now), STRICT_RULES, now).version`.
 *
 * @param now - epoch milliseconds
 * @throws KeyringError when nothing is stored yet, and any error of the store's `read`
 */
export async function storedKeyring(
  secrets: Pick<SecretStore, "read" | "encoding">,
  now: number,
): Promise<StoredKeyring> {
  const { encoding } = secrets;
  const [inbound = null, delivery = null] = await Promise.all(KINDS.map((kind) => secrets.read(kind)));
  const stored: readonly KindSecrets[] = [
    { slots: inbound, kind: "inbound", encoding },
    { slots: delivery, kind: "delivery", encoding },
  ];
  const current = stored.flatMap((kind) => scoped(kind.slots?.current, kind));
  const next = stored.flatMap((kind) => scoped(kind.slots?.next?.secret, kind));
  const previous = stored.flatMap((kind) => previousOf(kind, now));
  if (current.length + next.length > 0) return { current, next, previous: longestOf(previous, [...current, ...next]) };
  throw new KeyringError(
    "No webhook secret is stored yet: call adoptSecret() with the secret that the service signs with, or rotateSecret(), both of oncehook/rotation.",
  );
}

/** The kinds whose deliveries are all refused. */
function kindsWithoutSecret({ current, next }: StoredKeyring): readonly WebhookKind[] {
  const found = new Set([...current, ...next].map(({ kind }) => kind));
  return KINDS.filter((kind) => !found.has(kind));
}

function scoped(secret: string | null | undefined, { kind, encoding }: KindSecrets): ScopedSecret[] {
  return typeof secret === "string" ? [{ secret, kind, encoding }] : [];
}

function previousOf(kind: KindSecrets, now: number): PreviousSecret[] {
  const previous = kind.slots?.previous ?? [];
  return previous
    .filter(({ validUntil }) => validUntil > now)
    .flatMap(({ secret, validUntil }) =>
      scoped(secret, kind).map((each) => ({ ...each, validUntil: plausibleEnd(validUntil, now) })),
    );
}

/**
 * Caps an end that is more than 8 days ahead, which a keyring refuses: this clock may be behind the writer's, and one bad end must not
 * disable all other secrets. The cap is the last midnight before the limit, so that the version does not change with every read.
 */
function plausibleEnd(validUntil: number, now: number): number {
  const limit = now + LONGEST_PREVIOUS_MS;
  return validUntil <= limit ? validUntil : limit - (limit % DAY_MS);
}

/** The previous secrets that end last, in their order: as many as fit into a keyring with the others. */
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

/** Longer than replicas lag. After it, an older revision counts: the store was restored or created again. */
const OLDER_MS = 60_000;

/** The newest revision that was read of a kind. */
interface Latest {
  readonly revision: number;
  /** Monotonic milliseconds. */
  readonly readAt: number;
}

/**
 * Wraps the store's reads, because a replica may lag behind: an older revision is a failure for a minute after the newer one was last
 * read. A receiver that went back would report that it uses a secret, and then refuse it.
 */
export function latestReads(secrets: SecretStore, clock: Clock): Pick<SecretStore, "read" | "encoding"> {
  const latest = new Map<WebhookKind, Latest>();
  return {
    encoding: secrets.encoding,
    async read(kind): Promise<StoredSecrets | null> {
      const stored = await secrets.read(kind);
      const readAt = clock.monotonic();
      const known = latest.get(kind);
      if (stored === null || stored === undefined) return null;
      if (known !== undefined && stored.revision < known.revision && readAt < known.readAt + OLDER_MS) {
        throw olderRevision(kind, stored.revision, known.revision);
      }
      latest.set(kind, { revision: stored.revision, readAt });
      return stored;
    },
  };
}

function olderRevision(kind: WebhookKind, revision: number, known: number): KeyringError {
  const message = `It returned an older revision of the ${kind} secrets (${revision}) than before (${known}): the store must read what was written last. If it was restored, the older one counts after a minute.`;
  return new KeyringError(message);
}
