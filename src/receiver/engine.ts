/** One open inbox at work: its store, group commit, worker and housekeeping, without HTTP and without signatures. */
import { StoreError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import { Announcer, GapLog, Waiters } from "../inbox/completion.ts";
import type { DrainOptions, DrainResult } from "../inbox/drain.ts";
import { Batcher } from "../inbox/group-commit.ts";
import { type HandlerRegistry, Runner } from "../inbox/handlers.ts";
import { EventLog, type Instruments, measuredSteps } from "../inbox/instrumentation.ts";
import type { EventId, LaneId, NewEvent, NewQuarantine } from "../inbox/record.ts";
import type { Acceptance, Effect, QuarantineAnswer, Turn } from "../inbox/store.ts";
import { Worker } from "../inbox/worker.ts";
import { atMost, type Timer } from "../internal/clock.ts";
import { thisInstance } from "../internal/process.ts";
import type { ResolvedOptions } from "./options.ts";
import { identityKey } from "./to-inbox-event.ts";
import { Housekeeping, type KeyringUse } from "./upkeep.ts";

/** Deliveries in one transaction, their bytes, and how many may wait for one. */
const BATCH = { maxEvents: 256, maxBytes: 4 * 1024 * 1024, maxQueued: 4_096 } as const;
const QUARANTINE_QUOTA = { maxRows: 1_000, maxBytes: 64 * 1024 * 1024 } as const;

/** Milliseconds for an open under way, and for the last heartbeat and the store's end together. */
const LEAVE_MS = 5_000;
/** Any time will do: the timer is there to be there. */
const HOLD_MS = 86_400_000;
/** Who is taken out of service for it gets no delivery that could prove it wrong: then one is tried again. */
const FAILURE_COUNTS_MS = 30_000;

/** An event that could not be stored rejects instead. */
export type StoredAcceptance = Exclude<Acceptance, { outcome: "failed" }>;

/** What a reload in development replaces. */
export interface InUse<Tx> {
  readonly registry: HandlerRegistry<Tx>;
  readonly keyrings: KeyringUse;
  readonly instruments: Instruments;
}

export class Engine<Tx> {
  readonly options: ResolvedOptions<Tx>;
  readonly worker: Worker<Tx>;
  readonly waiters = new Waiters();
  readonly #batcher: Batcher<Tx>;
  readonly #identities = new CommittedIdentities();
  readonly #housekeeping: Housekeeping;
  readonly #announcer: Announcer;
  readonly #gaps: GapLog;
  readonly #events: EventLog | null;
  #inUse: InUse<Tx>;
  /** It takes nothing any more. */
  #isClosed = false;
  /** Its own open succeeded, and is not undone. */
  #isOpen = false;
  /** The store is let go: an open that ends only now is undone. */
  #hasLeft = false;
  #opening: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  #hold: Timer | null = null;
  /** Monotonic; null once a delivery is stored. */
  #acceptFailedAt: number | null = null;
  #warnedAboutLate = false;

  constructor(options: ResolvedOptions<Tx>, inUse: InUse<Tx>) {
    const { store, clock, logger, random, concurrency, leaseMs, maxAttempts, onDead, handlerTimeoutMs } = options;
    this.options = options;
    this.#inUse = inUse;
    const transactional = store.capabilities.transactional;
    const instruments = () => this.#inUse.instruments;
    const registry = () => this.#inUse.registry;
    const checkEffect = (effect: Effect<Tx>) => store.checkEffect?.(effect);
    const runner = new Runner<Tx>({
      registry,
      instruments,
      clock,
      logger,
      transactional,
      checkEffect,
      handlerTimeoutMs,
    });
    const isShared = store.capabilities.shared;
    const { firstSequence } = options;
    this.#events = options.logEvents ? new EventLog(logger) : null;
    this.#gaps = new GapLog({ store, clock, logger, firstSequence });
    const { waiters } = this;
    this.#announcer = new Announcer({ hooks: () => registry().hooks, waiters, gaps: this.#gaps, logger, isShared });
    this.worker = new Worker(
      store,
      runner,
      { concurrency, leaseMs, maxAttempts, onDead, clock, random, logger },
      this.#announcer,
    );
    this.#batcher = new Batcher(measuredSteps(store, clock, instruments), clock, this.worker, {
      ...BATCH,
      quarantineQuota: QUARANTINE_QUOTA,
      lateEvents: () => this.lateEvents,
    });
    this.worker.connect(this.#batcher);
    this.#housekeeping = new Housekeeping(options, this.worker, inUse.keyrings);
  }

  /** `stop()` was called; deliveries may still be accepted. */
  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  /** Its inbox is open, or is being opened. */
  get isInUse(): boolean {
    return this.#opening !== null;
  }

  /** What becomes of an event below its cursor. */
  get lateEvents(): Turn<Tx>["lateEvents"] {
    return this.#inUse.registry.takesLate ? "hand_out" : "record";
  }

  /** Something is due, and no worker has run for a minute. */
  isWorkLeft(): Promise<boolean> {
    return this.#housekeeping.isWorkLeft();
  }

  /** The last delivery that was to be stored was not, within half a minute. */
  get isFailingToStore(): boolean {
    const failedAt = this.#acceptFailedAt;
    return failedAt !== null && this.options.clock.monotonic() - failedAt < FAILURE_COUNTS_MS;
  }

  get counters(): Housekeeping["counters"] {
    return this.#housekeeping.counters;
  }

  /** Which secrets are in use. */
  get keyrings(): KeyringUse {
    return this.#inUse.keyrings;
  }

  /** Who watches. */
  get instruments(): Instruments {
    return this.#inUse.instruments;
  }

  /** Other handlers, secrets and instruments take over, as after a reload in development. */
  use(inUse: InUse<Tx>): void {
    inUse.registry.freeze();
    this.#inUse = inUse;
    this.#housekeeping.use(inUse.keyrings);
  }

  /** Opens the store once; a failure is forgotten, so that the next delivery tries again. */
  open(): Promise<void> {
    if (this.#isClosed) {
      return Promise.reject(stopped());
    }
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  async start(): Promise<void> {
    this.#inUse.registry.requireHandlers();
    this.#inUse.registry.freeze();
    await this.open();
    if (this.isStopping) throw stopped();
    if (this.worker.isStarted) return;
    this.#warnAboutLateOnce();
    this.worker.start();
    this.#holdProcess();
    this.#housekeeping.workerRan();
  }

  async drain(options: DrainOptions): Promise<DrainResult> {
    const deadline = this.options.clock.monotonic() + (options.budgetMs ?? Number.POSITIVE_INFINITY);
    this.#inUse.registry.requireHandlers();
    this.#inUse.registry.freeze();
    await this.open();
    // Deliveries are still taken then, and wait for the next process.
    if (this.isStopping) return { claimed: 0, complete: false };
    this.#warnAboutLateOnce();
    const result = await this.#housekeeping.whileDraining(this.worker.drain(options));
    await this.#gaps.flush();
    await this.#housekeeping.pruneSome(deadline);
    return result;
  }

  /** Stops claiming, lets handlers end, keeps accepting until `until` is settled, then closes the store; once, however often it is called. */
  stop(timeoutMs: number, until: PromiseLike<unknown> = Promise.resolve()): Promise<void> {
    // A server that failed to close takes no deliveries either. Caught here, since it may reject before it is waited for.
    this.#stopping ??= this.#stop(
      timeoutMs,
      Promise.resolve(until).catch(() => {}),
    );
    return this.#stopping;
  }

  async #stop(timeoutMs: number, until: Promise<unknown>): Promise<void> {
    this.#hold?.cancel();
    const { clock } = this.options;
    const deadline = clock.monotonic() + timeoutMs;
    await this.worker.stop(timeoutMs);
    await until;
    this.#isClosed = true;
    // What has begun to open is closed below.
    await atMost(clock, LEAVE_MS, this.#opening?.catch(() => {}) ?? Promise.resolve());
    // Deliveries with `ack: "handled"` may have started handlers meanwhile.
    await this.worker.stop(Math.max(0, deadline - clock.monotonic()));
    await this.#batcher.close();
    await atMost(clock, LEAVE_MS, this.#leave());
  }

  async #leave(): Promise<void> {
    this.#hasLeft = true;
    this.#gaps.close();
    await this.#housekeeping.stop();
    // Otherwise another receiver may have it open, which was why this one could not.
    if (this.#isOpen) await this.options.store.close();
  }

  accept(event: NewEvent, parsed: WebhookEvent): Promise<StoredAcceptance> {
    this.#inUse.registry.freeze();
    const key = identityKey(event);
    const known = this.#identities.find(key, event.digest);
    if (known !== null) {
      this.#batcher.repeat({ event: known.event, count: 1, signedAt: event.signedAt });
      this.#events?.accepted(event, known.event, "duplicate");
      return Promise.resolve(repeatOf(known, event.signedAt));
    }
    return new Promise((resolve, reject) => {
      this.#batcher.accept(event, parsed, (error, acceptance) => {
        if (acceptance === null) return reject(this.#notStored(error));
        if (acceptance.outcome === "failed") return reject(this.#notStored(acceptance.error));
        this.#acceptFailedAt = null;
        this.#events?.accepted(event, acceptance.event, acceptance.outcome);
        if (acceptance.outcome === "accepted" && acceptance.gapBegins) this.#gaps.began(acceptance.lane);
        this.#remember(key, event, acceptance);
        if (acceptance.outcome === "duplicate" && acceptance.conflict)
          this.#announceConflict(event, acceptance.event, parsed);
        resolve(acceptance);
      });
    });
  }

  quarantine(quarantine: NewQuarantine): Promise<Extract<QuarantineAnswer, string>> {
    return new Promise((resolve, reject) => {
      this.#batcher.quarantine(quarantine, (error, answer) => {
        if (answer === null) return reject(this.#notStored(error));
        this.#acceptFailedAt = null;
        if (typeof answer === "object") return reject(this.#notStored(answer.error));
        resolve(answer);
      });
    });
  }

  /** An operator acted: answers must come from the store again, and the worker looks for what became ready. */
  afterAct(): void {
    this.#identities.clear();
    this.#batcher.poke();
  }

  async #open(): Promise<void> {
    const { store, clock, logger, name, firstSequence, tolerance, migrate } = this.options;
    await store.open({
      clock,
      logger,
      // From the oldest to the farthest timestamp that is taken: a replay of one delivery is verified for so long.
      rules: { name, firstSequence, toleranceMs: tolerance.pastMs + tolerance.futureMs },
      migrate,
      instance: thisInstance(),
    });
    if (this.#hasLeft) {
      await store.close();
      throw stopped();
    }
    this.#isOpen = true;
    this.#housekeeping.start();
  }

  /** A started worker keeps its process, as a server does, also where there is no server beside it. */
  #holdProcess(): void {
    this.#hold = this.options.clock.setTimeout(() => this.#holdProcess(), HOLD_MS);
    this.#hold.keepAlive();
  }

  /** With `ack: "handled"` a repeat must know how its event ended: only settled identities are remembered, by their waiters. */
  #remember(key: string, event: NewEvent, acceptance: StoredAcceptance): void {
    if (acceptance.outcome === "duplicate" ? !this.#isFinal(acceptance) : this.options.ack === "handled") return;
    const digest = acceptance.outcome === "duplicate" ? acceptance.digest : event.digest;
    this.#identities.remember(key, { event: acceptance.event, lane: acceptance.lane, digest });
  }

  #isFinal(acceptance: Extract<Acceptance, { outcome: "duplicate" }>): boolean {
    return this.options.ack === "stored" || acceptance.state === "done" || acceptance.state === "late";
  }

  #announceConflict({ lane, sequence, eventType }: NewEvent, eventId: EventId, parsed: WebhookEvent): void {
    this.#announcer.conflict({ eventId, lane, sequence, eventType }, () => parsed);
  }

  #notStored(thrown: unknown): unknown {
    const error = thrown ?? new StoreError("store_unavailable", "The store did not answer for this delivery.");
    this.#acceptFailedAt = this.options.clock.monotonic();
    return error;
  }

  #warnAboutLateOnce(): void {
    const types = this.#inUse.registry.outboundTypes;
    if (this.#warnedAboutLate || types.length === 0 || this.#inUse.registry.takesLate) return;
    this.#warnedAboutLate = true;
    this.options.logger.warn(
      { code: "no_on_late", types },
      "Outbound handlers are registered without onLate: late events will only be recorded.",
    );
  }
}

function stopped(): StoreError {
  return new StoreError("closed", "This receiver was stopped; make a new one to go on.");
}

// Remembers identities that are committed, so that a repeat is answered without a write. Never what is not yet committed.

/** Of each generation; both take about 4 MB. A service retries within 81 minutes, and whatever was forgotten the inbox knows. */
const MOST_REMEMBERED = 5_000;

interface Remembered {
  readonly event: EventId;
  readonly lane: LaneId;
  readonly digest: Uint8Array;
}

/** What a store would answer for the same body again. */
function repeatOf({ event, lane, digest }: Remembered, signedAt: number): Extract<Acceptance, { event: EventId }> {
  return { outcome: "duplicate", event, lane, state: "done", digest, signedAt, conflict: false };
}

/**
 * Two generations, of which the older is forgotten as a whole: to delete the oldest entry of one map costs more than all
 * the rest, because its iterator passes the places of the entries deleted before.
 */
export class CommittedIdentities {
  #recent = new Map<string, Remembered>();
  #older = new Map<string, Remembered>();

  /** The event that `key` names, when this body is the one that was committed; a differing one is for the store to judge. */
  find(key: string, digest: Uint8Array): Remembered | null {
    const known = this.#recent.get(key) ?? this.#older.get(key);
    return known !== undefined && Buffer.compare(known.digest, digest) === 0 ? known : null;
  }

  remember(key: string, committed: Remembered): void {
    if (this.#recent.size >= MOST_REMEMBERED) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, committed);
  }

  /** An operator acted: what a repeat should be answered may have changed. */
  clear(): void {
    this.#recent.clear();
    this.#older.clear();
  }
}
