/** Validates a keyring and compiles it into the keys that a delivery's signature is tried against. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { SetupError } from "../errors.ts";
import { invalidOption } from "../internal/options.ts";
import type { Grant, Slot } from "./grant.ts";
import { HmacKey } from "./hmac.ts";
import { type FlatKeyring, flattenKeyring, type KeyringEntry } from "./keyring-entries.ts";
import type { Direction, PreviousSecret, Secret } from "./secret.ts";

export type { Grant, ScopeName, Slot } from "./grant.ts";
export type { Direction, PreviousSecret, Secret } from "./secret.ts";

/** The secrets of a webhook kind, or of both: the one in use, the one it replaced, and one installed ahead of its use. */
export interface SecretSet {
  /** May be an empty list while there is a `next`: a first rotation is under way. */
  current: Secret | readonly Secret[];
  previous?: PreviousSecret | readonly PreviousSecret[];
  next?: Secret | readonly Secret[];
}

/** The keyring of one webhook kind; `"dangerouslyUnsigned"` accepts that kind from anyone who knows the URL. */
export type KindKeyring = Secret | SecretSet | "dangerouslyUnsigned";

/** What signs the deliveries of one URL: one set for both kinds, or one for each (RCV-8). At most 8 live secrets in all. */
export type Keyring = Secret | SecretSet | { inbound: KindKeyring; delivery: KindKeyring };

/** Whose word an event rests on: any one of the grants is enough. */
export interface Voucher {
  /** Never empty; current before previous before next. */
  readonly grants: readonly Grant[];
  /** Names the secret: 16 hex digits, equal in every process, that tell no more of it than a captured delivery does; or `unsigned`. */
  readonly signer: string;
}

/** A distinct secret, with every grant under which the keyring lists it. */
export interface CompiledKey extends Voucher {
  readonly hmac: HmacKey;
  /** The last moment of the longest grant, epoch ms; `Infinity` when it has no end. */
  readonly validUntil: number;
  /** True when some grant ends before another: the live ones are then picked per request. */
  readonly mixedValidity: boolean;
}

/** A keyring after validation. */
export interface CompiledKeyring {
  /** Current first, then previous, then next. Empty when every kind is unsigned, or for an unknown tenant. */
  readonly keys: readonly CompiledKey[];
  /** 16 hex digits that name this set of secrets, equal in every process; tells no more of a secret than a captured delivery does. */
  readonly version: string;
  /** The directions that are accepted without a signature. */
  readonly unsigned: ReadonlySet<Direction>;
  /** What is allowed but likely a mistake, or dangerous: to be logged on every start. */
  readonly warnings: readonly string[];
}

/** Each is tried in turn. */
export const MAX_LIVE_SECRETS = 8;
const RANK: Readonly<Record<Slot, number>> = { current: 0, previous: 1, next: 2, unsigned: 3 };

/** The keyring of a tenant that the provider does not know: nothing matches it. */
export const EMPTY_KEYRING: CompiledKeyring = { keys: [], version: "none", unsigned: new Set(), warnings: [] };

/**
 * Validates and compiles a keyring. The value is read once; later changes to it have no effect.
 *
 * @param now epoch ms; a previous secret may end at most 8 days after it, and is left out when it ended before
 * @throws SetupError naming the option that is wrong
 */
export function compileKeyring(keyring: Keyring, now: number): CompiledKeyring {
  const flat = flattenKeyring(keyring, now);
  refuseUnscopedAmongClients(flat.entries);
  return compile(flat);
}

/**
 * The same for the keyring of one tenant among others: each secret must name its API client.
 *
 * @throws SetupError naming the option that is wrong
 */
export function compileTenantKeyring(keyring: Keyring, now: number): CompiledKeyring {
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

/** With several API clients, a secret without a client would let each of them sign for all. */
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

/** Equal bytes are one key, tried once; the places it is listed at are alternatives. */
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
    const stillCurrent = (old: Grant) =>
      grants.some((g) => g.slot === "current" && g.direction === old.direction && g.apiClientId === old.apiClientId);
    if (replaced.some(stillCurrent)) warnings.push("A previous secret equals the current one, so it never ends.");
  }
  return warnings;
}

/** Each key signs its own place in the set, so the digest can be compared but gives nothing to read. */
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
