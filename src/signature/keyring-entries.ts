/** Walks a keyring value of any of its shapes and lists its secrets, each validated and with its grant. */
import type { Buffer } from "node:buffer";
import { hash } from "node:crypto";
import { SetupError } from "../errors.ts";
import { isUnsetInBuild } from "../internal/environment.ts";
import { invalidOption, refuseUnknownOptions } from "../internal/options.ts";
import { isRecord } from "../internal/type-guards.ts";
import type { Grant, ScopeName, Slot } from "./grant.ts";
import { type CheckedSecret, checkSecret, type Direction, MIN_SECRET_BYTES, UNSIGNED } from "./secret.ts";

/** One listed secret. */
export interface KeyringEntry {
  /** Name of the option it came from. */
  readonly option: string;
  readonly bytes: Buffer;
  readonly grant: Grant;
}

/** A keyring as a flat list. */
export interface FlatKeyring {
  readonly entries: readonly KeyringEntry[];
  readonly unsigned: ReadonlySet<Direction>;
  readonly warnings: readonly string[];
}

type SignedSlot = Exclude<Slot, "unsigned">;

interface Walk {
  readonly now: number;
  readonly entries: KeyringEntry[];
  readonly unsigned: Set<Direction>;
  readonly warnings: string[];
}

/** How far ahead a previous secret may end. */
export const LONGEST_PREVIOUS_MS = 8 * 86_400_000;
/** A smaller number is a time before 2001, or seconds where milliseconds belong. */
const FIRST_PLAUSIBLE_MS = 1e12;

/** @throws SetupError naming the option that is wrong */
export function flattenKeyring(keyring: unknown, now: number): FlatKeyring {
  const walk: Walk = { now, entries: [], unsigned: new Set(), warnings: [] };
  if (keyring === undefined || keyring === null) {
    throw new SetupError(
      "invalid_secret",
      'Option "secrets" is missing: give the webhook signing secret, at least 16 bytes.',
      {
        fields: { option: "secrets" },
      },
    );
  }
  if (isRecord(keyring) && ("inbound" in keyring || "delivery" in keyring)) {
    refuseUnknownOptions("secrets", keyring, ["inbound", "delivery"]);
    addKind(walk, "inbound", keyring.inbound);
    addKind(walk, "delivery", keyring.delivery);
  } else {
    addSet(walk, "secrets", keyring, undefined);
  }
  return walk;
}

const SECRETS = ["inbound", "delivery", "current", "previous", "next", "secret"];

/**
 * In `next build`: the keyring with something else in place of each secret that is not set, so that everything about it is checked
 * except for those. Otherwise the keyring itself.
 */
export function withStandIns(option: string, value: unknown): unknown {
  // Hex digits are valid in every encoding.
  if (isUnsetInBuild(value)) return hash("sha256", option);
  if (Array.isArray(value)) return value.map((secret, index) => withStandIns(`${option}[${index}]`, secret));
  if (!isRecord(value)) return value;
  const filled = Object.entries(value).map(([name, secret]) => {
    const isAbsent = secret === undefined && (name === "previous" || name === "next");
    return [name, isAbsent || !SECRETS.includes(name) ? secret : withStandIns(`${option}.${name}`, secret)];
  });
  return Object.fromEntries(filled);
}

/** The service sends outbound events to the delivery target and inbound ones to the inbound target (DLV-1). */
function addKind(walk: Walk, kind: "inbound" | "delivery", value: unknown): void {
  const option = `secrets.${kind}`;
  const direction = kind === "inbound" ? "inbound" : "outbound";
  if (value === undefined || value === null) {
    throw invalidOption(
      option,
      `is missing: give its secret, or "${UNSIGNED}" to accept that kind from anyone`,
      value,
      "invalid_secret",
    );
  }
  if (value !== UNSIGNED) {
    addSet(walk, option, value, direction);
    return;
  }
  walk.unsigned.add(direction);
  walk.warnings.push(`Option "${option}" is "${UNSIGNED}": whoever knows the URL can forge ${direction} events.`);
}

function addSet(walk: Walk, option: string, value: unknown, direction: Direction | undefined): void {
  if (Array.isArray(value)) throw bareList(option);
  if (!isRecord(value) || "secret" in value) {
    addSecret(walk, { option, slot: "current", index: 0, direction }, value);
    return;
  }
  // Whoever misspells a kind meant one of these; one that is spelled right does not come here.
  const kinds = direction === undefined ? ["inbound", "delivery"] : [];
  refuseUnknownOptions(option, value, ["current", "previous", "next", ...kinds]);
  const before = walk.entries.length;
  addSlot(walk, { option: `${option}.current`, slot: "current", direction }, value.current);
  if (value.previous !== undefined) {
    addSlot(walk, { option: `${option}.previous`, slot: "previous", direction }, value.previous);
  }
  if (value.next !== undefined) addSlot(walk, { option: `${option}.next`, slot: "next", direction }, value.next);
  // An empty list is right while a first rotation is under way: there is a next secret, and none in use yet.
  if (walk.entries.slice(before).every(({ grant }) => grant.slot === "previous")) throw emptyCurrent(option);
}

function bareList(option: string): SetupError {
  const fix =
    "several secrets that are in use go into { current: [...] }, one that was replaced into { current, previous }";
  return new SetupError("invalid_secret", `Option "${option}" is a list: ${fix}.`, { fields: { option } });
}

function emptyCurrent(option: string): SetupError {
  const message = `Option "${option}.current" is an empty list: without a secret nothing can be verified.`;
  return new SetupError("invalid_secret", message, { fields: { option: `${option}.current` } });
}

interface Place {
  readonly option: string;
  readonly slot: SignedSlot;
  /** The direction of the kind it is listed under, if any. */
  readonly direction: Direction | undefined;
}

function addSlot(walk: Walk, place: Place, value: unknown): void {
  if (!Array.isArray(value)) {
    addSecret(walk, { ...place, index: 0 }, value);
    return;
  }
  value.forEach((secret: unknown, index) => {
    addSecret(walk, { ...place, option: `${place.option}[${index}]`, index }, secret);
  });
}

function addSecret(walk: Walk, place: Place & { index: number }, value: unknown): void {
  const { option, slot, index } = place;
  const validUntil = slot === "previous" ? previousEnd(walk, option, value) : Number.POSITIVE_INFINITY;
  const secret = checkSecret(option, value, slot === "previous" ? ["validUntil"] : []);
  if (secret.padded)
    walk.warnings.push(`Option "${option}" has white space at an end; it counts as part of the secret.`);
  if (secret.short)
    walk.warnings.push(`Option "${option}" has fewer than ${MIN_SECRET_BYTES} bytes, and can be guessed.`);
  if (validUntil <= walk.now) {
    walk.warnings.push(`Option "${option}" has ended and is ignored; remove it.`);
    return;
  }
  const direction = directionOf(place, secret);
  const scope = scopeName(secret.apiClientId, direction);
  const grant: Grant = { slot, scope, index, direction, apiClientId: secret.apiClientId, validUntil };
  walk.entries.push({ option, bytes: secret.bytes, grant });
}

/** A previous secret that never ends would keep a leaked secret alive, so its end is not optional. */
function previousEnd(walk: Walk, option: string, value: unknown): number {
  const end = isRecord(value) ? value.validUntil : undefined;
  if (end === undefined) {
    const rule = "needs { secret, validUntil }: a previous secret without an end would keep working after it leaked";
    throw invalidOption(option, rule, end, "invalid_secret");
  }
  if (typeof end !== "number" || !Number.isFinite(end) || end < FIRST_PLAUSIBLE_MS) {
    throw invalidOption(`${option}.validUntil`, "must be a time in epoch milliseconds (not seconds)", end);
  }
  if (end - walk.now > LONGEST_PREVIOUS_MS) {
    throw invalidOption(`${option}.validUntil`, "may lie at most 8 days ahead", end);
  }
  return end;
}

function directionOf(place: Place, secret: CheckedSecret): Direction | undefined {
  if (place.direction === undefined || secret.direction === undefined) return place.direction ?? secret.direction;
  if (place.direction === secret.direction) return place.direction;
  throw new SetupError(
    "invalid_secret",
    `Option "${place.option}.direction" is "${secret.direction}", but the keyring it is in covers "${place.direction}" events.`,
    { fields: { option: `${place.option}.direction` } },
  );
}

function scopeName(apiClientId: string | undefined, direction: Direction | undefined): ScopeName {
  if (apiClientId !== undefined) return "client";
  if (direction === undefined) return "any";
  return direction === "inbound" ? "inbound" : "delivery";
}
