/** Webhook secrets in a place of the application's own, such as a secret manager, by two functions. */
import { SetupError, StoreError } from "../../errors.ts";
import { foreignPlace } from "../../internal/foreign-error.ts";
import { functionOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import {
  checkKind,
  checkRevision,
  checkSlots,
  type ReceiverSighting,
  type SecretStore,
  slotsFromText,
  slotsToText,
} from "../../sources/messaging/secret-store.ts";
import type { WebhookKind } from "../../sources/messaging/webhook-kind.ts";
import { type SecretEncoding, secretEncodingOption } from "../../sources/secret.ts";

/** What was kept of a kind: the text that `save` got last, and its revision. */
export interface SavedSecrets {
  readonly text: string;
  /** 1 or more. */
  readonly revision: number;
}

export interface CallbackSecretsOptions {
  /**
   * Reads what `save` kept of a kind; null before the first. Receivers give it 2 seconds for both kinds. What it gives must be
   * what was saved last (a consistent read, no copy that lags behind): receivers take an older revision for a failure.
   */
  readonly load: (kind: WebhookKind) => Promise<SavedSecrets | null> | SavedSecrets | null;
  /**
   * Keeps `text`, which holds secrets, as revision `revision + 1` if the kind is at `revision` (0: there is none yet). False
   * if it is not: then it must keep nothing. True once the text is durable. Compare and set, or two rotations overwrite each other.
   */
  readonly save: (kind: WebhookKind, text: string, revision: number) => Promise<boolean> | boolean;
  /** The receivers that share these secrets, or null. Default: not known, so a rotation can not wait for them. */
  readonly receivers?: () => Promise<readonly ReceiverSighting[] | null> | readonly ReceiverSighting[] | null;
  /** How often receivers read again, milliseconds, 100 to 30,000; the same in every process, since a rotation goes by its own. Default 30,000. */
  readonly refreshMs?: number;
  /** How the service makes keys of its secrets' texts. Default `"utf8"` (DLV-14). */
  readonly encoding?: SecretEncoding;
}

/**
 * Makes a secret store of functions that read and write one text per webhook kind.
 * @throws SetupError for a wrong option; reading rejects with one when a function returns something else than it must
 * @throws StoreError of reading: `secret_unreadable` for a text that this package did not write, `store_unavailable` when a function fails. It has
 *   the name and the code of the function's error only, because the error may quote secrets: log it in the function
 * @example
 * const kept = new Map<string, { text: string; revision: number }>();
 * const secrets = callbackSecrets({
 *   load: (kind) => kept.get(kind) ?? null,
 *   save: (kind, text, revision) => {
 *     if ((kept.get(kind)?.revision ?? 0) !== revision) return false;
 *     kept.set(kind, { text, revision: revision + 1 });
 *     return true;
 *   },
 * });
 */
export function callbackSecrets(options: CallbackSecretsOptions): SecretStore {
  refuseUnknownOptions("callbackSecrets()", options, ["load", "save", "receivers", "refreshMs", "encoding"]);
  for (const name of ["load", "save"] as const) {
    if (typeof options[name] !== "function") throw wrong(name, "must be a function");
  }
  const { load, save } = options;
  const receivers = functionOption("receivers", options.receivers);
  const encoding = secretEncodingOption("encoding", options.encoding);
  return {
    refreshMs: numberOption("refreshMs", options.refreshMs, 30_000, { min: 100, max: 30_000, unit: "ms" }),
    encoding,
    async read(kind) {
      checkKind(kind);
      const saved = checkSaved(await called("load", () => load(kind)));
      const place = `load("${kind}")`;
      return saved && { ...slotsFromText(saved.text, { place, encoding }), revision: saved.revision };
    },
    async write(kind, slots, revision) {
      checkKind(kind);
      checkRevision(revision);
      const text = slotsToText(checkSlots(slots, encoding));
      const isSaved: unknown = await called("save", () => save(kind, text, revision));
      if (typeof isSaved !== "boolean") throw wrong("save", "must give true or false");
      return isSaved;
    },
    receivers: async () => (receivers === undefined ? null : checkSightings(await called("receivers", receivers))),
    close: async () => {},
  };
}

/** The function's own error may quote the secrets it was given, also in its causes: nothing of it is kept but its labels. */
async function called(name: string, call: () => unknown): Promise<unknown> {
  try {
    return await call();
  } catch (error) {
    const message = `The function ${name}() of callbackSecrets() failed${foreignPlace(error)}.`;
    throw new StoreError("store_unavailable", message);
  }
}

function checkSaved(saved: unknown): SavedSecrets | null {
  if (saved === null) return null;
  const { text, revision } = (saved ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof text === "string" && typeof revision === "number" && Number.isSafeInteger(revision) && revision >= 1) {
    return { text, revision };
  }
  throw wrong("load", "must give null, or { text, revision } with a revision of 1 or more");
}

function checkSightings(sightings: unknown): readonly ReceiverSighting[] | null {
  if (sightings === null || (Array.isArray(sightings) && sightings.every(isSighting))) return sightings;
  throw wrong("receivers", "must give null, or a list such as receiver.inbox.stats() has in instances");
}

function isSighting(value: unknown): value is ReceiverSighting {
  const { id, host, pid, seenAt, keyringVersion, counters } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const texts = [id, host, keyringVersion];
  const numbers = [pid, seenAt];
  return (
    texts.every((text) => typeof text === "string") &&
    numbers.every((number) => typeof number === "number" && Number.isFinite(number)) &&
    typeof counters === "object" &&
    counters !== null &&
    Object.values(counters).every((count) => typeof count === "number")
  );
}

function wrong(option: string, rule: string): SetupError {
  return new SetupError("invalid_option", `Option "${option}" of callbackSecrets() ${rule}.`, { fields: { option } });
}
