/** A secret store in memory, for tests and development: its secrets end with the process. */
import { functionOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  type ReceiverSighting,
  type SecretStore,
  type StoredSecrets,
} from "../../sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";
import { type SecretEncoding, secretEncodingOption } from "../../sources/secret.ts";

export interface MemorySecretsOptions {
  /** The receivers that share these secrets: `() => receiver.inbox.stats().then(({ instances }) => instances)`. Default: not known. */
  readonly receivers?: () => Promise<readonly ReceiverSighting[]>;
  /** How often receivers read again, milliseconds, 100 to 30,000; the same in every process. Default 1,000. */
  readonly refreshMs?: number;
  /** How the texts of the secrets become keys. Default `"utf8"` (DLV-14). */
  readonly encoding?: SecretEncoding;
}

/**
 * Makes a secret store that keeps its secrets in memory, for the receivers and rotations of one process.
 *
 * @throws SetupError for a wrong option
 * @example
 * const secrets = memorySecrets();
 * const slots = { current: "a-secret-of-at-least-16-bytes", previous: [], next: null, rotatedAt: null };
 * console.log(await secrets.write("delivery", slots, 0)); // true
 */
export function memorySecrets(options: MemorySecretsOptions = {}): SecretStore {
  refuseUnknownOptions("memorySecrets()", options, ["receivers", "refreshMs", "encoding"]);
  const receivers = functionOption("receivers", options.receivers);
  const encoding = secretEncodingOption("encoding", options.encoding);
  const stored = new Map<WebhookKind, StoredSecrets>();
  return {
    refreshMs: numberOption("refreshMs", options.refreshMs, 1_000, { min: 100, max: 30_000, unit: "ms" }),
    encoding,
    async read(kind) {
      checkKind(kind);
      return structuredClone(stored.get(kind) ?? null);
    },
    async write(kind, slots, revision) {
      checkKind(kind);
      checkRevision(revision);
      const checked = checkSlots(slots, encoding);
      if ((stored.get(kind)?.revision ?? 0) !== revision) return false;
      stored.set(kind, { ...checked, revision: revision + 1 });
      return true;
    },
    receivers: async () => (await receivers?.()) ?? null,
    close: async () => {},
  };
}
