/** Validates a keyring and compiles it into the keys that a delivery's signature is tried against. */
import { Buffer } from "node:buffer";
import { createHash, hash } from "node:crypto";
import { SetupError } from "../../errors.ts";
import { invalidOption, isRecord, refuseUnknownOptions } from "../../internal/options.ts";
import { isBuilding, isUnsetInBuild } from "../../internal/process.ts";
import { HmacKey } from "../hmac-key.ts";
import type { CompiledKeys, KeyringCompiler, KeyringContext } from "../keyring-provider.ts";
import {
  type CheckedSecret,
  checkSecret,
  type Direction,
  MIN_SECRET_BYTES,
  type PreviousSecret,
  type Secret,
  UNSIGNED,
} from "./secret.ts";

/** The place in the keyring of the secret that vouched for a delivery. */
export type Slot = "current" | "previous" | "next" | "unsigned";

/** What a key is limited to, in words that may be logged: never a client's id. */
export type ScopeName = "any" | "inbound" | "delivery" | "client";

/** One reason to trust a key: its place in the keyring, what it covers, and until when. */
export interface KeyGrant {
  readonly slot: Slot;
  readonly scope: ScopeName;
  /** Position in the slot's list; 0 for a single secret. */
  readonly index: number;
  readonly direction: Direction | undefined;
  readonly apiClientId: string | undefined;
  /** Epoch ms at which the grant ends; `Infinity` for all but previous secrets. */
  readonly validUntil: number;
}

/** The secrets of one webhook kind, or of both: the current one, the one it replaced, and one installed before its use. */
export interface SecretSet {
  /** May be an empty list while there is a `next`, during a first rotation. */
  current: Secret | readonly Secret[];
  previous?: PreviousSecret | readonly PreviousSecret[];
  next?: Secret | readonly Secret[];
}

/** The keyring of one webhook kind; `"dangerouslyUnsigned"` accepts that kind from anyone who knows the URL. */
export type KindKeyring = Secret | SecretSet | "dangerouslyUnsigned";

/** What signs the deliveries of one URL: one set for both kinds, or one for each (RCV-8). At most 8 live secrets in all. */
export type Keyring = Secret | SecretSet | { inbound: KindKeyring; delivery: KindKeyring };

/**
 * Reads the keyring of a tenant; undefined for a tenant it does not know. It has 2 seconds, and must not keep secrets itself: a delivery is
 * refused only by secrets that were read after it came. If the context has a `tenant`, each secret
 * must name its `apiClientId`, and no kind may be unsigned: one tenant could otherwise sign events of another.
 */
export type KeyringProvider = (context: KeyringContext) => Promise<Keyring | undefined> | Keyring | undefined;

/** Who vouches for an event: any one of the grants is enough. */
export interface Voucher {
  /** Never empty; current before previous before next. */
  readonly grants: readonly KeyGrant[];
  /** Names the secret: 16 hex digits, equal in every process, that reveal no more of it than a captured delivery does; or `unsigned`. */
  readonly signer: string;
}

/** A distinct secret, with every grant under which the keyring lists it. */
export interface CompiledKey extends Voucher {
  readonly hmac: HmacKey;
  /** The last moment of the longest grant, epoch ms; `Infinity` when it has no end. */
  readonly validUntil: number;
  /** True when the grants end at different times: the live ones are then selected per request. */
  readonly mixedValidity: boolean;
}

/** A keyring after validation. */
export interface CompiledKeyring extends CompiledKeys {
  /** Current first, then previous, then next. Empty when every kind is unsigned, or for an unknown tenant. */
  readonly keys: readonly CompiledKey[];
  /** 16 hex digits that name this set of secrets, equal in every process; they reveal no more of a secret than a captured delivery does. */
  readonly version: string;
  /** Directions that are accepted without a signature. */
  readonly unsigned: ReadonlySet<Direction>;
}

/** A limit, because each secret is tried in turn. */
export const MAX_LIVE_SECRETS = 8;
const RANK: Readonly<Record<Slot, number>> = { current: 0, previous: 1, next: 2, unsigned: 3 };

const EMPTY_KEYRING: CompiledKeyring = { keys: [], version: "none", unsigned: new Set(), warnings: [] };

/** What a provider of keyrings returns: with a tenant, each secret must name its API client. */
export const providedKeyrings: KeyringCompiler<Keyring, CompiledKeyring> = {
  compile: (keyring, { tenant }, now) => (tenant === undefined ? compileKeyring : compileTenantKeyring)(keyring, now),
  empty: EMPTY_KEYRING,
};

/**
 * Validates and compiles a keyring. The value is read once: later changes have no effect.
 *
 * @param now epoch ms; a previous secret may end at most 8 days later, and is left out if it has ended
 * @throws SetupError naming the option that is wrong
 */
export function compileKeyring(keyring: Keyring, now: number): CompiledKeyring {
  const flat = flattenKeyring(keyring, now);
  refuseUnscopedAmongClients(flat.entries);
  return compile(flat);
}

/**
 * As `compileKeyring()`, for one of several tenants: each secret must name its API client.
 *
 * @throws SetupError naming the option that is wrong
 */
function compileTenantKeyring(keyring: Keyring, now: number): CompiledKeyring {
  const flat = flattenKeyring(keyring, now);
  const unscoped = flat.entries.find(({ grant }) => grant.apiClientId === undefined)?.option;
  const [unsigned] = flat.unsigned;
  if (unscoped === undefined && unsigned === undefined) return compile(flat);
  const message =
    unscoped === undefined
      ? `A tenant's ${unsigned} events are unsigned, and could name any tenant's API client: receive them at a receiver without tenants.`
      : `Option "${unscoped}" of a tenant has no apiClientId, so that it could sign events of other tenants: give { secret, apiClientId }.`;
  throw new SetupError("invalid_secret", message, { fields: { option: unscoped ?? "secrets" } });
}

/**
 * Compiles a keyring that was given as a value. In `next build`, secrets that are not set yet are not checked, and `read`
 * rejects for them (`SetupError`).
 *
 * @throws SetupError naming the option that is wrong
 */
export function fixedKeyring(
  secrets: Keyring,
  now: number,
): { keyring: CompiledKeyring; read: () => CompiledKeyring | Promise<CompiledKeyring> } {
  const keyring = compileKeyring(withStandIns("secrets", secrets) as Keyring, now);
  return { keyring, read: isBuilding() ? async () => compileKeyring(secrets, now) : () => keyring };
}

function compile({ entries, unsigned, warnings }: FlatKeyring): CompiledKeyring {
  const keys = mergeEqualSecrets(entries);
  if (keys.length > MAX_LIVE_SECRETS) {
    throw invalidOption(
      "secrets",
      `may hold at most ${MAX_LIVE_SECRETS} live secrets, because each is tried in turn`,
      keys.length,
    );
  }
  let version: string | undefined;
  return {
    keys,
    unsigned,
    warnings: [...warnings, ...sharingWarnings(keys)],
    get version() {
      version ??= digest(keys, unsigned);
      return version;
    },
  };
}

/** With several API clients, a secret without a client would let each client sign for all. */
function refuseUnscopedAmongClients(entries: readonly KeyringEntry[]): void {
  const clients = new Set(entries.map(({ grant }) => grant.apiClientId).filter((id) => id !== undefined));
  const unscoped = entries.find(({ grant }) => grant.apiClientId === undefined);
  if (clients.size < 2 || unscoped === undefined) return;
  throw new SetupError(
    "invalid_secret",
    `Option "${unscoped.option}" has no apiClientId, while other secrets name ${clients.size} API clients: give each secret its apiClientId, or one client could sign for another.`,
    { fields: { option: unscoped.option } },
  );
}

/** Equal bytes are one key, tried once; its places in the keyring are alternatives. */
function mergeEqualSecrets(entries: readonly KeyringEntry[]): readonly CompiledKey[] {
  const byBytes = new Map<string, KeyringEntry[]>();
  for (const entry of [...entries].sort((a, b) => RANK[a.grant.slot] - RANK[b.grant.slot])) {
    const id = entry.bytes.toString("latin1");
    const same = byBytes.get(id);
    if (same === undefined) byBytes.set(id, [entry]);
    else same.push(entry);
  }
  return [...byBytes.values()].map((same) => {
    const ends = same.map(({ grant }) => grant.validUntil);
    const hmac = new HmacKey(same[0]?.bytes ?? new Uint8Array());
    return {
      hmac,
      signer: hmac.digest("oncehook signer", new Uint8Array()).toString("hex").slice(0, 16),
      grants: same.map(({ grant }) => grant),
      validUntil: Math.max(...ends),
      mixedValidity: Math.min(...ends) !== Math.max(...ends),
    };
  });
}

function sharingWarnings(keys: readonly CompiledKey[]): readonly string[] {
  const warnings: string[] = [];
  for (const { grants } of keys) {
    const clients = new Set(grants.map((grant) => grant.apiClientId));
    if (clients.size > 1) warnings.push("Two API clients share one secret: each can sign for the other.");
    const replaced = grants.filter((grant) => grant.slot === "previous");
    const stillCurrent = (old: KeyGrant) =>
      grants.some((g) => g.slot === "current" && g.direction === old.direction && g.apiClientId === old.apiClientId);
    if (replaced.some(stillCurrent)) warnings.push("A previous secret equals the current one, so it never ends.");
  }
  return warnings;
}

/** Each key signs its own place in the set, so the digest can be compared but reveals nothing. */
function digest(keys: readonly CompiledKey[], unsigned: ReadonlySet<Direction>): string {
  const nothing = Buffer.alloc(0);
  const lines = keys.map(({ hmac, grants }) =>
    hmac.digest(JSON.stringify(["oncehook keyring", grants]), nothing).toString("hex"),
  );
  return createHash("sha256")
    .update([...lines, ...[...unsigned].sort()].join("\n"))
    .digest("hex")
    .slice(0, 16);
}

/** One listed secret. */
interface KeyringEntry {
  /** Name of the option it came from. */
  readonly option: string;
  readonly bytes: Buffer;
  readonly grant: KeyGrant;
}

/** A keyring of any shape as a flat list. */
interface FlatKeyring {
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

/** How far ahead the end of a previous secret may be. */
export const LONGEST_PREVIOUS_MS = 8 * 86_400_000;
/** A smaller number is a time before 2001, or seconds instead of milliseconds. */
const FIRST_PLAUSIBLE_MS = 1e12;

/** @throws SetupError naming the option that is wrong */
function flattenKeyring(keyring: unknown, now: number): FlatKeyring {
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
 * In `next build`: replaces each secret that is not set with a stand-in, so that the rest of the keyring is
 * checked. Otherwise returns the keyring itself.
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
  walk.warnings.push(`Option "${option}" is "${UNSIGNED}": anyone who knows the URL can forge ${direction} events.`);
}

function addSet(walk: Walk, option: string, value: unknown, direction: Direction | undefined): void {
  if (Array.isArray(value)) throw bareList(option);
  if (!isRecord(value) || "secret" in value) {
    addSecret(walk, { option, slot: "current", index: 0, direction }, value);
    return;
  }
  // Suggests the kinds too, for a misspelled one; a correct one does not get here.
  const kinds = direction === undefined ? ["inbound", "delivery"] : [];
  refuseUnknownOptions(option, value, ["current", "previous", "next", ...kinds]);
  const before = walk.entries.length;
  addSlot(walk, { option: `${option}.current`, slot: "current", direction }, value.current);
  if (value.previous !== undefined) {
    addSlot(walk, { option: `${option}.previous`, slot: "previous", direction }, value.previous);
  }
  if (value.next !== undefined) addSlot(walk, { option: `${option}.next`, slot: "next", direction }, value.next);
  // An empty list is correct during a first rotation: there is a next secret, and none is in use yet.
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
  /** The direction of the kind that lists it, if any. */
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
    walk.warnings.push(`Option "${option}" starts or ends with white space, which is part of the secret.`);
  if (secret.short)
    walk.warnings.push(`Option "${option}" has fewer than ${MIN_SECRET_BYTES} bytes and can be guessed.`);
  if (validUntil <= walk.now) {
    walk.warnings.push(`Option "${option}" has ended and is ignored; remove it.`);
    return;
  }
  const direction = directionOf(place, secret);
  const scope = scopeName(secret.apiClientId, direction);
  const grant: KeyGrant = { slot, scope, index, direction, apiClientId: secret.apiClientId, validUntil };
  walk.entries.push({ option, bytes: secret.bytes, grant });
}

/** A previous secret without an end would keep a leaked secret valid, so the end is required. */
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
