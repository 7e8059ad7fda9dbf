/** One open inbox at work: its store, group commit, worker and upkeep, without HTTP and without signatures. */
import { StoreError } from "../errors.ts";
import type { DrainOptions, DrainResult } from "../inbox/claims.ts";
import { CompletionHooks } from "../inbox/completion.ts";
import type { Registered, Released } from "../inbox/handlers.ts";
import { EventLog } from "../inbox/instrumentation.ts";
import { signedTimeOf } from "../inbox/lane.ts";
import { ORDERS } from "../inbox/lane-key.ts";
import { placeFields } from "../inbox/masking.ts";
import type { EventId, LaneId, NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import type { Acceptance, QuarantineAnswer, Turn } from "../inbox/store.ts";
import { Worker } from "../inbox/worker.ts";
import { atMost, type Timer } from "../internal/clock.ts";
import { thisInstance } from "../internal/process.ts";
import type { ResolvedReceiverOptions } from "./options.ts";
import { type KeyringUse, Upkeep } from "./upkeep.ts";

/** How long `stop()` waits for an open in progress, and for the last heartbeat and the store's end together. Milliseconds. */
const CLOSE_MS = 5_000;
/** Arbitrary: the timer only keeps the process alive. */
const HOLD_MS = 86_400_000;
/** After this, report healthy again: a load balancer that removed us would never send the delivery that clears the failure. */
const FAILURE_COUNTS_MS = 30_000;

/** Deliveries of a source that is not admitted yet are answered with 503 meanwhile. */
const ASK_AGAIN_MS = 5_000;

/** An event that could not be stored rejects instead. */
export type StoredAcceptance = Exclude<Acceptance, { outcome: "failed" }>;

/** What a reload in development replaces: the handlers, instrumentations and secrets of the receiver that uses an engine. */
export interface InUse<Tx> extends Registered<Tx> {
  readonly keyrings: KeyringUse;
}

export class Engine<Tx> {
  readonly options: ResolvedReceiverOptions<Tx>;
  /** Replaced in place by `use()`: its parts share this object. */
  readonly inUse: InUse<Tx>;
  readonly worker: Worker<Tx>;
  readonly upkeep: Upkeep;
  readonly #hooks: CompletionHooks;
  readonly #identities = new CommittedIdentities();
  readonly #eventLog: EventLog | null;
  /** It accepts nothing any more. */
  #isClosed = false;
  /** Its own open succeeded, and was not undone. */
  #isOpen = false;
  /** The store was let go: an open that ends after this is undone. */
  #hasLeft = false;
  #opening: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  #hold: Timer | null = null;
  /** Monotonic. Null once a delivery is stored. */
  #acceptFailedAt: number | null = null;
  #admission: Promise<void> | null = null;
  /** The store refused it. `at` is monotonic. */
  #refused: { readonly at: number; readonly error: unknown } | null = null;
  #warnedAboutLate = false;

  constructor(options: ResolvedReceiverOptions<Tx>, inUse: InUse<Tx>) {
    this.options = options;
    this.inUse = { ...inUse };
    this.#eventLog = options.logEvents ? new EventLog(options.logger) : null;
    this.#hooks = new CompletionHooks(options.store, this.inUse, options);
    this.worker = new Worker(options.store, this.inUse, this.#hooks, options);
    this.upkeep = new Upkeep(options, this.worker, this.inUse);
  }

  /** Requests with `ack: "handled"` that wait for their event's end. */
  get waiters(): CompletionHooks["waiters"] {
    return this.#hooks.waiters;
  }

  /** `stop()` was called. Deliveries may still be accepted. */
  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  /** Its inbox is open, or is being opened. */
  get isInUse(): boolean {
    return this.#opening !== null;
  }

  /** What becomes of an event below its cursor. */
  get lateEvents(): Turn<Tx>["lateEvents"] {
    return this.inUse.entries.lateEvents;
  }

  /** A process of an older version holds back the sources besides the messaging service. */
  get isHeldBack(): boolean {
    const error = this.#refused?.error;
    return error instanceof StoreError && error.code === "old_version_running";
  }

  /** The last delivery could not be stored, less than half a minute ago. */
  get isFailingToStore(): boolean {
    const failedAt = this.#acceptFailedAt;
    return failedAt !== null && this.options.clock.monotonic() - failedAt < FAILURE_COUNTS_MS;
  }

  /** Continues with the handlers, secrets and instrumentations of another receiver, as after a reload in development. */
  use(inUse: InUse<Tx>): void {
    inUse.entries.freeze();
    Object.assign(this.inUse, inUse);
    this.#admission = null;
    this.#refused = null;
    this.upkeep.keyringsReplaced();
  }

  /** Opens the store once. After a failure the next delivery tries again. */
  open(): Promise<void> {
    if (this.#isClosed) return Promise.reject(stopped());
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /**
   * Resolves once events of entries besides the messaging service may be stored. Asks the store again every 5 s.
   * @throws SetupError `wrong_source`
   * @throws StoreError `old_version_running`
   */
  admitted(): Promise<void> {
    const { clock } = this.options;
    const isRecent = this.#refused === null || clock.monotonic() - this.#refused.at < ASK_AGAIN_MS;
    if (this.#admission !== null && isRecent) return this.#admission;
    this.#refused = null;
    this.#admission = this.#admit();
    // Callers that wait for it get the error; so does the next one, until it is asked again.
    this.#admission.catch((error: unknown) => {
      this.#refused = { at: clock.monotonic(), error };
    });
    return this.#admission;
  }

  async #admit(): Promise<void> {
    const own = this.inUse.entries.presets;
    const recorded = await this.options.store.admit(own);
    for (const { name } of recorded) if (!own.some((entry) => entry.name === name)) await this.#warnOfOthers(name);
  }

  /** Another process may have the entry: only events that wait are a sign that none has. */
  async #warnOfOthers(source: string): Promise<void> {
    const { store, logger } = this.options;
    const { items } = await store.find({ source, states: ["pending"], limit: 1 });
    if (items.length === 0) return;
    const message = `Events of the source "${source}" wait in the inbox, and this receiver does not have that source: they stay until one that has it runs.`;
    logger.warn({ code: "source_missing", source }, message);
  }

  async start(): Promise<void> {
    await this.#openForWork();
    await this.#admitOrLog();
    if (this.isStopping) throw stopped();
    if (this.worker.isStarted) return;
    this.#warnAboutLateOnce();
    this.worker.start();
    this.#holdProcess();
    this.upkeep.workerRan();
  }

  async drain(options: DrainOptions): Promise<DrainResult> {
    const deadline = this.options.clock.monotonic() + (options.budgetMs ?? Number.POSITIVE_INFINITY);
    await this.#openForWork();
    // Deliveries may still be accepted now. They wait for the next process.
    if (this.isStopping) return { claimed: 0, complete: false };
    this.#warnAboutLateOnce();
    const result = await this.upkeep.whileDraining(this.worker.drain(options));
    await this.#hooks.gapLog.flush();
    await this.upkeep.pruneAfterDrain(deadline);
    await this.upkeep.alertAfterDrain(deadline);
    return result;
  }

  /** Events of the messaging service are handled while a process of an older version holds back the others. */
  async #admitOrLog(): Promise<void> {
    try {
      await this.admitted();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.options.logger.warn(placeFields(error), error.message);
    }
  }

  async #openForWork(): Promise<void> {
    this.inUse.entries.requireHandlers();
    this.inUse.entries.freeze();
    await this.open();
  }

  /** Stops claiming, lets handlers end, accepts until `until` is settled, then closes the store. Further calls wait for the same end. */
  stop(timeoutMs: number, until: PromiseLike<unknown> = Promise.resolve()): Promise<void> {
    // A server that failed to close takes no deliveries either. Caught here, since it may reject before it is awaited.
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
    // An open that has begun is closed below.
    await atMost(clock, CLOSE_MS, this.#opening?.catch(() => {}) ?? Promise.resolve());
    // Deliveries with `ack: "handled"` may have started handlers meanwhile.
    await this.worker.stop(Math.max(0, deadline - clock.monotonic()));
    await this.worker.groupCommit.close();
    await atMost(clock, CLOSE_MS, this.#leave());
  }

  async #leave(): Promise<void> {
    this.#hasLeft = true;
    this.#hooks.gapLog.close();
    await this.upkeep.stop();
    // Not unless this engine opened it: otherwise another receiver may use the same store object.
    if (this.#isOpen) await this.options.store.close();
  }

  release(row: QuarantineRecord): Released {
    return this.inUse.entries.release(row);
  }

  shows(entry: string | null): readonly string[] | undefined {
    return this.inUse.entries.shows(entry);
  }

  accept(event: NewEvent, parsed: object): Promise<StoredAcceptance> {
    this.inUse.entries.freeze();
    const key = identityKey(event);
    const known = this.#identities.find(key, event.digest);
    if (known !== null) {
      this.worker.groupCommit.repeat({ event: known.event, count: 1, signedAt: signedTimeOf(event) });
      this.#eventLog?.accepted(event, known.event, "duplicate");
      return Promise.resolve(repeatOf(known, event.signedAt));
    }
    return new Promise((resolve, reject) => {
      this.worker.groupCommit.accept(event, parsed, (error, acceptance) => {
        if (acceptance === null) return reject(this.#notStored(error));
        if (acceptance.outcome === "failed") return reject(this.#notStored(acceptance.error));
        this.#acceptFailedAt = null;
        this.#eventLog?.accepted(event, acceptance.event, acceptance.outcome);
        const { outcome } = acceptance;
        if (outcome !== "duplicate" && outcome !== "late" && acceptance.gapBegins) this.#hooks.waits(acceptance.lane);
        if (acceptance.outcome === "accepted" && ORDERS[event.lane.tag] === "position")
          this.worker.holdsBack(event.gapWaitMs);
        this.#remember(key, event, acceptance);
        if (acceptance.outcome === "duplicate" && acceptance.conflict) {
          const { lane, sequence, eventType } = event;
          this.#hooks.conflict({ eventId: acceptance.event, lane, sequence, eventType }, () =>
            this.inUse.entries.masking(lane, event, parsed),
          );
        }
        resolve(acceptance);
      });
    });
  }

  /** Notes a filtered event that no lane keeps. */
  drop(event: NewEvent): void {
    this.inUse.entries.freeze();
    this.#eventLog?.accepted(event, undefined, "filtered");
  }

  quarantine(quarantine: NewQuarantine): Promise<Extract<QuarantineAnswer, string>> {
    return new Promise((resolve, reject) => {
      this.worker.groupCommit.quarantine(quarantine, (error, answer) => {
        if (answer === null) return reject(this.#notStored(error));
        this.#acceptFailedAt = null;
        if (typeof answer === "object") return reject(this.#notStored(answer.error));
        resolve(answer);
      });
    });
  }

  /** An operator acted: answers must come from the store again, and events may have become ready. */
  afterAct(): void {
    this.#identities.clear();
    this.worker.groupCommit.poke();
  }

  async #open(): Promise<void> {
    const { store, clock, logger, name, firstSequence, toleranceMs, migrate } = this.options;
    await store.open({
      clock,
      logger,
      rules: { name, firstSequence, toleranceMs },
      migrate,
      instance: thisInstance(),
    });
    if (this.#hasLeft) {
      await store.close();
      throw stopped();
    }
    this.#isOpen = true;
    this.upkeep.start();
  }

  /** A started worker keeps its process alive, as a server does. */
  #holdProcess(): void {
    this.#hold = this.options.clock.setTimeout(() => this.#holdProcess(), HOLD_MS);
    this.#hold.keepAlive();
  }

  /** With `ack: "handled"` the answer to a repeat depends on how its event ended, so only events with a final state are remembered. */
  #remember(key: string, event: NewEvent, acceptance: StoredAcceptance): void {
    if (!this.#isFinal(acceptance)) return;
    const isRepeat = acceptance.outcome === "duplicate";
    const digest = isRepeat ? acceptance.digest : event.digest;
    const reference = isRepeat ? acceptance.reference : event.externalReference;
    this.#identities.remember(key, { event: acceptance.event, lane: acceptance.lane, digest, reference });
  }

  #isFinal(acceptance: StoredAcceptance): boolean {
    if (this.options.ack === "stored" || acceptance.outcome === "filtered") return true;
    return acceptance.outcome === "duplicate" && (acceptance.state === "done" || acceptance.state === "late");
  }

  #notStored(thrown: unknown): unknown {
    const error = thrown ?? new StoreError("store_unavailable", "The store did not answer for this delivery.");
    this.#acceptFailedAt = this.options.clock.monotonic();
    return error;
  }

  #warnAboutLateOnce(): void {
    const types = this.inUse.entries.all.flatMap(({ handlers }) => handlers.orderedTypes);
    if (this.#warnedAboutLate || types.length === 0 || this.lateEvents === "hand_out") return;
    this.#warnedAboutLate = true;
    this.options.logger.warn(
      { code: "no_on_late", types },
      "Outbound handlers are registered without onLate: late events will only be recorded.",
    );
  }
}

function stopped(): StoreError {
  return new StoreError("closed", "This receiver was stopped. Make a new one.");
}

/** An event's identity as one string, for the cache of committed ones. Lengths keep its parts apart. */
function identityKey({ lane, sequence, eventType }: NewEvent): string {
  return `${lane.tag} ${sequence} ${eventType.length} ${lane.apiClientId.length} ${eventType}${lane.apiClientId}${lane.messageId}`;
}

/** In each generation. Both take about 4 MB. The service retries within 81 minutes, and the inbox knows all that were forgotten. */
const MOST_REMEMBERED = 5_000;

interface Remembered {
  readonly event: EventId;
  readonly lane: LaneId;
  readonly digest: Uint8Array;
  readonly reference?: string | null | undefined;
}

/** What a store would answer for the same body again. */
function repeatOf(known: Remembered, signedAt: number): Extract<Acceptance, { event: EventId }> {
  const { event, lane, digest, reference } = known;
  return {
    outcome: "duplicate",
    event,
    lane,
    state: "done",
    digest,
    signedAt,
    conflict: false,
    reference: reference ?? null,
  };
}

/**
 * Remembers committed identities, so that a repeat is answered without a write. Two generations, of which the older is dropped as a whole:
 * deleting the oldest entry of one map costs more than all the rest, because its iterator passes each deleted entry again.
 */
export class CommittedIdentities {
  #recent = new Map<string, Remembered>();
  #older = new Map<string, Remembered>();

  /** The event named by `key`, if this is the committed body. The store judges any other body. */
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

  /** An operator acted: the right answer to a repeat may have changed. */
  clear(): void {
    this.#recent.clear();
    this.#older.clear();
  }
}
