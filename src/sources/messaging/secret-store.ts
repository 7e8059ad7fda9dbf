/** The contract of secret stores, with the checks and the text format that every store uses. */
import { SetupError, StoreError } from "../../errors.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../../internal/options.ts";
import { checkSecretText, type SecretEncoding, secretEncodingOption } from "../secret.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE, type WebhookKind } from "./webhook-kind.ts";

/**
 * Keeps the secrets of the webhook kinds, and the state of a rotation between its steps. Shared by all receivers of the
 * service's webhooks and by rotations. `secretStoreContract` of `oncehook/testing/contracts` tests an implementation.
 */
export interface SecretStore {
  /**
   * How often a receiver reads the secrets again, milliseconds, 100 to 30,000. The same in all processes
   * that share the secrets: a rotation that does not know its receivers relies on its own value.
   */
  readonly refreshMs: number;
  /** How the texts become keys; the same in all processes that share the secrets (DLV-14). */
  readonly encoding: SecretEncoding;
  /**
   * The secrets of a kind as last written; null before the first write. Rejects when they cannot be read or opened
   * now.
   */
  read(kind: WebhookKind): Promise<StoredSecrets | null>;
  /**
   * Replaces the secrets of a kind unless they have changed since `revision` was read (0: there were none). Returns false if they
   * have: then nothing was written. A write is durable.
   */
  write(kind: WebhookKind, slots: SecretSlots, revision: number): Promise<boolean>;
  /** The receivers that share these secrets and have sent a heartbeat; null when the store cannot know. */
  receivers(): Promise<readonly ReceiverSighting[] | null>;
  /** Closes files and connections. Closing twice is harmless. */
  close(): Promise<void>;
}

/** The secrets of one webhook kind, as texts; the store's `encoding` turns them into keys (DLV-14). */
export interface SecretSlots {
  /** The secret that the service signs with, as far as known; null before the first rotation has ended. */
  readonly current: string | null;
  /** Secrets that it signed with before, newest first. Each is accepted while now < `validUntil`. */
  readonly previous: readonly { readonly secret: string /** Epoch ms. */; readonly validUntil: number }[];
  /** Installed before its use, during a rotation. */
  readonly next: NextSecret | null;
  /** The service's `rotatedAt` when the last rotation through this store ended, epoch ms; null before one, or if there was none. */
  readonly rotatedAt: number | null;
}

/** The secret that a rotation installs, before the service signs with it. */
export interface NextSecret {
  readonly secret: string;
  /** When it was generated, epoch ms. */
  readonly since: number;
  /** The service's `rotatedAt` before the rotation, epoch ms; null if there was none. */
  readonly rotatedAtBefore: number | null;
  /** True if the service had a secret when the rotation began. */
  readonly hadSecret: boolean;
}

/** The secrets of a webhook kind, as a store keeps them. */
export interface StoredSecrets extends SecretSlots {
  /** 1 or more; grows with each write of the kind. */
  readonly revision: number;
}

/** A receiver process, as its last heartbeat reported it. */
export interface ReceiverSighting {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Epoch ms of its last heartbeat. */
  readonly seenAt: number;
  /** Names the secrets it uses without revealing them: equal for equal secrets, different for others. */
  readonly keyringVersion: string;
  /** Totals of its process; `slot:service:previous` counts deliveries that a previous secret vouched for. */
  readonly counters: Readonly<Record<string, number>>;
}

/** Seals secrets into bytes that may be stored in a database, and opens them. Pass your own to use a key management service. */
export interface Sealing {
  /** `context` names what is sealed, such as `oncehook secret delivery`: bind it, so that one entry cannot replace another. */
  seal(plain: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
  /** Throws or rejects when `sealed` was not made by `seal` with the same key and context. */
  open(sealed: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
}

const METHODS = ["read", "write", "receivers", "close"] as const satisfies readonly (keyof SecretStore)[];

/** Checks that a value is a secret store before anything reads from it. @throws SetupError naming what is missing or wrong */
export function secretStoreOption(name: string, value: SecretStore): SecretStore {
  for (const method of METHODS) {
    if (typeof value?.[method] === "function") continue;
    const message = `Option "${name}" is not a secret store: it has no method ${method}(). Create one with sqliteSecrets() of oncehook/sqlite or postgresSecrets() of oncehook/postgres.`;
    throw new SetupError("invalid_option", message, { fields: { option: name } });
  }
  // Null, because a missing refreshMs must be refused and not defaulted.
  numberOption(`${name}.refreshMs`, value.refreshMs ?? null, 0, { min: 100, max: 30_000, unit: "ms" });
  secretEncodingOption(`${name}.encoding`, value.encoding);
  return value;
}

const FORMAT = 1;
const SLOTS = ["current", "previous", "next", "rotatedAt"];

/**
 * Checks and copies slots that are about to be stored. Every store's `write` calls it first.
 *
 * @throws SetupError naming the part that is wrong; never shows a secret
 */
export function checkSlots(slots: unknown, encoding: SecretEncoding): SecretSlots {
  // A store's `read` returns `revision` with the slots, and the result may be written again.
  refuseUnknownOptions("slots", slots, [...SLOTS, "revision"]);
  const { current, previous, next, rotatedAt } = slots as Readonly<Record<string, unknown>>;
  if (!Array.isArray(previous)) throw invalidOption("slots.previous", "must be a list", previous);
  return {
    current: current === null ? null : checkSecretText("slots.current", current, encoding),
    previous: previous.map((each: unknown, index) => checkPrevious(`slots.previous[${index}]`, each, encoding)),
    next: next === null ? null : checkNext(next, encoding),
    rotatedAt: epochMsOrNull("slots.rotatedAt", rotatedAt),
  };
}

/** @throws SetupError for anything but a webhook kind */
export function checkKind(kind: unknown): asserts kind is WebhookKind {
  if (!isWebhookKind(kind)) throw invalidOption("kind", WEBHOOK_KIND_RULE, kind);
}

/** @throws SetupError for anything but 0 (nothing was stored) and the revisions of a `read`, 1 and up */
export function checkRevision(revision: unknown): asserts revision is number {
  if (typeof revision === "number" && Number.isSafeInteger(revision) && revision >= 0) return;
  throw invalidOption("revision", "must be the revision that was read, or 0 when there was none", revision);
}

/** One line of JSON, with the number of its format. */
export function slotsToText({ current, previous, next, rotatedAt }: SecretSlots): string {
  return JSON.stringify({ oncehook: FORMAT, current, previous, next, rotatedAt });
}

/** Where a text came from, and the encoding of its secrets. */
interface TextOrigin {
  /** For error messages. */
  readonly place: string;
  readonly encoding: SecretEncoding;
}

/** @throws StoreError `secret_unreadable` for a text that `slotsToText` did not make */
export function slotsFromText(text: string, { place, encoding }: TextOrigin): SecretSlots {
  try {
    const { oncehook, ...slots } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (oncehook !== FORMAT) throw invalidOption("oncehook", `must be ${FORMAT}`, oncehook);
    return checkSlots(completed(slots), encoding);
  } catch (error) {
    // The parser's message quotes the text, so only our own errors become the cause.
    throw unreadable(
      `The secrets in ${place} cannot be read by this version: they were written by something else, with another "encoding", or by a newer version.`,
      error instanceof SetupError ? error : undefined,
    );
  }
}

/** The stored value cannot be turned into secrets. `cause` must be our own error: any other may quote them. */
export function unreadable(message: string, cause?: SetupError): StoreError {
  return new StoreError("secret_unreadable", message, cause === undefined ? {} : { cause });
}

/** Texts of the first versions lack the end of the last rotation, and whether the service had a secret before `next`. */
function completed(slots: Readonly<Record<string, unknown>>): unknown {
  const { current, next } = slots;
  const isShort = typeof next === "object" && next !== null && !("hadSecret" in next);
  return { rotatedAt: null, ...slots, ...(isShort ? { next: { ...next, hadSecret: current !== null } } : {}) };
}

function checkPrevious(option: string, value: unknown, encoding: SecretEncoding): SecretSlots["previous"][number] {
  refuseUnknownOptions(option, value, ["secret", "validUntil"]);
  const { secret, validUntil } = value as Readonly<Record<string, unknown>>;
  return {
    secret: checkSecretText(`${option}.secret`, secret, encoding),
    validUntil: epochMs(`${option}.validUntil`, validUntil),
  };
}

function checkNext(value: unknown, encoding: SecretEncoding): NextSecret {
  refuseUnknownOptions("slots.next", value, ["secret", "since", "rotatedAtBefore", "hadSecret"]);
  const { secret, since, rotatedAtBefore, hadSecret } = value as Readonly<Record<string, unknown>>;
  return {
    secret: checkSecretText("slots.next.secret", secret, encoding),
    since: epochMs("slots.next.since", since),
    rotatedAtBefore: epochMsOrNull("slots.next.rotatedAtBefore", rotatedAtBefore),
    hadSecret: isTrue("slots.next.hadSecret", hadSecret),
  };
}

function isTrue(option: string, value: unknown): boolean {
  if (typeof value === "boolean") return value;
  throw invalidOption(option, "must be true or false", value);
}

function epochMsOrNull(option: string, value: unknown): number | null {
  return value === null ? null : epochMs(option, value);
}

function epochMs(option: string, value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw invalidOption(option, "must be a time in epoch milliseconds", value);
}
