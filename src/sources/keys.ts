/** The secrets of a source: what an application gives, and the keys that signatures are tried against. */
import { Buffer } from "node:buffer";
import { createHash, createHmac, createPublicKey, type KeyObject, timingSafeEqual, verify } from "node:crypto";
import { SetupError } from "../errors.ts";
import { invalidOption, isRecord, refuseUnknownOptions } from "../internal/options.ts";
import { isUnsetInBuild } from "../internal/process.ts";
import { HmacKey } from "./hmac-key.ts";
import { checkSecret, invalidSecret, type PreviousSecret, type Secret, type SecretRules, UNSIGNED } from "./secret.ts";

/** The place in the keyring of the secret that signed a delivery. `unsigned`: no secret did, and its kind is accepted so. */
export type Slot = "current" | "previous" | "next" | "unsigned";

/** The secrets of a source, or of one kind of its events: the current one, the one it replaced, and one installed before its use. */
export interface SecretSet {
  /** May be an empty list while there is a `next`, during a first rotation. */
  current: Secret | readonly Secret[];
  previous?: PreviousSecret | readonly PreviousSecret[];
  next?: Secret | readonly Secret[];
}

/** The keyring of one kind of events; `"dangerouslyUnsigned"` accepts that kind from anyone who knows the URL. */
export type KindKeyring = Secret | SecretSet | "dangerouslyUnsigned";

/**
 * What signs the deliveries of one URL: one set for all kinds of events, or one for each kind that the source has, such as
 * `{ inbound, delivery }` of the messaging service (RCV-8). At most 8 live secrets in all, because each is tried in turn.
 */
export type Keyring = Secret | SecretSet | Readonly<Record<string, KindKeyring>>;

/** What a provider of secrets receives about a request. Nothing in it is verified: `tenant` is what the adapter's option returned. */
export interface KeyringContext {
  readonly route?: string;
  readonly tenant?: string;
}

/**
 * Reads the secrets of a tenant; undefined for a tenant it does not know. It has 2 seconds, and must not keep secrets itself: a delivery is
 * refused only by secrets that were read after it came. If the context has a `tenant`, each secret must say whose it is, `tenant: "acme"`, or
 * that it is for all, `tenant: null`; and no kind may be unsigned. Otherwise the name in a URL would decide whose an event is.
 */
export type KeyringProvider = (context: KeyringContext) => Promise<Keyring | undefined> | Keyring | undefined;

/** One reason to trust a key: its place in the keyring, what it covers, and until when. */
export interface Grant {
  readonly slot: Slot;
  /** Position in the slot's list; 0 for a single secret. */
  readonly index: number;
  /** Null: all. */
  readonly tenant: string | null;
  /** Null: all. */
  readonly kind: string | null;
  /** Epoch ms at which the grant ends; `Infinity` for all but previous secrets. */
  readonly validUntil: number;
}

/** A secret. Its bytes cannot be read. */
export interface Key {
  /** Where it stands first in the keyring. `unsigned` stands for kinds without a signature, and matches nothing. */
  readonly slot: Slot;
  /** The HMAC of the parts, one after the other. Strings are UTF-8. */
  hmac(hash: "sha256" | "sha1", ...parts: readonly (string | Uint8Array)[]): Uint8Array;
  /** Whether it is one of these signatures, compared in constant time. */
  signed(
    signatures: Uint8Array | readonly Uint8Array[],
    hash: "sha256" | "sha1",
    ...parts: readonly (string | Uint8Array)[]
  ): boolean;
  /**
   * Whether it is an Ed25519 signature of the parts, one after the other, by a provider whose public key the secret is. The source's `key`
   * returns the 32 bytes of that key; false for any other number of bytes.
   */
  signedEd25519(signature: Uint8Array, ...parts: readonly (string | Uint8Array)[]): boolean;
}

/** A keyring after validation. */
export interface SourceKeys {
  /** Current first, then previous, next, unsigned. Empty for an unknown tenant. */
  readonly keys: readonly SourceKey[];
  /** 16 hex digits that name this set of secrets, equal in every process; they reveal no more of a secret than a captured delivery does. */
  readonly version: string;
  /** What is allowed but dangerous or probably a mistake, to be logged on every start. */
  readonly warnings: readonly string[];
}

/** The keys of a tenant that the provider does not know: nothing matches them. */
export const NO_KEYS: SourceKeys = { keys: [], version: "none", warnings: [] };

/** The most secrets that are tried in turn. */
export const MAX_LIVE_SECRETS = 8;
/** How far ahead the end of a previous secret may be. */
export const LONGEST_PREVIOUS_MS = 8 * 86_400_000;
/** A smaller number is a time before 2001, or seconds instead of milliseconds. */
const FIRST_PLAUSIBLE_MS = 1e12;
const ED25519_BYTES = 32;
const NOTHING = new Uint8Array();

export class SourceKey implements Key {
  /** Every place at which the keyring lists it. Never empty; current before previous before next. */
  readonly grants: readonly Grant[];
  /** Names the secret: 16 hex digits, equal in every process, that reveal no more of it than a captured delivery does; or `unsigned`. */
  readonly signer: string;
  /** The last moment of its longest grant, epoch milliseconds; `Infinity` without an end. */
  readonly validUntil: number;
  readonly #bytes: Uint8Array;
  readonly #hmac: HmacKey;
  #publicKey: KeyObject | undefined;

  constructor(bytes: Uint8Array, grants: readonly [Grant, ...Grant[]]) {
    this.grants = grants;
    this.validUntil = Math.max(...grants.map(({ validUntil }) => validUntil));
    this.#bytes = bytes;
    this.#hmac = new HmacKey(bytes);
    this.signer = this.isUnsigned ? "unsigned" : this.sign("oncehook signer").slice(0, 16);
  }

  get slot(): Slot {
    return this.grants[0]?.slot ?? "current";
  }

  get isUnsigned(): boolean {
    return this.slot === "unsigned";
  }

  hmac(hash: "sha256" | "sha1", ...parts: readonly (string | Uint8Array)[]): Uint8Array {
    const text = textBeforeLast(parts);
    const last = parts.at(-1);
    if (hash === "sha256" && text !== null && last instanceof Uint8Array) return this.#hmac.digest(text, last);
    const hmac = createHmac(hash, this.#bytes);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  }

  signed(
    signatures: Uint8Array | readonly Uint8Array[],
    hash: "sha256" | "sha1",
    ...parts: readonly (string | Uint8Array)[]
  ): boolean {
    if (this.isUnsigned) return false;
    const expected = this.hmac(hash, ...parts);
    const all = signatures instanceof Uint8Array ? [signatures] : signatures;
    return all.some((one) => one.length === expected.length && timingSafeEqual(one, expected));
  }

  signedEd25519(signature: Uint8Array, ...parts: readonly (string | Uint8Array)[]): boolean {
    if (this.#bytes.length !== ED25519_BYTES) return false;
    this.#publicKey ??= ed25519Key(this.#bytes);
    const message = parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part));
    return verify(null, Buffer.concat(message), this.#publicKey, signature);
  }

  /** A text about the key that can be compared and reveals nothing: hex. */
  sign(text: string): string {
    return this.#hmac.digest(text, NOTHING).toString("hex");
  }
}

function ed25519Key(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes).toString("base64url");
  return createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
}

/** All parts but the last as one text; null if bytes are among them. */
function textBeforeLast(parts: readonly (string | Uint8Array)[]): string | null {
  let text = "";
  for (let index = 0; index < parts.length - 1; index++) {
    const part = parts[index];
    if (typeof part !== "string") return null;
    text += part;
  }
  return text;
}

/** The fields of an event by which a key may be limited. */
export interface Claims {
  /** Undefined: it does not say. */
  readonly tenant?: string | undefined;
  readonly kind?: string | undefined;
}

/**
 * The first live grant under which a key vouches for an event. Null if none does: answer it like a wrong signature. One secret may be the
 * current one of a kind and the previous one of the other; only the event shows which was used (RCV-9).
 */
export function covering(grants: readonly Grant[], claims: Claims, now: number): Grant | null {
  return grants.find((grant) => grant.validUntil > now && covers(grant, claims)) ?? null;
}

/** A limit does not apply to what an event does not say: a future event may have another kind (RCV-11). Without a signature it must. */
function covers({ slot, tenant, kind }: Grant, claims: Claims): boolean {
  if (slot === "unsigned") return claims.kind === kind;
  if (tenant !== null && claims.tenant !== undefined && claims.tenant !== tenant) return false;
  return kind === null || claims.kind === undefined || claims.kind === kind;
}

/** One listed secret. */
interface Listed {
  /** Name of the option it came from. */
  readonly option: string;
  readonly bytes: Uint8Array;
  readonly grant: Grant;
  /** Whether it says whose it is. */
  readonly saysTenant: boolean;
}

/** A keyring of any shape as a flat list. */
interface Walk {
  readonly rules: SecretRules;
  readonly now: number;
  readonly listed: Listed[];
  readonly warnings: string[];
  /** In a build secrets may be absent: the first delivery reports them. Null where they may not. */
  unset: number | null;
}

interface Place {
  readonly option: string;
  readonly slot: Exclude<Slot, "unsigned">;
  readonly index: number;
  /** The kind that lists it, if any. */
  readonly kind: string | null;
}

/**
 * Validates and compiles a keyring.
 *
 * @param context - of the request that it is read for
 * @throws SetupError naming the option that is wrong; it never shows the secret
 */
export function compileKeys(
  keyring: unknown,
  rules: SecretRules,
  now: number,
  { tenant }: KeyringContext = {},
): SourceKeys {
  const walk: Walk = { rules, now, listed: [], warnings: [], unset: null };
  walkKeyring(walk, keyring);
  if (tenant !== undefined) refuseNameless(walk.listed);
  return compiled(walk);
}

/** Compiles a keyring in a build, where secrets that are not set are left out. The others are checked. @throws SetupError */
export function compileInBuild(keyring: unknown, rules: SecretRules, now: number): SourceKeys {
  const walk: Walk = { rules, now, listed: [], warnings: [], unset: 0 };
  walkKeyring(walk, keyring);
  return compiled(walk);
}

function compiled({ listed, warnings }: Walk): SourceKeys {
  refuseNamelessAmongTenants(listed);
  const keys = mergeEqualSecrets(listed);
  const signing = keys.filter(({ isUnsigned }) => !isUnsigned);
  if (signing.length > MAX_LIVE_SECRETS) {
    const rule = `may hold at most ${MAX_LIVE_SECRETS} live secrets, because each is tried in turn`;
    throw invalidOption("secrets", rule, signing.length);
  }
  let version: string | undefined;
  return {
    keys,
    warnings: [...warnings, ...sharingWarnings(signing)],
    get version() {
      version ??= versionOf(keys);
      return version;
    },
  };
}

function walkKeyring(walk: Walk, keyring: unknown): void {
  const { kinds } = walk.rules;
  if (isUnset(walk, keyring)) return;
  if (keyring === undefined || keyring === null)
    throw new SetupError("invalid_secret", 'Option "secrets" is missing: give the webhook signing secret.', {
      fields: { option: "secrets" },
    });
  if (!isRecord(keyring) || !kinds.some((kind) => kind in keyring)) {
    addSet(walk, "secrets", keyring, null);
    return;
  }
  refuseUnknownOptions("secrets", keyring, kinds);
  for (const kind of kinds) if (!(kind in keyring && isUnset(walk, keyring[kind]))) addKind(walk, kind, keyring[kind]);
}

/** Whether a secret may be absent now, and is. */
function isUnset(walk: Walk, value: unknown): boolean {
  if (walk.unset === null || !isUnsetInBuild(value)) return false;
  walk.unset += 1;
  return true;
}

function addKind(walk: Walk, kind: string, value: unknown): void {
  const option = `secrets.${kind}`;
  if (value === undefined || value === null)
    throw invalidOption(
      option,
      `is missing: give its secret, or "${UNSIGNED}" to accept that kind from anyone`,
      value,
      "invalid_secret",
    );
  if (value !== UNSIGNED) {
    addSet(walk, option, value, kind);
    return;
  }
  if (!walk.rules.mayBeUnsigned)
    throw invalidSecret(
      option,
      `is "${UNSIGNED}": an unsigned kind has nothing to verify. Use a secret here; only a receiver takes unsigned kinds`,
    );
  const grant: Grant = { slot: "unsigned", index: 0, tenant: null, kind, validUntil: Number.POSITIVE_INFINITY };
  walk.listed.push({ option, bytes: NOTHING, grant, saysTenant: false });
  walk.warnings.push(`Option "${option}" is "${UNSIGNED}": anyone who knows the URL can forge ${kind} events.`);
}

function addSet(walk: Walk, option: string, value: unknown, kind: string | null): void {
  if (Array.isArray(value)) {
    const fix =
      "several secrets that are in use go into { current: [...] }, one that was replaced into { current, previous }";
    throw invalidSecret(option, `is a list: ${fix}`);
  }
  if (!isRecord(value) || "secret" in value) {
    addSecret(walk, { option, slot: "current", index: 0, kind }, value);
    return;
  }
  // Suggests the kinds too, for a misspelled one; a correct one does not get here.
  refuseUnknownOptions(option, value, ["current", "previous", "next", ...(kind === null ? walk.rules.kinds : [])]);
  // In a build too: a set without this slot is a mistake, and not an absent secret.
  if (!("current" in value)) checkSecret(`${option}.current`, undefined, walk.rules);
  const { current, previous, next } = value;
  const [before, unsetBefore] = [walk.listed.length, walk.unset];
  addSlot(walk, { option: `${option}.current`, slot: "current", kind }, current);
  if (previous !== undefined) addSlot(walk, { option: `${option}.previous`, slot: "previous", kind }, previous);
  if (next !== undefined) addSlot(walk, { option: `${option}.next`, slot: "next", kind }, next);
  // An empty list is correct during a first rotation: there is a next secret, and none is in use yet.
  const isEmpty = walk.listed.slice(before).every(({ grant }) => grant.slot === "previous");
  if (isEmpty && walk.unset === unsetBefore)
    throw invalidSecret(`${option}.current`, "is an empty list: without a secret nothing can be verified");
}

function addSlot(walk: Walk, place: Omit<Place, "index">, value: unknown): void {
  if (!Array.isArray(value)) {
    addSecret(walk, { ...place, index: 0 }, value);
    return;
  }
  value.forEach((secret: unknown, index) => {
    addSecret(walk, { ...place, option: `${place.option}[${index}]`, index }, secret);
  });
}

function addSecret(walk: Walk, { option, slot, index, kind: listedAs }: Place, value: unknown): void {
  if (isUnset(walk, isRecord(value) && "secret" in value ? value.secret : value)) return;
  const validUntil = slot === "previous" ? previousEnd(option, value, walk.now) : Number.POSITIVE_INFINITY;
  const { bytes, tenant, kind, warnings } = checkSecret(
    option,
    value,
    walk.rules,
    slot === "previous" ? ["validUntil"] : [],
  );
  walk.warnings.push(...warnings);
  if (listedAs !== null && kind !== undefined && kind !== listedAs)
    throw invalidSecret(`${option}.kind`, `is "${kind}", but the keyring it is in covers "${listedAs}" events`);
  if (validUntil <= walk.now) {
    walk.warnings.push(`Option "${option}" has ended and is ignored; remove it.`);
    return;
  }
  const grant: Grant = { slot, index, tenant: tenant ?? null, kind: kind ?? listedAs, validUntil };
  walk.listed.push({ option, bytes, grant, saysTenant: tenant !== undefined });
}

/** A previous secret without an end would keep a leaked secret valid, so the end is required. */
function previousEnd(option: string, value: unknown, now: number): number {
  const end = isRecord(value) ? value.validUntil : undefined;
  if (end === undefined) {
    const rule = "needs { secret, validUntil }: a previous secret without an end would keep working after it leaked";
    throw invalidOption(option, rule, end, "invalid_secret");
  }
  if (typeof end !== "number" || !Number.isFinite(end) || end < FIRST_PLAUSIBLE_MS)
    throw invalidOption(`${option}.validUntil`, "must be a time in epoch milliseconds (not seconds)", end);
  if (end - now > LONGEST_PREVIOUS_MS) throw invalidOption(`${option}.validUntil`, "may lie at most 8 days ahead", end);
  return end;
}

/**
 * Of what was read for a tenant: whose events a secret signs must not follow from the name in a request, which nobody proved.
 */
function refuseNameless(listed: readonly Listed[]): void {
  const nameless = listed.find(({ saysTenant }) => !saysTenant);
  if (nameless === undefined) return;
  const { option, grant } = nameless;
  const message =
    grant.slot === "unsigned"
      ? `A tenant's ${grant.kind} events are unsigned, and could be any tenant's: receive them at a receiver without tenants.`
      : `Option "${option}" was read for a tenant, and does not say whose it is: return { secret, tenant: "…" }, named by what your look-up found, or tenant: null if one secret signs for all.`;
  throw new SetupError("invalid_secret", message, { fields: { option } });
}

/** With several tenants, a secret without one would let each sign for all. */
function refuseNamelessAmongTenants(listed: readonly Listed[]): void {
  const tenants = new Set(listed.flatMap(({ grant: { tenant } }) => tenant ?? []));
  const nameless = listed.find(({ grant: { tenant, slot } }) => tenant === null && slot !== "unsigned");
  if (tenants.size < 2 || nameless === undefined) return;
  const { option } = nameless;
  const message = `Option "${option}" has no tenant, while other secrets name ${tenants.size} tenants: give each secret its tenant, or one tenant could sign for another.`;
  throw new SetupError("invalid_secret", message, { fields: { option } });
}

const RANK: Readonly<Record<Slot, number>> = { current: 0, previous: 1, next: 2, unsigned: 3 };

/** Equal bytes are one key, tried once; its places in the keyring are alternatives. */
function mergeEqualSecrets(listed: readonly Listed[]): readonly SourceKey[] {
  const byBytes = new Map<string, { readonly bytes: Uint8Array; readonly grants: [Grant, ...Grant[]] }>();
  for (const { bytes, grant } of [...listed].sort((a, b) => RANK[a.grant.slot] - RANK[b.grant.slot])) {
    const text = Buffer.from(bytes).toString("latin1");
    const same = byBytes.get(text);
    if (same === undefined) byBytes.set(text, { bytes, grants: [grant] });
    else same.grants.push(grant);
  }
  return [...byBytes.values()].map(({ bytes, grants }) => new SourceKey(bytes, grants));
}

function sharingWarnings(keys: readonly SourceKey[]): readonly string[] {
  const warnings: string[] = [];
  for (const { grants } of keys) {
    const tenants = new Set(grants.map(({ tenant }) => tenant));
    if (tenants.size > 1) warnings.push("Two tenants share one secret: each can sign for the other.");
    const isStillCurrent = (old: Grant) =>
      grants.some(({ slot, kind, tenant }) => slot === "current" && kind === old.kind && tenant === old.tenant);
    if (grants.some((grant) => grant.slot === "previous" && isStillCurrent(grant)))
      warnings.push("A previous secret equals the current one, so it never ends.");
  }
  return warnings;
}

/** Each key signs its own place in the set, so the digest can be compared but reveals nothing. */
function versionOf(keys: readonly SourceKey[]): string {
  const lines = keys.map((key) => key.sign(JSON.stringify(["oncehook keyring", key.grants])));
  return createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 16);
}
