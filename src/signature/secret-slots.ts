/** The secrets of a webhook kind as a value that is checked, and as the text that a secret store keeps. */
import { SetupError, StoreError } from "../errors.ts";
import { invalidOption, refuseUnknownOptions } from "../internal/options.ts";
import { isWebhookKind, WEBHOOK_KIND_RULE } from "../internal/webhook-kind.ts";
import { checkSecretText, type SecretEncoding, type WebhookKind } from "./secret.ts";
import type { NextSecret, SecretSlots } from "./secret-store.ts";

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
export interface TextOrigin {
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
