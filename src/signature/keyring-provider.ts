/** The contract of keyring providers and sources, and the cache behind an async provider: when it is read, how long a read counts, and what serves when reading fails. */
import { createHash } from "node:crypto";
import { KeyringError, OncehookError } from "../errors.ts";
import type { Clock } from "../internal/clock.ts";
import { placeOf } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import { type CompiledKeyring, compileKeyring, compileTenantKeyring, EMPTY_KEYRING, type Keyring } from "./keyring.ts";

// The contract between whoever needs a keyring and whoever provides it.

/** What a provider is told about a request. Nothing of it is verified: `tenant` is what the adapter's option returned. */
export interface KeyringContext {
  readonly route?: string;
  readonly tenant?: string;
}

/** Only what was given: a provider may look at which keys there are. */
export function keyringContext({
  route,
  tenant,
}: {
  route?: string | undefined;
  tenant?: string | undefined;
}): KeyringContext {
  if (tenant === undefined) return route === undefined ? {} : { route };
  return route === undefined ? { tenant } : { route, tenant };
}

/**
 * Reads the keyring of a tenant; undefined for a tenant it does not know. It has 2 seconds. When it is asked for a `tenant`, each secret
 * must name its `apiClientId`, and no kind may be unsigned: one tenant could otherwise sign events of another.
 */
export type KeyringProvider = (context: KeyringContext) => Promise<Keyring | undefined> | Keyring | undefined;

/** As many requests wait for look-ups of secrets as may. Unlike any other `KeyringError` it says nothing about the provider. */
export class LookUpsCrowded extends KeyringError {
  constructor() {
    super("Too many requests wait for look-ups of secrets. If they are not forged, make the keyring provider faster.");
  }
}

/** What a source needs from outside. */
export interface KeyringSourceDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A read that whoever uses the source repeats while it is at work. */
export interface BackgroundRefresh {
  readonly everyMs: number;
  /** Never rejects: the log tells of a failure. */
  refresh(): Promise<void>;
}

/** Where a receiver gets the keyring of a request from. */
export interface KeyringSource {
  /**
   * The keyring to try first; synchronous when it is at hand. A tenant the provider does not know gets an empty one.
   * Rejects with `KeyringError` when the provider fails and no keyring of the last 10 minutes is at hand, and with
   * `LookUpsCrowded` when too many requests wait already.
   */
  read(context: KeyringContext): CompiledKeyring | Promise<CompiledKeyring>;
  /**
   * After a mismatch: a keyring other than `seen`, or null when there is none or none may be read now (one such read in
   * flight in all, at most one per 10 s and tenant). Rejects with `KeyringError` while the provider fails: nobody can then
   * tell a forgery from a delivery signed with a newer secret; and with `LookUpsCrowded` when too many wait already.
   */
  reread(context: KeyringContext, seen: CompiledKeyring): Promise<CompiledKeyring | null>;
  /** Names the secrets in use, as `CompiledKeyring.version` does; for many tenants, all that are cached. */
  version(): string;
  /** The last read failed, whoever asked for it: what was read before serves for 10 minutes, and then nothing does. */
  readonly isFailing: boolean;
  /** What has to be read again and again although no request asks for it; null when that is nothing. */
  readonly background: BackgroundRefresh | null;
  /** Forgets the keyrings and stops the timers. */
  close(): void;
}

// The cache behind an async keyring: when it is read, how long a read counts, and what serves when reading fails.

/** What the cache holds of one tenant on one route. Times are monotonic milliseconds. */
interface Entry {
  /** Null when no read ever succeeded; the empty keyring when the provider does not know the tenant. */
  keyring: CompiledKeyring | null;
  /** Last successful read. */
  readAt: number;
  /** From here on, a request starts a new read. */
  dueAt: number;
  /** What the last read failed with, or undefined when it succeeded. */
  failure: { readonly cause: unknown } | undefined;
  /** Last read because of a mismatch. */
  rereadAt: number;
}

/** One read of a tenant's keyring under way. */
interface LookUp {
  /** Never rejects. */
  readonly entry: Promise<Entry>;
  /** Requests that have come to wait for it. */
  waiting: number;
}

/** Where unverified requests wait, so that those of one kind take no place from others. */
interface WaitingPlace {
  readonly most: number;
  taken: number;
}

const MAX_TENANTS = 1000;
const READ_TIMEOUT_MS = 2_000;
const REFRESH_MS = 30_000;
/** A keyring that no request refreshed for this long is read before it is used again: it may hold a revoked secret. */
const IDLE_MS = 60_000;
const UNKNOWN_MS = 10_000;
const REREAD_MS = 10_000;
const SERVE_LAST_MS = 600_000;
/** Requests that wait for a tenant's keyring: for one look-up, and for all of tenants that are cached, or of those that are not. */
const MOST_PER_LOOK_UP = 128;
const MOST_WAITING = 512;
/** Requests that wait, with their bodies, to see whether a fresher keyring fits. */
const MOST_MISMATCHED = 128;
/** Look-ups under way at once of tenants that are not cached: anybody can invent names. */
const MOST_STRANGERS = 64;
/** Spares a failing provider; far below the service's first retry after a minute. */
const FAILURE_PAUSE_MS = 5_000;

const CLOSED = "The receiver is closed, and its keyrings with it.";
const UNDECIDED =
  "A signature fits none of the secrets at hand, and the keyring provider, which may know a newer one, fails: such deliveries are answered with 503 until it works again.";

/** Keyrings read from a provider. Reads happen because somebody asks, never by a timer, so an idle process is idle. */
export class ProvidedKeyrings implements KeyringSource {
  readonly #provider: KeyringProvider;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #refreshMs: number;
  readonly #known = new Map<string, Entry>();
  /** Apart from the known tenants, so that a flood of invented names evicts none of them. */
  readonly #unknown = new Map<string, Entry>();
  readonly #lookUps = new Map<string, LookUp>();
  #strangers = 0;
  readonly #forKnown: WaitingPlace = { most: MOST_WAITING, taken: 0 };
  readonly #forStrangers: WaitingPlace = { most: MOST_WAITING, taken: 0 };
  readonly #forFresher: WaitingPlace = { most: MOST_MISMATCHED, taken: 0 };
  #rereading: LookUp | undefined;
  #closed = false;
  #isFailing = false;

  readonly background = null;

  constructor(provider: KeyringProvider, { clock, logger }: KeyringSourceDeps, refreshMs: number = REFRESH_MS) {
    this.#provider = provider;
    this.#clock = clock;
    this.#logger = logger;
    this.#refreshMs = refreshMs;
  }

  read(context: KeyringContext): CompiledKeyring | Promise<CompiledKeyring> {
    if (this.#closed) return Promise.reject(new KeyringError(CLOSED));
    const key = keyOf(context);
    const entry = this.#find(key);
    const now = this.#clock.monotonic();
    if (entry !== undefined && now < entry.dueAt) return serve(entry, now);
    const isKnown = this.#known.has(key);
    if (!isKnown && this.#strangers >= MOST_STRANGERS && !this.#lookUps.has(key)) {
      return Promise.reject(new LookUpsCrowded());
    }
    const lookUp = this.#refresh(key, context);
    if (entry !== undefined && mayServeMeanwhile(entry, now)) return serve(entry, now);
    const place = isKnown ? this.#forKnown : this.#forStrangers;
    return this.#waitFor(lookUp, place).then((read) => serve(read, this.#clock.monotonic()));
  }

  /** Reads again now, or waits for the read under way. Never rejects; a failure is logged, and the last keyring kept. */
  async refresh(context: KeyringContext): Promise<void> {
    if (!this.#closed) await this.#refresh(keyOf(context), context).entry;
  }

  async reread(context: KeyringContext, seen: CompiledKeyring): Promise<CompiledKeyring | null> {
    const fresher = await this.#fresherThan(seen, context);
    if (fresher !== null) return fresher;
    const failure = this.#find(keyOf(context))?.failure;
    if (this.#closed) throw new KeyringError(CLOSED);
    if (failure !== undefined) throw new KeyringError(UNDECIDED, { cause: failure.cause });
    return null;
  }

  async #fresherThan(seen: CompiledKeyring, context: KeyringContext): Promise<CompiledKeyring | null> {
    const key = keyOf(context);
    // Whatever is being read already may bring the fresher keyring; only then is a read of our own worth its place.
    for (const underWay of [() => undefined, () => this.#lookUps.get(key), () => this.#rereading]) {
      const lookUp = underWay();
      if (lookUp !== undefined) await this.#waitFor(lookUp, this.#forFresher);
      const fresher = this.#otherThan(seen, key);
      if (fresher !== null) return fresher;
    }
    const entry = this.#known.get(key);
    const now = this.#clock.monotonic();
    if (entry === undefined || this.#rereading !== undefined || now < entry.rereadAt + REREAD_MS) return null;
    entry.rereadAt = now;
    this.#rereading = this.#refresh(key, context);
    await this.#rereading.entry;
    this.#rereading = undefined;
    return this.#otherThan(seen, key);
  }

  async #waitFor(lookUp: LookUp, place: WaitingPlace): Promise<Entry> {
    if (place.taken >= place.most || lookUp.waiting >= MOST_PER_LOOK_UP) throw new LookUpsCrowded();
    place.taken += 1;
    lookUp.waiting += 1;
    const entry = await lookUp.entry;
    place.taken -= 1;
    return entry;
  }

  version(): string {
    const versions = [...new Set([...this.#known.values()].map(({ keyring }) => keyring?.version ?? "none"))].sort();
    if (versions.length <= 1) return versions[0] ?? "none";
    return createHash("sha256").update(versions.join("\n")).digest("hex").slice(0, 16);
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  close(): void {
    this.#closed = true;
    this.#known.clear();
    this.#unknown.clear();
  }

  #find(key: string): Entry | undefined {
    return this.#known.get(key) ?? this.#unknown.get(key);
  }

  #otherThan(seen: CompiledKeyring, key: string): CompiledKeyring | null {
    const keyring = this.#find(key)?.keyring ?? null;
    return keyring === null || keyring.version === seen.version ? null : keyring;
  }

  /** One read at a time per key. */
  #refresh(key: string, context: KeyringContext): LookUp {
    const started = this.#lookUps.get(key);
    if (started !== undefined) return started;
    const stranger = this.#known.has(key) ? 0 : 1;
    this.#strangers += stranger;
    const entry = this.#readInto(key, context).finally(() => {
      this.#lookUps.delete(key);
      this.#strangers -= stranger;
    });
    const lookUp = { entry, waiting: 0 };
    this.#lookUps.set(key, lookUp);
    return lookUp;
  }

  async #readInto(key: string, context: KeyringContext): Promise<Entry> {
    const entry = this.#find(key) ?? newEntry();
    try {
      const keyring = await this.#ask(context);
      const compile = context.tenant === undefined ? compileKeyring : compileTenantKeyring;
      this.#succeeded(entry, keyring === undefined ? EMPTY_KEYRING : compile(keyring, this.#clock.now()));
    } catch (cause) {
      this.#failed(entry, cause);
    }
    if (!this.#closed) this.#keep(key, entry);
    return entry;
  }

  #succeeded(entry: Entry, keyring: CompiledKeyring): void {
    const now = this.#clock.monotonic();
    if (entry.failure !== undefined) this.#logger.info({}, "The keyring provider works again.");
    if (entry.keyring?.version !== keyring.version) {
      logWarnings(this.#logger, keyring);
      entry.keyring = keyring;
    }
    entry.failure = undefined;
    this.#isFailing = false;
    entry.readAt = now;
    entry.dueAt = now + (keyring === EMPTY_KEYRING ? UNKNOWN_MS : this.#refreshMs);
  }

  #failed(entry: Entry, cause: unknown): void {
    // That a tenant was unknown a while ago is no reason to answer 401 while nobody can tell.
    if (entry.keyring === EMPTY_KEYRING) entry.keyring = null;
    if (entry.failure === undefined) {
      // The provider's own message may hold anything; only our own say nothing secret.
      const reason = cause instanceof OncehookError ? cause.message : "It threw an error.";
      const fields = { code: "keyring_unavailable", servesLast: entry.keyring !== null, ...placeOf(cause) };
      this.#logger.error(fields, `The keyring provider failed. ${reason}`);
    }
    entry.failure = { cause };
    this.#isFailing = true;
    entry.dueAt = this.#clock.monotonic() + Math.min(FAILURE_PAUSE_MS, this.#refreshMs);
  }

  /** Re-inserting keeps the maps in order of their last read, so the first one is the one to evict. */
  #keep(key: string, entry: Entry): void {
    this.#known.delete(key);
    this.#unknown.delete(key);
    const map = entry.keyring === null || entry.keyring === EMPTY_KEYRING ? this.#unknown : this.#known;
    map.set(key, entry);
    const oldest = map.keys().next().value;
    if (map.size > MAX_TENANTS && oldest !== undefined) map.delete(oldest);
  }

  /** The provider's answer within the time limit; an answer that comes later is dropped. */
  #ask(context: KeyringContext): Promise<Keyring | undefined> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimeout(() => {
        reject(new KeyringError(`It did not answer within ${READ_TIMEOUT_MS} ms.`));
      }, READ_TIMEOUT_MS);
      const answer = (async () => this.#provider(context))();
      answer.then(resolve, reject).finally(() => timer.cancel());
    });
  }
}

/** Logs what a keyring allows although it is dangerous or likely a mistake. */
export function logWarnings(logger: Logger, keyring: CompiledKeyring): void {
  for (const warning of keyring.warnings) logger.warn({ code: "keyring_warning" }, warning);
}

function newEntry(): Entry {
  const never = Number.NEGATIVE_INFINITY;
  return { keyring: null, readAt: never, dueAt: never, failure: undefined, rereadAt: never };
}

/** A busy tenant never waits for a refresh, and a failing provider never makes anyone wait. */
function mayServeMeanwhile(entry: Entry, now: number): boolean {
  if (entry.keyring === null || entry.keyring === EMPTY_KEYRING) return false;
  return now < entry.readAt + (entry.failure === undefined ? IDLE_MS : SERVE_LAST_MS);
}

function serve(entry: Entry, now: number): CompiledKeyring | Promise<CompiledKeyring> {
  const { keyring, readAt, failure } = entry;
  if (keyring !== null && (failure === undefined || now < readAt + SERVE_LAST_MS)) return keyring;
  const message =
    "The keyring provider gives no secrets now, and none of the last 10 minutes are at hand: deliveries are answered with 503 until it works again.";
  return Promise.reject(new KeyringError(message, failure === undefined ? {} : { cause: failure.cause }));
}

function keyOf({ route, tenant }: KeyringContext): string {
  return JSON.stringify([route, tenant]);
}
