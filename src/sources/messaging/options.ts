/** The options of the messaging service as a source of deliveries. */
import type { SourceOptions } from "../definition.ts";
import type { Keyring, KeyringProvider } from "../keys.ts";
import type { GapWait } from "./gap-wait.ts";
import type { SecretStore } from "./secret-store.ts";
import type { WebhookEvent } from "./types.ts";
import type { SignatureEncoding, TimestampFormat } from "./verify.ts";

export interface ServiceOptions extends Pick<SourceOptions<WebhookEvent>, "filter"> {
  /**
   * A secret, a set of them, one per webhook kind, a function that reads them, or a secret store, such as `sqliteSecrets` of
   * oncehook/sqlite. A store is read again every `refreshMs`, and stays open when the receiver stops (RCV-9). A missing secret is refused
   * at once; only in `next build` the first delivery reports it.
   */
  readonly secrets: Keyring | KeyringProvider | SecretStore;
  /** How old or how far ahead a timestamp may be. Milliseconds, 1 to 86,400,000. Default 90 minutes past, 5 minutes ahead. */
  readonly toleranceMs?: { readonly past?: number; readonly future?: number };
  /** Default `"auto"`: 10 digits are seconds, 13 are milliseconds (DLV-13). */
  readonly timestampFormat?: TimestampFormat;
  /** How signatures are written. Default: detected by length (DLV-12). */
  readonly signatureEncoding?: SignatureEncoding;
  /**
   * How long an event waits for a missing sequence. `"balanced"` (default): `message.failed` 90 s, others 22 min. `"strict"`: 85 min,
   * until the service's last retry. `"eager"`: not at all. Or a function that returns milliseconds for an event, 0 to 24 h.
   */
  readonly gapWait?: GapWait;
  /** The sequence of a message's first event (EVT-8). 0 to 10,000, or `"any"`: the first to arrive counts as the first. Default 1. */
  readonly firstSequence?: number | "any";
  /** Bytes of a body at most. 1,024 to 33,554,432 (32 MiB). Default 262,144 (256 KiB). */
  readonly maxBodyBytes?: number;
}

export const SERVICE_OPTIONS = [
  "secrets",
  "toleranceMs",
  "timestampFormat",
  "signatureEncoding",
  "gapWait",
  "firstSequence",
  "maxBodyBytes",
  "filter",
] as const satisfies readonly (keyof ServiceOptions)[];
