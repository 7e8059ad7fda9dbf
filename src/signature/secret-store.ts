/** The contract of secret stores, and what every store checks and writes. */
import { SetupError, StoreError } from "../errors.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE, type WebhookKind } from "../internal/webhook-kind.ts";
import { checkSecretText, type SecretEncoding, secretEncodingOption } from "./secret.ts";

// The contract between those who use the webhook secrets (receivers, a rotation) and the place that keeps them.

/**
 * Keeps the secrets of the webhook kinds, and the state of a rotation between its steps. Shared by all receivers of a
 * service's webhooks and by whoever rotates. `secretStoreContract` of `oncehook/testing` proves an implementation.
 */
export interface SecretStore {
  /**
   * How long a receiver goes on with what it read before it reads again, milliseconds, 100 to 30,000. The same in all processes
   * that share the secrets: a rotation that does not know its receivers goes by its own.
   */
  readonly refreshMs: number;
  /** How the texts become keys, the same for all who share the secrets (DLV-14). */
  readonly encoding: SecretEncoding;
  /**
   * The secrets of a kind as they were written last; null before the first. Rejects when they can not be read now, or not be
   * opened.
   */
  read(kind: WebhookKind): Promise<StoredSecrets | null>;
  /**
   * Replaces the secrets of a kind if nobody has since `revision` was read (0: there were none). False if somebody has: then
   * nothing was written. What it wrote is durable.
   */
  write(kind: WebhookKind, slots: SecretSlots, revision: number): Promise<boolean>;
  /** The receivers that share these secrets, as far as they have said that they live; null when that is not known here. */
  receivers(): Promise<readonly ReceiverSighting[] | null>;
  /** Lets go of files and connections. Closing twice is harmless. */
  close(): Promise<void>;
}

/** The secrets of one webhook kind, as texts; the store's `encoding` makes keys of them (DLV-14). */
export interface SecretSlots {
  /** What the service signs with, as far as is known; null before the first rotation has ended. */
  readonly current: string | null;
  /** What it signed with before, newest first. Each counts while now < `validUntil`. */
  readonly previous: readonly { readonly secret: string /** Epoch ms. */; readonly validUntil: number }[];
  /** Installed ahead of its use: a rotation is under way. */
  readonly next: NextSecret | null;
  /** The service's `rotatedAt` when the last rotation through this store ended, epoch ms; null before one, or when it showed none. */
  readonly rotatedAt: number | null;
}

export interface NextSecret {
  readonly secret: string;
  /** When it was made, epoch ms. */
  readonly since: number;
  /** The service's `rotatedAt` before the rotation, epoch ms; null when it showed none. */
  readonly rotatedAtBefore: number | null;
  /** The service had a current secret when the rotation began: this is not its first. */
  readonly hadSecret: boolean;
}

export interface StoredSecrets extends SecretSlots {
  /** Grows with each write of the kind. 1 or more. */
  readonly revision: number;
}

/** A receiver process, as its heartbeat shows it. */
export interface ReceiverSighting {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Epoch ms of its last heartbeat. */
  readonly seenAt: number;
  /** Names the secrets it uses without telling them: equal for equal secrets, another one for others. */
  readonly keyringVersion: string;
  /** Cumulative for its process; `slot:previous` counts deliveries that a previous secret vouched for. */
  readonly counters: Readonly<Record<string, number>>;
}

// Sealing: how secrets become bytes that may lie in a database.

/** Seals and opens what a secret store keeps. Give your own to have a key management service do it. */
export interface Sealing {
  /** `context` names what is sealed, such as `oncehook secret delivery`: bind it, so that one entry can not stand for another. */
  seal(plain: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
  /** Throws or rejects when `sealed` was not made by `seal` with the same key and context. */
  open(sealed: Uint8Array, context: string): Uint8Array | Promise<Uint8Array>;
}

// Checks that what is given as a secret store is one, before anything reads from it.

const METHODS = ["read", "write", "receivers", "close"] as const satisfies readonly (keyof SecretStore)[];

/** @throws SetupError naming what is missing or wrong */
export function secretStoreOption(name: string, value: SecretStore): SecretStore {
  for (const method of METHODS) {
    if (typeof value?.[method] === "function") continue;
    const message = `Option "${name}" is no secret store: it has no method ${method}(). sqliteSecrets() of oncehook/sqlite and postgresSecrets() of oncehook/postgres make one.`;
    throw new SetupError("invalid_option", message, { fields: { option: name } });
  }
  // Null, because a store without it must not get a default here.
  numberOption(`${name}.refreshMs`, value.refreshMs ?? null, 0, { min: 100, max: 30_000, unit: "ms" });
  secretEncodingOption(`${name}.encoding`, value.encoding);
  return value;
}

// The secrets of a webhook kind as a value that is checked, and as the text that a secret store keeps.

const FORMAT = 1;
const SLOTS = ["current", "previous", "next", "rotatedAt"];

/**
 * Checks what is to be stored, and copies it. Every store's `write` calls it before anything else.
 *
 * @throws SetupError naming the part that is wrong, never showing a secret
 */
export function checkSlots(slots: unknown, encoding: SecretEncoding): SecretSlots {
  // A store reads `revision` beside the slots, and what was read may be written again.
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

/** @throws SetupError for what no `read` ever gave: 0 for nothing, then 1 and up */
export function checkRevision(revision: unknown): asserts revision is number {
  if (typeof revision === "number" && Number.isSafeInteger(revision) && revision >= 0) return;
  throw invalidOption("revision", "must be the revision that was read, or 0 when there was none", revision);
}

/** One line of JSON, with the number of its format. */
export function slotsToText({ current, previous, next, rotatedAt }: SecretSlots): string {
  return JSON.stringify({ oncehook: FORMAT, current, previous, next, rotatedAt });
}

/** Where a text came from, and how its secrets are to be read. */
interface TextOrigin {
  /** For messages. */
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
    // The parser's message quotes the text, so only our own is kept.
    throw unreadable(
      `What ${place} keeps is no set of secrets that this version can read: it was written by something else, with another "encoding", or by a newer version.`,
      error instanceof SetupError ? error : undefined,
    );
  }
}

/** What is stored can not be turned into secrets. `cause` is one of our own: any other may quote them. */
export function unreadable(message: string, cause?: SetupError): StoreError {
  return new StoreError("secret_unreadable", message, cause === undefined ? {} : { cause });
}

/** Texts of the first versions say neither when the last rotation ended, nor whether the service had a secret before `next`. */
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
