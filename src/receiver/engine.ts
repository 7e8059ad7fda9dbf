/** One open inbox at work: its store, group commit, worker and upkeep, without HTTP and without signatures. */
import { StoreError } from "../errors.ts";
import type { DrainOptions, DrainResult } from "../inbox/claims.ts";
import { CompletionHooks } from "../inbox/completion.ts";
import type { Registered, Released } from "../inbox/handlers.ts";
import { EventLog } from "../inbox/instrumentation.ts";
import { placeFields } from "../inbox/masking.ts";
import type { EventId, NewEvent, NewQuarantine, QuarantineRecord } from "../inbox/record.ts";
import type { Acceptance, QuarantineAnswer } from "../inbox/store.ts";
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
const FULL_COUNTS_MS = 3_600_000;

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
  #quarantineFullAt: number | null = null;
  #admission: Promise<void> | null = null;
  /** Of the events that were accepted. */
  #highestId = 0;

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

  /** The last delivery could not be stored, less than half a minute ago. */
  get isFailingToStore(): boolean {
    const failedAt = this.#acceptFailedAt;
    return failedAt !== null && this.options.clock.monotonic() - failedAt < FAILURE_COUNTS_MS;
  }

  /** A signed body found the quarantine full in the last hour: others gave way to it, or it was refused. */
  get isQuarantineFull(): boolean {
    const fullAt = this.#quarantineFullAt;
    return fullAt !== null && this.options.clock.monotonic() - fullAt < FULL_COUNTS_MS;
  }

  quarantineWasFull(): void {
    this.#quarantineFullAt = this.options.clock.monotonic();
  }

  /** Continues with the handlers, secrets and instrumentations of another receiver, as after a reload in development. */
  use(inUse: InUse<Tx>): void {
    inUse.entries.freeze();
    Object.assign(this.inUse, inUse);
    this.#admission = null;
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
   * Resolves once the store knows the entries. After a failure the next delivery tries again.
   * @throws SetupError `wrong_source`
   */
  admitted(): Promise<void> {
    this.#admission ??= this.#admit().catch((error: unknown) => {
      this.#admission = null;
      throw error;
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
    await this.admitted();
    if (this.isStopping) throw stopped();
    if (this.worker.isStarted) return;
    this.worker.start();
    this.#holdProcess();
    this.upkeep.workerRan();
  }

  async drain(options: DrainOptions): Promise<DrainResult> {
    const deadline = this.options.clock.monotonic() + (options.budgetMs ?? Number.POSITIVE_INFINITY);
    await this.#openForWork();
    // Deliveries may still be accepted now. They wait for the next process.
    if (this.isStopping) return { claimed: 0, complete: false };
    const result = await this.upkeep.whileDraining(this.worker.drain(options));
    await this.#hooks.gapLog.flush();
    await this.upkeep.pruneAfterDrain(deadline);
    await this.upkeep.alertAfterDrain(deadline);
    return result;
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

  shows(entry: string): readonly string[] | undefined {
    return this.inUse.entries.shows(entry);
  }

  accept(event: NewEvent, parsed: object): Promise<StoredAcceptance> {
    this.inUse.entries.freeze();
    const highestBefore = this.#highestId;
    return new Promise((resolve, reject) => {
      this.worker.groupCommit.accept(event, parsed, (error, acceptance) => {
        if (acceptance === null) return reject(this.#notStored(error));
        if (acceptance.outcome === "failed") return reject(this.#notStored(acceptance.error));
        this.#acceptFailedAt = null;
        if (acceptance.outcome !== "duplicate") this.#noteNewId(acceptance.event, highestBefore);
        this.#eventLog?.accepted(event, acceptance.event, acceptance.outcome);
        const { outcome } = acceptance;
        if (outcome !== "duplicate" && outcome !== "late" && acceptance.gapBegins) this.#hooks.waits(acceptance.lane);
        if (acceptance.outcome === "accepted" && event.lane.order === "position")
          this.worker.holdsBack(event.gapWaitMs);
        if (acceptance.outcome === "duplicate" && acceptance.conflict) {
          const { lane, ownId: id = null, sequence, eventType } = event;
          this.#hooks.conflict({ eventId: acceptance.event, lane, id, sequence, eventType }, () =>
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

  quarantine(quarantine: NewQuarantine): Promise<Exclude<QuarantineAnswer, { outcome: "failed" }>> {
    return new Promise((resolve, reject) => {
      this.worker.groupCommit.quarantine(quarantine, (error, answer) => {
        if (answer === null) return reject(this.#notStored(error));
        this.#acceptFailedAt = null;
        if (typeof answer === "object" && answer.outcome === "failed") return reject(this.#notStored(answer.error));
        resolve(answer);
      });
    });
  }

  /** An operator acted: events may have become ready. */
  afterAct(): void {
    this.worker.groupCommit.poke();
  }

  /** Ids of events only grow, except where an older state of the inbox took its place, as after a restore or a failover. */
  #noteNewId(id: EventId, highestBefore: EventId): void {
    if (id > highestBefore) this.#highestId = Math.max(this.#highestId, id);
    else if (this.#highestId >= highestBefore) this.#inboxReplaced();
  }

  #inboxReplaced(): void {
    const { store, logger } = this.options;
    this.#highestId = 0;
    this.#admission = null;
    logger.error(
      { code: "inbox_replaced", location: store.location },
      "An older state of the inbox took its place, as after a restore or a failover. It is opened anew, and leases of the state before are given up. Ask the sender to repeat what was accepted since that older state.",
    );
    this.#opening = this.worker
      .whileReopening(async () => {
        await store.close();
        await this.#open();
      })
      .catch((error: unknown) => {
        this.#opening = null;
        logger.error(placeFields(error), "The inbox could not be opened anew; the next delivery tries again.");
      });
    this.waiters.endAll();
  }

  async #open(): Promise<void> {
    const { store, clock, logger, name, toleranceMs, migrate } = this.options;
    await store.open({
      clock,
      logger,
      rules: { name, toleranceMs },
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

  #notStored(thrown: unknown): unknown {
    const error = thrown ?? new StoreError("store_unavailable", "The store did not answer for this delivery.");
    this.#acceptFailedAt = this.options.clock.monotonic();
    return error;
  }
}

function stopped(): StoreError {
  return new StoreError("closed", "This receiver was stopped. Make a new one.");
}
