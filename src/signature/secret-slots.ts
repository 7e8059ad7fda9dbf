/** The secrets of a webhook kind as a value that is checked, and as the text that a secret store keeps. */
import { SetupError, StoreError } from "../errors.ts";
import { invalidOption, refuseUnknownOptions } from "../internal/options.ts";
import { checkSecret, type WebhookKind } from "./secret.ts";
import type { NextSecret, SecretSlots } from "./secret-store.ts";

const FORMAT = 1;
const SLOTS = ["current", "previous", "next"];

/**
 * Checks what is to be stored, and copies it. Every store's `write` calls it before anything else.
 *
 * @throws SetupError naming the part that is wrong, never showing a secret
 */
export function checkSlots(slots: unknown): SecretSlots {
  // A store reads `revision` beside the slots, and what was read may be written again.
  refuseUnknownOptions("slots", slots, [...SLOTS, "revision"]);
  const { current, previous, next } = slots as Readonly<Record<string, unknown>>;
  if (!Array.isArray(previous)) throw invalidOption("slots.previous", "must be a list", previous);
  return {
    current: current === null ? null : secretText("slots.current", current),
    previous: previous.map((each: unknown, index) => checkPrevious(`slots.previous[${index}]`, each)),
    next: next === null ? null : checkNext(next),
  };
}

/** @throws SetupError for anything but a webhook kind */
export function checkKind(kind: unknown): asserts kind is WebhookKind {
  if (kind !== "inbound" && kind !== "delivery") throw invalidOption("kind", 'must be "inbound" or "delivery"', kind);
}

/** @throws SetupError for what no `read` ever gave: 0 for nothing, then 1 and up */
export function checkRevision(revision: unknown): asserts revision is number {
  if (typeof revision === "number" && Number.isSafeInteger(revision) && revision >= 0) return;
  throw invalidOption("revision", "must be the revision that was read, or 0 when there was none", revision);
}

/** One line of JSON, with the number of its format. */
export function slotsToText({ current, previous, next }: SecretSlots): string {
  return JSON.stringify({ oncehook: FORMAT, current, previous, next });
}

/** @throws StoreError `secret_unreadable` for a text that `slotsToText` did not make; `place` says where it came from */
export function slotsFromText(text: string, place: string): SecretSlots {
  try {
    const { oncehook, ...slots } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (oncehook !== FORMAT) throw invalidOption("oncehook", `must be ${FORMAT}`, oncehook);
    return checkSlots(slots);
  } catch (error) {
    // The parser's message quotes the text, so only our own is kept.
    throw unreadable(
      `What ${place} keeps is no set of secrets that this version can read: it was written by something else, or by a newer version.`,
      error instanceof SetupError ? error : undefined,
    );
  }
}

/** What is stored can not be turned into secrets. */
export function unreadable(message: string, cause?: unknown): StoreError {
  return new StoreError("secret_unreadable", message, cause === undefined ? {} : { cause });
}

function secretText(option: string, value: unknown): string {
  if (typeof value !== "string") throw invalidOption(option, "must be a text, or null", value, "invalid_secret");
  checkSecret(option, value);
  return value;
}

function checkPrevious(option: string, value: unknown): SecretSlots["previous"][number] {
  refuseUnknownOptions(option, value, ["secret", "validUntil"]);
  const { secret, validUntil } = value as Readonly<Record<string, unknown>>;
  return { secret: secretText(`${option}.secret`, secret), validUntil: epochMs(`${option}.validUntil`, validUntil) };
}

function checkNext(value: unknown): NextSecret {
  refuseUnknownOptions("slots.next", value, ["secret", "since", "rotatedAtBefore"]);
  const { secret, since, rotatedAtBefore } = value as Readonly<Record<string, unknown>>;
  return {
    secret: secretText("slots.next.secret", secret),
    since: epochMs("slots.next.since", since),
    rotatedAtBefore: rotatedAtBefore === null ? null : epochMs("slots.next.rotatedAtBefore", rotatedAtBefore),
  };
}

function epochMs(option: string, value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw invalidOption(option, "must be a time in epoch milliseconds", value);
}
