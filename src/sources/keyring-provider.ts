/** Where the keys of a source come from: a value, or a function that reads them, whose answers are cached. */
import { createHash } from "node:crypto";
import { setMaxListeners } from "node:events";
import { KeyringError, OncehookError } from "../errors.ts";
import { atMost, type Clock, sleep } from "../internal/clock.ts";
import { errorPlaceOf } from "../internal/foreign-error.ts";
import type { Logger } from "../internal/logger.ts";
import { isBuilding } from "../internal/process.ts";
import {
  compileInBuild,
  compileKeys,
  type Keyring,
  type KeyringContext,
  type KeyringProvider,
  NO_KEYS,
  type SourceKeys,
} from "./keys.ts";
import type { SecretRules } from "./secret.ts";

/** Omits the keys that were not given, because a provider may test which keys exist. */
export function keyringContext(request: { route?: string | undefined; tenant?: string | undefined }): KeyringContext {
  const { route, tenant } = request;
  return { ...(route !== undefined && { route }), ...(tenant !== undefined && { tenant }) };
}

/** The limit of requests that wait for secrets is reached. Unlike other instances of `KeyringError`, it says nothing about the provider. */
export class LookUpsCrowded extends KeyringError {
  constructor() {
    super("Too many requests wait for look-ups of secrets. If they are not forged, make the keyring provider faster.");
  }
}

/** What a source is created with. */
export interface KeyringSourceDeps {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A read that the owner of the source repeats while it runs. */
export interface BackgroundRefresh {
  readonly everyMs: number;
  /** Never rejects: a failure is logged. */
  refresh(): Promise<void>;
}

/** Gives a receiver the keyring of a request. */
export interface KeyringSource {
  /**
   * The keyring to try first; synchronous when it is cached. A tenant the provider does not know gets an empty one.
   * Rejects with `KeyringError` when the provider fails and no keyring of the last 10 minutes is cached, and with
   * `LookUpsCrowded` when too many requests already wait.
   */
  read(context: KeyringContext): SourceKeys | Promise<SourceKeys>;
  /**
   * After a mismatch: a keyring other than `seen`, or null once `seen` was read after the request came, which decides that nothing signed
   * it. Otherwise waits for such a read: one per tenant and 2 s, 8 tenants at once. Synchronous when nothing must be read. Rejects with
   * `KeyringError` while the provider fails, because a forgery then looks like a delivery signed with a newer secret, and with
   * `LookUpsCrowded` when too many requests already wait. The read takes place then too.
   *
   * @param cameAt - when the request came, monotonic milliseconds
   */
  reread(context: KeyringContext, seen: SourceKeys, cameAt: number): SourceKeys | null | Promise<SourceKeys | null>;
  /** Names the secrets in use, as `SourceKeys.version` does; for many tenants, all that are cached. */
  version(): string;
  /** True when the last read failed, for any tenant. Earlier keyrings are served for 10 minutes, then none. */
  readonly isFailing: boolean;
  /** A read to repeat although no request asks for it; null when there is none. */
  readonly background: BackgroundRefresh | null;
  /** The keys, if the secrets were given as a value. */
  readonly given: SourceKeys | null;
  /** Whether `text` is one of the secrets, as far as that is known without reading any. */
  holds(text: string): boolean;
  /** Forgets the keyrings and stops the timers. */
  close(): void;
}

/** Whether `text` is in a keyring that was given as a value. White space around it, as files end with, makes no other secret. */
function holdsText(keyring: unknown, text: string): boolean {
  if (typeof keyring === "string") return keyring.trim() === text.trim();
  if (typeof keyring !== "object" || keyring === null) return false;
  return Object.values(keyring).some((part) => holdsText(part, text));
}

/** The cached keyring of one tenant on one route. Times are monotonic milliseconds. */
interface Entry {
  /** Null when no read ever succeeded; the empty keyring when the provider does not know the tenant. */
  keyring: SourceKeys | null;
  /** When the last successful read began. It decides about requests that came before. */
  readAt: number;
  /** From this time on, a request starts a new read. */
  dueAt: number;
  /** The error of the last read, or undefined when it succeeded. */
  failure: { readonly cause: unknown } | undefined;
}

/** A read of a tenant's keyring in progress. */
interface LookUp {
  /** Never rejects. */
  readonly entry: Promise<Entry>;
  /** Requests that waited for it so far. */
  waiting: number;
}

/** A limit of waiting requests, one for each kind, so that one kind of unverified request cannot block the others. */
interface Queue {
  readonly most: number;
  /** How many can wait for a look-up although the queue is full of requests that wait for others. */
  readonly each: number;
  waiting: number;
}

/** A read after a mismatch that has not begun: too soon after the last one, or behind those of other tenants. */
interface Planned extends LookUp {
  /** To be called at the end of the tenant's next read, whatever started it. */
  readonly done: (entry: Entry) => void;
}

/** Reads after mismatches, for tenants that are known or for names that may be invented. */
interface Rereads {
  readonly queue: Queue;
  running: number;
  /** Starts the planned reads, the oldest first. */
  readonly next: (() => void)[];
}

const MAX_TENANTS = 1000;
const READ_TIMEOUT_MS = 2_000;
const REFRESH_MS = 30_000;
/** A keyring that was not refreshed for this long is read before it is used again, because it may contain a revoked secret. */
const IDLE_MS = 60_000;
const UNKNOWN_MS = 10_000;
/** Reads of a tenant after mismatches begin this far apart at least. */
const REREAD_MS = 2_000;
const MOST_REREADS = 8;
/** How long a request waits for its tenant's turn. Senders wait for an answer for 3 to 30 s. */
const LONGEST_WAIT_MS = 5_000;
const SERVE_LAST_MS = 600_000;
/** The most requests that wait for one look-up, and for all look-ups of cached tenants or of uncached ones. */
const MOST_PER_LOOK_UP = 128;
const MOST_WAITING = 512;
/** The most requests that wait, with their bodies, for a fresher keyring, and how many of each tenant always can: forgeries for others do not take their places. */
const MOST_MISMATCHED = 128;
const EACH_MISMATCHED = 4;
/** The most look-ups in progress for uncached tenants: anyone can invent names. */
const MOST_UNCACHED = 64;
/** Gives a failing provider a pause, far shorter than the service's first retry after a minute. */
const FAILURE_PAUSE_MS = 5_000;

const CLOSED = "The receiver is closed, and so are its keyrings.";
const UNDECIDED =
  "A signature matches none of the cached secrets, and the keyring provider, which may know a newer one, fails: such deliveries get 503 until it works again.";

/** The keyrings of a provider. Requests trigger reads, never a timer, so an idle process stays idle. */
export class ProvidedKeyrings implements KeyringSource {
  readonly #provider: KeyringProvider;
  readonly #rules: SecretRules;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #refreshMs: number;
  readonly #known = new Map<string, Entry>();
  /** Separate from the known tenants, so that a flood of invented names evicts none of them. */
  readonly #unknown = new Map<string, Entry>();
  readonly #lookUps = new Map<string, LookUp>();
  #uncachedLookUps = 0;
  readonly #planned = new Map<string, Planned>();
  readonly #forKnown = newQueue(MOST_WAITING);
  readonly #forUncached = newQueue(MOST_WAITING);
  readonly #knownRereads: Rereads = { queue: newQueue(MOST_MISMATCHED, EACH_MISMATCHED), running: 0, next: [] };
  readonly #uncachedRereads: Rereads = { queue: newQueue(MOST_MISMATCHED), running: 0, next: [] };
  readonly #closing = new AbortController();
  #isFailing = false;

  readonly background = null;

  constructor(
    provider: KeyringProvider,
    rules: SecretRules,
    { clock, logger }: KeyringSourceDeps,
    refreshMs: number = REFRESH_MS,
  ) {
    this.#provider = provider;
    this.#rules = rules;
    this.#clock = clock;
    this.#logger = logger;
    this.#refreshMs = refreshMs;
    // Each tenant that waits to be read again adds a listener.
    setMaxListeners(0, this.#closing.signal);
  }

  read(context: KeyringContext): SourceKeys | Promise<SourceKeys> {
    if (this.#isClosed) return Promise.reject(new KeyringError(CLOSED));
    const key = keyOf(context);
    const entry = this.#find(key);
    const now = this.#clock.monotonic();
    if (entry !== undefined && now < entry.dueAt) return serve(entry, now);
    const isKnown = this.#known.has(key);
    if (!isKnown && this.#uncachedLookUps >= MOST_UNCACHED && !this.#lookUps.has(key)) {
      return Promise.reject(new LookUpsCrowded());
    }
    const lookUp = this.#refresh(key, context);
    if (entry !== undefined && this.#mayServeMeanwhile(entry, now)) return serve(entry, now);
    const queue = isKnown ? this.#forKnown : this.#forUncached;
    return this.#waitFor(lookUp, queue, () => lookUp.entry).then((read) => serve(read, this.#clock.monotonic()));
  }

  /** Reads again now, or waits for the read in progress. Never rejects: a failure is logged and the last keyring kept. */
  async refresh(context: KeyringContext): Promise<void> {
    if (!this.#isClosed) await this.#refresh(keyOf(context), context).entry;
  }

  reread(context: KeyringContext, seen: SourceKeys, cameAt: number): SourceKeys | null | Promise<SourceKeys | null> {
    const key = keyOf(context);
    const fresher = fresherThan(seen, this.#find(key), cameAt);
    return fresher === undefined ? this.#waitForFresher(key, context, seen, cameAt) : fresher;
  }

  async #waitForFresher(
    key: string,
    context: KeyringContext,
    seen: SourceKeys,
    cameAt: number,
  ): Promise<SourceKeys | null> {
    const endsAt = this.#clock.monotonic() + LONGEST_WAIT_MS;
    for (;;) {
      if (this.#isClosed) throw new KeyringError(CLOSED);
      const entry = this.#find(key);
      const fresher = fresherThan(seen, entry, cameAt);
      if (fresher !== undefined) return fresher;
      const now = this.#clock.monotonic();
      if (entry?.failure !== undefined && now < entry.dueAt)
        throw new KeyringError(UNDECIDED, { cause: entry.failure.cause });
      if (now >= endsAt) throw new LookUpsCrowded();
      const rereads = this.#known.has(key) ? this.#knownRereads : this.#uncachedRereads;
      const lookUp = this.#nextRead(key, context, rereads);
      await this.#waitFor(lookUp, rereads.queue, () => atMost(this.#clock, endsAt - now, lookUp.entry));
    }
  }

  /** A tenant's next read, or one in progress, which may bring the fresher keyring. */
  #nextRead(key: string, context: KeyringContext, rereads: Rereads): LookUp {
    const before = this.#lookUps.get(key) ?? this.#planned.get(key);
    if (before !== undefined) return before;
    let done: Planned["done"] = () => {};
    const entry = new Promise<Entry>((resolve) => {
      done = resolve;
    });
    const planned: Planned = { entry, waiting: 0, done };
    this.#planned.set(key, planned);
    void this.#readInTurn(key, context, rereads);
    return this.#lookUps.get(key) ?? planned;
  }

  async #readInTurn(key: string, context: KeyringContext, rereads: Rereads): Promise<void> {
    const planned = this.#planned.get(key);
    const soonestAt = (this.#find(key)?.readAt ?? Number.NEGATIVE_INFINITY) + REREAD_MS;
    const waitMs = soonestAt - this.#clock.monotonic();
    if (waitMs > 0) await sleep(this.#clock, waitMs, this.#closing.signal);
    if (rereads.running >= MOST_REREADS) await new Promise<void>((resolve) => rereads.next.push(resolve));
    else rereads.running += 1;
    // Meanwhile another reason may have led to a read.
    if (this.#planned.get(key) === planned) await this.#refresh(key, context).entry;
    const next = rereads.next.shift();
    if (next === undefined) rereads.running -= 1;
    else next();
  }

  async #waitFor<T>(lookUp: LookUp, queue: Queue, wait: () => Promise<T>): Promise<T> {
    const most = queue.waiting < queue.most ? MOST_PER_LOOK_UP : queue.each;
    if (lookUp.waiting >= most) throw new LookUpsCrowded();
    queue.waiting += 1;
    lookUp.waiting += 1;
    const result = await wait();
    queue.waiting -= 1;
    return result;
  }

  version(): string {
    const versions = [...new Set([...this.#known.values()].map(({ keyring }) => keyring?.version ?? "none"))].sort();
    if (versions.length <= 1) return versions[0] ?? "none";
    return createHash("sha256").update(versions.join("\n")).digest("hex").slice(0, 16);
  }

  get isFailing(): boolean {
    return this.#isFailing;
  }

  /** Its secrets are read when the first request needs them. */
  readonly given = null;

  holds(): boolean {
    return false;
  }

  close(): void {
    this.#closing.abort();
    this.#known.clear();
    this.#unknown.clear();
    this.#endPlans([...this.#planned.keys()], newEntry());
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #find(key: string): Entry | undefined {
    return this.#known.get(key) ?? this.#unknown.get(key);
  }

  /** One read at a time per key. */
  #refresh(key: string, context: KeyringContext): LookUp {
    const started = this.#lookUps.get(key);
    if (started !== undefined) return started;
    const uncached = this.#known.has(key) ? 0 : 1;
    this.#uncachedLookUps += uncached;
    const entry = this.#readInto(key, context).then((read) => {
      this.#lookUps.delete(key);
      this.#uncachedLookUps -= uncached;
      this.#endPlans([key], read);
      return read;
    });
    const lookUp = { entry, waiting: 0 };
    this.#lookUps.set(key, lookUp);
    return lookUp;
  }

  #endPlans(keys: readonly string[], entry: Entry): void {
    for (const key of keys) {
      this.#planned.get(key)?.done(entry);
      this.#planned.delete(key);
    }
  }

  async #readInto(key: string, context: KeyringContext): Promise<Entry> {
    const entry = this.#find(key) ?? newEntry();
    const beganAt = this.#clock.monotonic();
    try {
      const secrets = await this.#ask(context);
      const now = this.#clock.now();
      this.#succeeded(
        entry,
        secrets === undefined ? NO_KEYS : compileKeys(secrets, this.#rules, now, context),
        beganAt,
      );
    } catch (cause) {
      this.#failed(entry, cause);
    }
    if (!this.#isClosed) this.#keep(key, entry);
    return entry;
  }

  #succeeded(entry: Entry, keyring: SourceKeys, beganAt: number): void {
    if (entry.failure !== undefined) this.#logger.info({}, "The keyring provider works again.");
    if (entry.keyring?.version !== keyring.version) {
      logWarnings(this.#logger, keyring);
      entry.keyring = keyring;
    }
    entry.failure = undefined;
    this.#isFailing = false;
    entry.readAt = beganAt;
    entry.dueAt = this.#clock.monotonic() + (keyring === NO_KEYS ? UNKNOWN_MS : this.#refreshMs);
  }

  #failed(entry: Entry, cause: unknown): void {
    // A tenant that was unknown some time ago may be known now: do not answer 401 while the provider fails.
    if (entry.keyring === NO_KEYS) entry.keyring = null;
    if (entry.failure === undefined) {
      // The provider's own message may contain anything; only our own are known to be free of secrets.
      const reason = cause instanceof OncehookError ? cause.message : "It threw an error.";
      const fields = { code: "keyring_unavailable", servesLast: entry.keyring !== null, ...errorPlaceOf(cause) };
      this.#logger.error(fields, `The keyring provider failed. ${reason}`);
    }
    entry.failure = { cause };
    this.#isFailing = true;
    entry.dueAt = this.#clock.monotonic() + Math.min(FAILURE_PAUSE_MS, this.#refreshMs);
  }

  /** Re-inserting keeps the maps in the order of their last reads, so the first entry is the one to evict. */
  #keep(key: string, entry: Entry): void {
    this.#known.delete(key);
    this.#unknown.delete(key);
    const map = entry.keyring === null || entry.keyring === NO_KEYS ? this.#unknown : this.#known;
    map.set(key, entry);
    const oldest = map.keys().next().value;
    if (map.size > MAX_TENANTS && oldest !== undefined) map.delete(oldest);
  }

  /** A busy tenant never waits for a refresh, and a failing provider never makes a request wait. */
  #mayServeMeanwhile({ keyring, readAt, failure }: Entry, now: number): boolean {
    if (keyring === null || keyring === NO_KEYS) return false;
    return now < readAt + (failure === undefined ? IDLE_MS : SERVE_LAST_MS);
  }

  /** Calls the provider with a time limit; a later answer is dropped. */
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

/** Where the keys of a source come from: a value, which is compiled at once, or a function. @throws SetupError */
export function keyringsFrom(
  secrets: Keyring | KeyringProvider,
  rules: SecretRules,
  deps: KeyringSourceDeps,
): KeyringSource {
  if (typeof secrets === "function") return new ProvidedKeyrings(secrets, rules, deps);
  const now = deps.clock.now();
  const keys = isBuilding() ? compileInBuild(secrets, rules, now) : compileKeys(secrets, rules, now);
  logWarnings(deps.logger, keys);
  return {
    // In a build secrets may be absent: the first delivery reports them.
    read: isBuilding() ? async () => compileKeys(secrets, rules, now) : () => keys,
    reread: () => null,
    version: () => keys.version,
    isFailing: false,
    background: null,
    given: keys,
    holds: (text) => holdsText(secrets, text),
    close: () => {},
  };
}

/** Logs what a keyring allows although it is dangerous or probably a mistake. */
function logWarnings(logger: Logger, keyring: SourceKeys): void {
  for (const warning of keyring.warnings) logger.warn({ code: "keyring_warning" }, warning);
}

function newEntry(): Entry {
  const never = Number.NEGATIVE_INFINITY;
  return { keyring: null, readAt: never, dueAt: never, failure: undefined };
}

function newQueue(most: number, each = 0): Queue {
  return { most, each, waiting: 0 };
}

/** A keyring other than `seen`; null if `seen` is what was read after `cameAt`; undefined if neither is known yet. */
function fresherThan(seen: SourceKeys, entry: Entry | undefined, cameAt: number): SourceKeys | null | undefined {
  if (entry === undefined || entry.keyring === null) return undefined;
  if (entry.keyring.version !== seen.version) return entry.keyring;
  return entry.readAt >= cameAt ? null : undefined;
}

function serve(entry: Entry, now: number): SourceKeys | Promise<SourceKeys> {
  const { keyring, readAt, failure } = entry;
  if (keyring !== null && (failure === undefined || now < readAt + SERVE_LAST_MS)) return keyring;
  const message =
    "The keyring provider returns no secrets now, and none of the last 10 minutes are cached: deliveries get 503 until it works again.";
  return Promise.reject(new KeyringError(message, failure === undefined ? {} : { cause: failure.cause }));
}

function keyOf({ route, tenant }: KeyringContext): string {
  return JSON.stringify([route, tenant]);
}
