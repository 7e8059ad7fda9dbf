/** What an open inbox needs now and then: a heartbeat, pruning, and a warning when nobody works on it. */
import { explained, placeFields } from "../inbox/masking.ts";
import type { InboxStore, PruneResult } from "../inbox/store.ts";
import type { Timer } from "../internal/clock.ts";
import type { BackgroundRefresh, KeyringSource } from "../signature/keyring-provider.ts";
import type { ResolvedOptions, Retention } from "./options.ts";

const HEARTBEAT_MS = 10_000;
const PRUNE_MS = 600_000;
/** A drain prunes this many batches at most, so that a request's after-work stays short. */
const PRUNE_ROUNDS = 20;
const IDLE_WORKER_MS = 60_000;

/** What of the receiver's options it needs, whatever effects get. */
type HousekeepingOptions = Pick<ResolvedOptions<unknown>, "clock" | "logger" | "retention"> & {
  readonly store: Pick<InboxStore, "heartbeat" | "prune" | "nextDue">;
};

/** Which secrets the receiver uses, and what keeps them up to date. */
export type KeyringUse = Pick<KeyringSource, "version" | "background" | "isFailing">;

export class Housekeeping {
  /** Cumulative for this process: deliveries by secret slot and by refusal reason. */
  readonly counters: Record<string, number> = {};
  readonly #options: HousekeepingOptions;
  readonly #worker: { readonly isStarted: boolean };
  #keyrings: KeyringUse;
  readonly #timers = new Map<string, Timer>();
  #workerRanAt: number;
  /** Drains under way. */
  #drains = 0;
  /** The version of the last heartbeat, whether it came through or not: one that failed is tried again when the next is due. */
  #toldVersion: string | null = null;
  /** When pruning began last, by the wall clock: where a process is frozen between two requests, that time may count nowhere else. */
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HousekeepingOptions, worker: { readonly isStarted: boolean }, keyrings: KeyringUse) {
    this.#options = options;
    this.#worker = worker;
    this.#keyrings = keyrings;
    this.#workerRanAt = options.clock.monotonic();
  }

  start(): void {
    this.#every("heartbeat", HEARTBEAT_MS, () => this.beat());
    this.#every("prune", PRUNE_MS, () => this.#pruneAll());
    this.#every("idle worker", IDLE_WORKER_MS, () => this.#warnAboutIdleWorker());
    this.#keepKeyrings(this.#keyrings);
  }

  /** Other secrets are in use from now on. */
  use(keyrings: KeyringUse): void {
    this.#keyrings = keyrings;
    this.#timers.get("keyring")?.cancel();
    this.#timers.delete("keyring");
    if (this.#isRunning) this.#keepKeyrings(keyrings);
  }

  #keepKeyrings({ background }: KeyringUse): void {
    if (background !== null) this.#every("keyring", background.everyMs, () => this.#refreshKeyrings(background));
    void this.#quietly("heartbeat", async () => {
      await background?.refresh();
      if (this.#isRunning) await this.beat();
    });
  }

  /** Between `start()` and `stop()`: what waits meanwhile must not go on with a store that is closed. */
  get #isRunning(): boolean {
    return this.#timers.size > 0;
  }

  async stop(): Promise<void> {
    if (!this.#isRunning) return;
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.#quietly("heartbeat", () => this.beat());
  }

  /** `start()` was called, or a drain has ended. */
  workerRan(): void {
    this.#workerRanAt = this.#options.clock.monotonic();
  }

  /** A drain is a worker, however long it takes. */
  async whileDraining<T>(drained: Promise<T>): Promise<T> {
    this.#drains++;
    try {
      return await drained;
    } finally {
      this.#drains--;
      this.workerRan();
    }
  }

  /** Something is due, and no worker has run for a minute. */
  async isWorkLeft(): Promise<boolean> {
    const { clock, store } = this.#options;
    if (this.#worker.isStarted || this.#drains > 0) return false;
    if (clock.monotonic() - this.#workerRanAt < IDLE_WORKER_MS) return false;
    return (await store.nextDue()) === 0;
  }

  /**
   * At the end of a drain: a bounded part of what is past its retention, and none after `deadline` (monotonic ms). A process may live
   * for one drain only, so its first one prunes; further ones, which may come after each delivery, no more often
   * than the timer, unless something is left.
   */
  pruneSome(deadline: number): Promise<void> {
    const { clock } = this.#options;
    return this.#quietly("prune", async () => {
      const isRecent = Math.abs(clock.now() - this.#prunedAt) < PRUNE_MS;
      if (isRecent || clock.monotonic() >= deadline) return;
      await this.#prune((rounds) => rounds < PRUNE_ROUNDS && clock.monotonic() < deadline);
    });
  }

  /** All that is past its retention, however much a busy inbox has of it. */
  #pruneAll(): Promise<void> {
    return this.#prune(() => this.#isRunning);
  }

  /** Drains leave it alone meanwhile, and for ten minutes after it has come to an end; what it leaves, the next drain goes on with. */
  async #prune(mayGoOn: (rounds: number) => boolean): Promise<void> {
    const { clock, store, retention } = this.#options;
    this.#prunedAt = clock.now();
    let rounds = 0;
    let isLeft = true;
    try {
      for await (const { more } of pruneBatches(store, retention)) {
        rounds += 1;
        isLeft = more;
        if (!mayGoOn(rounds)) return;
      }
    } finally {
      if (isLeft) this.#prunedAt = Number.NEGATIVE_INFINITY;
    }
  }

  async beat(): Promise<void> {
    const keyringVersion = this.#keyrings.version();
    this.#toldVersion = keyringVersion;
    await this.#options.store.heartbeat({ keyringVersion, counters: { ...this.counters } });
  }

  /** A rotation waits until every receiver has said that it has the new secret, so a change is told at once. */
  async #refreshKeyrings(background: BackgroundRefresh): Promise<void> {
    await background.refresh();
    if (this.#isRunning && this.#keyrings.version() !== this.#toldVersion) await this.beat();
  }

  /** An accepted event that is due and that nobody works on is the likeliest mistake of a new user. */
  async #warnAboutIdleWorker(): Promise<void> {
    // One that takes no deliveries, and only waits for what others handle, made no such mistake.
    if (!Object.keys(this.counters).some((name) => name.startsWith("slot:")) || !(await this.isWorkLeft())) return;
    this.#options.logger.error(
      { code: "worker_not_running" },
      "Events wait and nothing handles them: call receiver.start() once at start-up, or receiver.drain() after responses or from a cron.",
    );
  }

  #every(name: string, ms: number, work: () => Promise<void>): void {
    const again = () => {
      const timer = this.#options.clock.setTimeout(() => {
        // Cancelled meanwhile, or another one took its place.
        void this.#quietly(name, work).then(() => this.#timers.get(name) === timer && again());
      }, ms);
      this.#timers.set(name, timer);
    };
    again();
  }

  async #quietly(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const said = explained("Housekeeping failed; it is tried again.", error);
      this.#options.logger.warn({ ...placeFields(error), what }, said);
    }
  }
}

/** Rows of a kind in one pruning transaction: short enough not to be noticed between two turns. */
const PRUNE_BATCH = 500;

/** Removes what is past its retention, however much it is; other work comes in after each batch. */
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
