/** Guards a receiver against a secret store that shows what was, after it has shown what is: copies may lag behind. */
import { KeyringError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import type { WebhookKind } from "./secret.ts";
import type { SecretStore, StoredSecrets } from "./secret-store.ts";

/** Longer than copies lag; an older revision that is read after it is what the store has: it was restored, or made anew. */
const OLDER_MS = 60_000;

/** The newest that was read of a kind. */
interface Latest {
  readonly revision: number;
  /** Monotonic milliseconds. */
  readonly readAt: number;
}

/**
 * The store's reads; one of an older revision is a failure for a minute after the newer one was last read. A receiver that went
 * back would say that it uses a secret, and then refuse it.
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
  const message = `It gave an older revision of the ${kind} secrets (${revision}) than before (${known}): the store has to read what was written last. If it was restored, the older one counts after a minute.`;
  return new KeyringError(message);
}
