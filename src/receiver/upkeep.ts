/** What an open inbox needs at intervals: heartbeats, pruning, fresh secrets, and a warning when no worker runs. */
import { explained, placeFields } from "../inbox/masking.ts";
import type { InboxStore, PruneResult } from "../inbox/store.ts";
import type { Timer } from "../internal/clock.ts";
import type { BackgroundRefresh, KeyringSource } from "../sources/keyring-provider.ts";
import { AlertWatch } from "./alert-watch.ts";
import { WORKER_IDLE } from "./alerts.ts";
import type { ResolvedReceiverOptions, Retention } from "./options.ts";

const HEARTBEAT_MS = 10_000;
/** How often the conditions of `alerts` are looked at. */
const ALERTS_MS = 10_000;
const PRUNE_MS = 600_000;
/** Batches that a drain prunes at most, so that work after a request stays short. */
const DRAIN_PRUNE_BATCHES = 20;
const IDLE_WORKER_MS = 60_000;

type UpkeepOptions = Pick<ResolvedReceiverOptions<unknown>, "clock" | "logger" | "name" | "retention" | "alerts"> & {
  readonly store: Pick<InboxStore, "heartbeat" | "prune" | "nextDue" | "stats" | "changeNotes">;
};

/** The secrets in use, and what keeps them up to date. */
export type KeyringUse = Pick<KeyringSource, "version" | "background" | "isFailing">;

export class Upkeep {
  /** Cumulative for this process: deliveries by secret slot and by refusal reason. */
  readonly counters: Record<string, number> = {};
  readonly #options: UpkeepOptions;
  readonly #worker: { readonly isStarted: boolean };
  readonly #inUse: { readonly keyrings: KeyringUse };
  readonly #timers = new Map<string, Timer>();
  readonly #alerts: AlertWatch | null;
  /** Monotonic. Null before the first look that a drain made. */
  #drainLookedAt: number | null = null;
  #workerRanAt: number;
  /** `start()` was called, or a drain has ended: `#workerRanAt` is not the time of construction. */
  #hasWorked = false;
  /** Drains in progress. */
  #drains = 0;
  /** The keyring version of the last heartbeat, stored or not: a failed heartbeat is tried again when the next one is due. */
  #reportedVersion: string | null = null;
  /** When pruning last began. Wall clock: monotonic time may stop while a process is frozen between two requests. */
  #prunedAt = Number.NEGATIVE_INFINITY;

  /** @param inUse - read at each use: a reload in development replaces its keyrings */
  constructor(
    options: UpkeepOptions,
    worker: { readonly isStarted: boolean },
    inUse: { readonly keyrings: KeyringUse },
  ) {
    this.#options = options;
    this.#worker = worker;
    this.#inUse = inUse;
    this.#workerRanAt = options.clock.monotonic();
    const { alerts: route } = options;
    this.#alerts = route && new AlertWatch({ ...options, route, workerIdleMs: () => this.#workerIdleMs() });
  }

  start(): void {
    if (this.#isRunning) return;
    this.#every("heartbeat", HEARTBEAT_MS, () => this.#beat());
    this.#every("prune", PRUNE_MS, () => this.#pruneAll());
    const alerts = this.#alerts;
    if (alerts !== null) this.#every("alerts", ALERTS_MS, () => alerts.look());
    this.#every("idle worker", IDLE_WORKER_MS, () => this.#warnAboutIdleWorker());
    this.#keepKeyrings();
  }

  /** Other keyrings are in use from now on. */
  keyringsReplaced(): void {
    this.#timers.get("keyring")?.cancel();
    this.#timers.delete("keyring");
    if (this.#isRunning) this.#keepKeyrings();
  }

  #keepKeyrings(): void {
    const { background } = this.#inUse.keyrings;
    if (background !== null) this.#every("keyring", background.everyMs, () => this.#refreshKeyrings(background));
    void this.#logFailure("heartbeat", async () => {
      await background?.refresh();
      if (this.#isRunning) await this.#beat();
    });
  }

  /** Between `start()` and `stop()`. Work that waited must not go on with a closed store. */
  get #isRunning(): boolean {
    return this.#timers.size > 0;
  }

  async stop(): Promise<void> {
    if (!this.#isRunning) return;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.#alerts?.stop();
    await this.#logFailure("heartbeat", () => this.#beat());
  }

  /** `start()` was called, or a drain has ended. */
  workerRan(): void {
    this.#hasWorked = true;
    this.#workerRanAt = this.#options.clock.monotonic();
  }

  /** A drain counts as a running worker, however long it takes. */
  async whileDraining<T>(drained: Promise<T>): Promise<T> {
    this.#drains++;
    try {
      return await drained;
    } finally {
      this.#drains--;
      this.workerRan();
    }
  }

  /** An event is due, and no worker has run for a minute. */
  async isWorkLeft(): Promise<boolean> {
    const { clock, store } = this.#options;
    if (this.#worker.isStarted || this.#drains > 0) return false;
    if (clock.monotonic() - this.#workerRanAt < IDLE_WORKER_MS) return false;
    return (await store.nextDue()) === 0;
  }

  /**
   * At the end of a drain: prunes a limited number of batches, and none after `deadline` (monotonic ms). A process may live for one
   * drain only, so its first one prunes. Later drains, which may follow each delivery, prune no more often than the timer, unless rows
   * are left.
   */
  pruneAfterDrain(deadline: number): Promise<void> {
    const { clock } = this.#options;
    return this.#logFailure("prune", async () => {
      const isRecent = Math.abs(clock.now() - this.#prunedAt) < PRUNE_MS;
      if (isRecent || clock.monotonic() >= deadline) return;
      await this.#prune((batches) => batches < DRAIN_PRUNE_BATCHES && clock.monotonic() < deadline);
    });
  }

  /**
   * At the end of a drain, at most every 10 s: its process may live for one drain only. A send may take until `deadline` (monotonic ms), or
   * a little longer.
   */
  alertAfterDrain(deadline: number): Promise<void> {
    return this.#logFailure("alerts", async () => {
      const now = this.#options.clock.monotonic();
      if (this.#alerts === null || (this.#drainLookedAt !== null && now - this.#drainLookedAt < ALERTS_MS)) return;
      this.#drainLookedAt = now;
      await this.#alerts.look(deadline - now);
    });
  }

  /** Null if no worker ran in this process. */
  #workerIdleMs(): number | null {
    if (this.#worker.isStarted || this.#drains > 0) return 0;
    return this.#hasWorked ? this.#options.clock.monotonic() - this.#workerRanAt : null;
  }

  /** Prunes everything past its retention, however much a busy inbox has. */
  #pruneAll(): Promise<void> {
    return this.#prune(() => this.#isRunning);
  }

  /** Drains do not prune meanwhile, nor for ten minutes after pruning is complete. If it is cut short, the next drain continues. */
  async #prune(mayContinue: (batches: number) => boolean): Promise<void> {
    const { clock, store, retention } = this.#options;
    this.#prunedAt = clock.now();
    let batches = 0;
    let isLeft = true;
    try {
      for await (const { more } of pruneBatches(store, retention)) {
        batches += 1;
        isLeft = more;
        if (!mayContinue(batches)) return;
      }
    } finally {
      if (isLeft) this.#prunedAt = Number.NEGATIVE_INFINITY;
    }
  }

  async #beat(): Promise<void> {
    const keyringVersion = this.#inUse.keyrings.version();
    this.#reportedVersion = keyringVersion;
    const idleMs = this.#workerIdleMs();
    const counters = { ...this.counters, ...(idleMs !== null && { [WORKER_IDLE]: Math.round(idleMs) }) };
    await this.#options.store.heartbeat({ keyringVersion, counters });
  }

  /** A rotation waits until every receiver has reported the new secret, so a change is reported at once. */
  async #refreshKeyrings(background: BackgroundRefresh): Promise<void> {
    await background.refresh();
    if (this.#isRunning && this.#inUse.keyrings.version() !== this.#reportedVersion) await this.#beat();
  }

  /** The likeliest mistake of a new user: events are accepted and due, and no worker runs. */
  async #warnAboutIdleWorker(): Promise<void> {
    // A receiver that takes no deliveries, and only waits for events that others handle, is not misconfigured.
    if (!Object.keys(this.counters).some((name) => name.startsWith("slot:")) || !(await this.isWorkLeft())) return;
    this.#options.logger.error(
      { code: "worker_not_running" },
      "Events wait and nothing handles them: call receiver.start() once at start-up, or receiver.drain() after responses or from a cron.",
    );
  }

  #every(name: string, ms: number, work: () => Promise<void>): void {
    const again = () => {
      const timer = this.#options.clock.setTimeout(() => {
        // Not if it was cancelled meanwhile, or replaced.
        void this.#logFailure(name, work).then(() => this.#timers.get(name) === timer && again());
      }, ms);
      this.#timers.set(name, timer);
    };
    again();
  }

  async #logFailure(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const message = explained("Background work of the inbox failed. It is tried again.", error);
      this.#options.logger.warn({ ...placeFields(error), what }, message);
    }
  }
}

/** Rows of each kind in one pruning transaction: short enough not to delay deliveries. */
const PRUNE_BATCH = 500;

/** Removes everything past its retention. Other work can run after each batch. */
export async function* pruneBatches(
  store: Pick<InboxStore, "prune">,
  retention: Retention,
): AsyncGenerator<PruneResult, void> {
  for (let more = true; more; ) {
    const batch = await store.prune({ ...retention, batch: PRUNE_BATCH });
    ({ more } = batch);
    if (more) await new Promise<void>((resolve) => setImmediate(resolve));
    yield batch;
  }
}
