/** Claims lanes, runs their events and settles them; never more than `concurrency` at once, one event of a lane at a time. */
import type { WebhookEvent } from "../events/types.ts";
import { type Clock, type Random, sleep, type Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { Conclusions, settleFor, type WorkerEvents } from "./completion.ts";
import { type DrainOptions, type DrainResult, Drains, LaneDrives } from "./drain.ts";
import type { Batcher, ClaimDriver } from "./group-commit.ts";
import { failed, type Runner, type Verdict } from "./handlers.ts";
import { type Held, InHand, LeaseBook } from "./leases.ts";
import { explained, placeFields } from "./masking.ts";
import type { EventId, LaneId, OnDead } from "./record.ts";
import type { ClaimRequest, InboxStore, Lease, SettleResult, TurnResult } from "./store.ts";

export type { WorkerEvents } from "./completion.ts";

export interface WorkerOptions {
  /** Handlers that run at once. */
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export class Worker<Tx> implements ClaimDriver {
  readonly #store: InboxStore<Tx>;
  readonly #runner: Runner<Tx>;
  readonly #options: WorkerOptions;
  readonly #conclusions: Conclusions;
  readonly #book: LeaseBook;
  readonly #drains: Drains;
  readonly #waker: Waker;
  readonly #recovery = new Recovery();
  readonly #breaker: Breaker;
  readonly #laneDrives = new LaneDrives();
  readonly #inHand = new InHand();
  #batcher: Batcher<Tx> | null = null;
  #started = false;
  #paused = false;
  #starting = false;
  #stopWaking: (() => void) | null = null;

  constructor(store: InboxStore<Tx>, runner: Runner<Tx>, options: WorkerOptions, events: WorkerEvents) {
    this.#store = store;
    this.#runner = runner;
    this.#options = options;
    this.#conclusions = new Conclusions(events, options.logger);
    this.#book = new LeaseBook(store, options, (held) => this.#lostUnstarted(held));
    this.#drains = new Drains(options.clock, this.#inHand, () => this.#afterDrainsWereCut());
    this.#breaker = new Breaker(options.clock, options.logger);
    this.#waker = new Waker(store, options.clock, () => this.#poke());
  }

  /** The batcher and the worker know each other: it carries out what the worker settles, and asks what to claim. */
  connect(batcher: Batcher<Tx>): void {
    this.#batcher = batcher;
  }

  get isStarted(): boolean {
    return this.#started;
  }

  /** The worker has paused itself because every handler failed. */
  get isTripped(): boolean {
    return this.#breaker.isOpen;
  }

  get isPaused(): boolean {
    return this.#paused;
  }

  start(): void {
    this.#started = true;
    this.#stopWaking = this.#store.onWake?.(() => this.#poke()) ?? null;
    this.#poke();
  }

  pause(): void {
    this.#paused = true;
    this.#laneDrives.giveUp();
    this.#drains.endAll();
    this.#putBackWaiting();
  }

  resume(): void {
    this.#paused = false;
    this.#poke();
  }

  /** Stops claiming, gives back what has not started, and resolves when what runs has settled or `timeoutMs` passed. */
  async stop(timeoutMs: number): Promise<void> {
    this.#started = false;
    this.#stopWaking?.();
    this.#waker.stop();
    this.#drains.endAll();
    this.#putBackWaiting();
    const over = new AbortController();
    const ended = this.#inHand.untilLetGo().then(() => over.abort());
    await Promise.race([ended, sleep(this.#options.clock, timeoutMs, over.signal)]);
    this.#book.close();
  }

  /** Handles what is ready now: neither gaps nor backoffs are waited for. Rejects when the store fails meanwhile. */
  drain(options: DrainOptions): Promise<DrainResult> {
    const drained = this.#drains.begin(options);
    if (this.#paused) this.#drains.endAll();
    this.#poke();
    return drained;
  }

  /**
   * Claims `lane` now, if it is due, whether or not the worker was started. `notDue` is called when `event` can not be had:
   * it waits for a gap or a backoff, or another process has its lane. Its end is announced as always.
   */
  drive(lane: LaneId, event: EventId, notDue: () => void): void {
    const lease = this.#inHand.leaseOf(lane);
    if (lease?.event === event) return;
    if (this.#paused) return notDue();
    this.#laneDrives.add(lane, { event, notDue });
    if (lease === undefined) this.#claimLane(lane);
  }

  nextClaim(): ClaimRequest {
    const driven = this.#mayDrive() ? this.#laneDrives.nextClaim(this.#isActive()) : null;
    const { leaseMs, maxAttempts, onDead } = this.#options;
    const base = { leaseMs, maxAttempts, onDead };
    if (driven !== null) return { ...base, limit: 1, ...driven };
    if (this.#recovery.wantsClaim && this.#isActive()) return { ...base, limit: 1, mode: "recover" };
    return { ...base, limit: this.#freeSlots(this.#laneDrives.takeOwed()), mode: "ordinary" };
  }

  claimed(result: TurnResult, request: ClaimRequest, parsed: (acceptIndex: number) => WebhookEvent | null): void {
    const wanted = this.#areWanted(result.leases.length, request);
    for (const record of result.retired) this.#conclusions.retired(record);
    for (const lease of result.leases) {
      this.#inHand.take(lease);
      this.#conclusions.claimed(lease);
      this.#book.add(lease, lease.acceptIndex === null ? null : parsed(lease.acceptIndex));
    }
    this.#laneDrives.claimCame(request, result, this.#isActive());
    this.#drains.claimed(result.leases.length);
    this.#noteRecovery(result, request);
    if (wanted) this.#startWaiting();
    else this.#putBackWaiting();
    this.#planNext(result, request);
    this.#whenQuiet();
  }

  turnFailed(error: Error): void {
    this.#options.logger.error(
      placeFields(error),
      explained("The inbox could not be written; what was not stored is answered with 503.", error),
    );
    this.#laneDrives.giveUp();
    this.#drains.fail(error);
    this.#waker.wakeAfterFailure();
  }

  /** False for what came from a claim that was under way when the worker was paused or stopped, or a drain was cut off. */
  #areWanted(leases: number, { lane, limit }: ClaimRequest): boolean {
    if (leases === 0 || this.#paused) return !this.#paused;
    return lane !== undefined || (this.#isActive() && !(this.#breaker.isOpen && limit > 1));
  }

  /** Lanes that are due or become due must have a turn, a settle under way or a timer that comes back to them. */
  #planNext({ leases, retired }: TurnResult, { limit, mode, lane }: ClaimRequest): void {
    if (this.#laneDrives.hasClaims && this.#mayDrive()) this.#batcher?.poke();
    // The claim of one lane, or of an expired lease that was gone, says nothing about the others; one that retired may have more.
    if (lane !== undefined || retired.length > 0 || (mode === "recover" && leases.length === 0)) this.#poke();
    const exhausted = mode === "ordinary" && lane === undefined && retired.length === 0 && leases.length < limit;
    if (exhausted && !this.#recovery.isUnderWay) this.#drains.nothingReady();
    if (this.#breaker.isOpen) this.#drains.endAll();
    if (this.#started && (exhausted || this.#breaker.isOpen)) this.#waker.plan(this.#breaker.isOpen ? PROBE_MS : 0);
  }

  #freeSlots(least: number): number {
    if (!this.#isActive() || this.#recovery.isUnderWay) return 0;
    if (this.#breaker.isOpen) return this.#inHand.isEmpty && this.#breaker.takeProbe() ? 1 : 0;
    const free = Math.max(least, this.#book.capacity - this.#book.size);
    return this.#started ? free : Math.min(free, this.#drains.remaining);
  }

  #noteRecovery(result: TurnResult, request: ClaimRequest): void {
    if (request.mode === "recover" && request.lane === undefined)
      return this.#recovery.claimed(result.leases.length > 0);
    if (!result.recoveryDue || this.#recovery.isUnderWay || !this.#isActive()) return;
    this.#recovery.begin();
    this.#putBackWaiting();
  }

  /** A handler that returns at once frees its place within this loop: it must not start the loop again. */
  #startWaiting(): void {
    if (this.#starting) return;
    this.#starting = true;
    try {
      for (let held = this.#book.next(); held !== null; held = this.#book.next()) this.#run(held);
    } finally {
      this.#starting = false;
    }
  }

  #run(held: Held): void {
    const startedAt = this.#options.clock.monotonic();
    const run = this.#runner.run(held.lease, held.parsed, (verdict) => {
      const durationMs = this.#options.clock.monotonic() - startedAt;
      this.#book.finished(held, durationMs);
      this.#settle(held, verdict, durationMs);
    });
    this.#book.started(held, run);
  }

  #settle(held: Held, verdict: Verdict<Tx>, durationMs: number): void {
    const probeDelayMs = this.#breaker.isOpen ? PROBE_MS : null;
    const settle = settleFor(
      held.lease,
      verdict,
      { number: held.lease.attempt, durationMs, probeDelayMs },
      this.#options,
    );
    this.#heed(this.#breaker.ended(held.lease.lane, verdict));
    this.#batcher?.settle(settle, (result) => {
      if (result.status === "unfinished") return this.#book.keep(held.lease);
      this.#heed(this.#breaker.committed(verdict, result.status));
      if (result.status === "effect_failed") {
        return this.#settle(held, failed(result.error, verdict.event), durationMs);
      }
      this.#letGo(held.lease);
      this.#conclusions.settled({ lease: held.lease, verdict, settle, durationMs }, result);
      this.#whenQuiet();
    });
    this.#startWaiting();
  }

  #heed(change: BreakerChange): void {
    if (change === "closed" || change === "probe_again") this.#poke();
    if (change !== "opened") return;
    this.#putBackWaiting();
    this.#waker.wakeIn(PROBE_MS);
  }

  #letGo(lease: Lease): void {
    if (this.#book.letGo(lease)) this.#poke();
    if (this.#inHand.letGo(lease)) this.#claimLane(lease.lane);
  }

  #claimLane(lane: LaneId): void {
    this.#laneDrives.wantClaim(lane);
    if (this.#laneDrives.hasClaims) this.#batcher?.poke();
  }

  #afterDrainsWereCut(): void {
    if (this.#started || this.#drains.active) return;
    this.#putBackWaiting();
    if (this.#laneDrives.hasClaims) this.#batcher?.poke();
  }

  #lostUnstarted({ lease }: Held): void {
    this.#letGo(lease);
    this.#conclusions.putBack(lease);
    this.#whenQuiet();
    this.#poke();
  }

  /** Leases that were not started go back with their attempt. */
  #putBackWaiting(): void {
    const waiting = this.#book.takeWaiting();
    this.#drains.putBack(waiting.length);
    for (const { lease } of waiting) {
      this.#batcher?.settle({ kind: "release", lease, delayMs: 0 }, () => {
        this.#letGo(lease);
        this.#conclusions.putBack(lease);
        this.#whenQuiet();
      });
    }
  }

  #isActive(): boolean {
    return (this.#started || this.#drains.active) && !this.#paused;
  }

  /** An expired lease is retried alone: requests that drive a lane wait for its end too. */
  #mayDrive(): boolean {
    return !this.#paused && !(this.#recovery.isUnderWay && this.#isActive());
  }

  #poke(): void {
    if (this.#isActive()) this.#batcher?.poke();
  }

  #whenQuiet(): void {
    if (this.#inHand.isEmpty && this.#recovery.quiet()) this.#poke();
  }
}

// The worker's own pause: when every handler fails, events should wait instead of running through their attempts.

/** While the worker has paused itself, one event is tried this often. */
export const PROBE_MS = 5_000;

/** Failures in a row, each of another lane: one poisonous message alone stops nobody. */
const WINDOW = 20;

/** What a verdict changed. */
type BreakerChange = "opened" | "closed" | "probe_again" | null;

export class Breaker {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #failing = new Set<LaneId>();
  /**
   * Handlers that returned and whose effects are not committed yet. Each may still prove that not every handler fails, so as many
   * more lanes must; to wait until there are none would be for ever under load.
   */
  #undecided = 0;
  #open = false;
  #nextProbeAt = 0;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The last 20 lanes failed one after the other: only probes run. */
  get isOpen(): boolean {
    return this.#open;
  }

  /**
   * The handlers of an event ended. Told before their end is committed, so that of what was claimed ahead no more fails than
   * must. A `PermanentError` is no failure: it says that the handler works.
   */
  ended<Tx>(lane: LaneId, verdict: Verdict<Tx>): BreakerChange {
    if (verdict.kind === "failed" && verdict.permanent) return this.#open ? this.#succeeded() : null;
    if (verdict.kind === "failed") return this.#failed(lane);
    if (verdict.outcome !== "handled") return null;
    if (verdict.effects.length === 0) return this.#succeeded();
    this.#undecided++;
    return null;
  }

  /**
   * What `ended` was told is committed, or has failed: an effect that threw is told to `ended` as a failure of its own. A
   * probe of an event that no handler takes says nothing, so that the next one need not wait.
   */
  committed<Tx>(verdict: Verdict<Tx>, status: SettleResult["status"]): BreakerChange {
    if (verdict.kind === "failed") return null;
    if (verdict.outcome !== "handled") return this.#probeAgain();
    if (verdict.effects.length === 0) return null;
    this.#undecided--;
    return status === "settled" ? this.#succeeded() : null;
  }

  #probeAgain(): BreakerChange {
    if (!this.#open) return null;
    this.#nextProbeAt = this.#clock.monotonic();
    return "probe_again";
  }

  #succeeded(): BreakerChange {
    this.#failing.clear();
    if (!this.#open) return null;
    this.#open = false;
    this.#logger.info({ code: "worker_resumed" }, "A probe succeeded: the worker goes on.");
    return "closed";
  }

  #failed(lane: LaneId): BreakerChange {
    if (this.#open) return null;
    this.#failing.add(lane);
    if (this.#failing.size < WINDOW + this.#undecided) return null;
    this.#open = true;
    this.#nextProbeAt = this.#clock.monotonic() + PROBE_MS;
    this.#logger.error(
      { code: "worker_paused", probeMs: PROBE_MS },
      "Every handler failed: the worker paused itself and probes.",
    );
    return "opened";
  }

  /** True when a probe may be claimed now; it is then counted as taken. */
  takeProbe(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#nextProbeAt) return false;
    this.#nextProbeAt = now + PROBE_MS;
    return true;
  }
}

/**
 * An expired lease may belong to an event that kills its process. So what runs ends first, then that one lease is claimed
 * alone, and nothing else is claimed until it has settled: it takes no neighbours with it.
 */
export class Recovery {
  #state: "none" | "waiting" | "claiming" | "running" = "none";

  get isUnderWay(): boolean {
    return this.#state !== "none";
  }

  /** The next claim is for the expired lease. */
  get wantsClaim(): boolean {
    return this.#state === "claiming";
  }

  begin(): void {
    this.#state = "waiting";
  }

  /** The claim came back: with the lease, or without, since another process was first. */
  claimed(found: boolean): void {
    this.#state = found ? "running" : "none";
  }

  /** Nothing runs. Answers whether there is something new to claim. */
  quiet(): boolean {
    if (this.#state === "waiting") this.#state = "claiming";
    else if (this.#state === "running") this.#state = "none";
    else return false;
    return true;
  }
}

// One timer for the next lane that comes due, instead of polling.

/** After a failure the store is asked again this much later. */
const STORE_RETRY_MS = 1_000;

export class Waker {
  readonly #store: Pick<InboxStore, "nextDue">;
  readonly #clock: Clock;
  readonly #wake: () => void;
  #timer: Timer | null = null;
  /** `asked_again`: the answer under way may be older than what the plan was made for. */
  #planning: "no" | "soon" | "asked" | "asked_again" = "no";
  #leastMs = 0;

  constructor(store: Pick<InboxStore, "nextDue">, clock: Clock, wake: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#wake = wake;
  }

  /** Wakes when the next lane is due, `leastMs` from now at the earliest. The store is asked once per round of the event loop. */
  plan(leastMs: number): void {
    this.#leastMs = leastMs;
    if (this.#planning === "asked") this.#planning = "asked_again";
    if (this.#planning !== "no") return;
    this.#planning = "soon";
    setImmediate(() => void this.#ask());
  }

  wakeIn(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(this.#wake, ms);
  }

  /** The turn may have been written all the same: an answer that is under way may be older. */
  wakeAfterFailure(): void {
    if (this.#planning === "asked") this.#planning = "asked_again";
    this.wakeIn(STORE_RETRY_MS);
  }

  stop(): void {
    this.#planning = "no";
    this.#timer?.cancel();
  }

  async #ask(): Promise<void> {
    if (this.#planning !== "soon") return;
    this.#planning = "asked";
    const dueInMs = await this.#store.nextDue().catch(() => STORE_RETRY_MS);
    const { again, stopped } = this.#answered();
    if (stopped) return;
    if (dueInMs !== null) this.wakeIn(Math.max(dueInMs, this.#leastMs));
    if (again) this.plan(this.#leastMs);
  }

  #answered(): { readonly again: boolean; readonly stopped: boolean } {
    const planning = this.#planning;
    this.#planning = "no";
    return { again: planning === "asked_again", stopped: planning === "no" };
  }
}
