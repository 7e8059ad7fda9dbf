/** Claims lanes, runs their events and settles them; never more than `concurrency` at once, one event of a lane at a time. */
import type { WebhookEvent } from "../events/types.ts";
import { type Clock, type Random, sleep } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import type { Batcher, ClaimDriver } from "./batcher.ts";
import { Breaker, type BreakerChange, PROBE_MS } from "./breaker.ts";
import { Conclusions, type WorkerEvents } from "./conclusions.ts";
import { type DrainOptions, type DrainResult, Drains } from "./drains.ts";
import { explained, placeFields } from "./failure.ts";
import { InHand } from "./in-hand.ts";
import { LaneDrives } from "./lane-drives.ts";
import { type Held, LeaseBook } from "./lease-book.ts";
import type { EventId, LaneId, OnDead } from "./record.ts";
import { Recovery } from "./recovery.ts";
import { failed, type Runner, type Verdict } from "./runner.ts";
import { settleFor } from "./settlement.ts";
import type { ClaimRequest, InboxStore, Lease, TurnResult } from "./store.ts";
import { Waker } from "./waker.ts";

export type { WorkerEvents } from "./conclusions.ts";

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
