/** Claims lanes, runs their events and settles them; never more than `concurrency` at once, one event of a lane at a time. */
import type { WebhookEvent } from "../events/types.ts";
import type { Clock, Random, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { backoffMs } from "./backoff.ts";
import type { Batcher, ClaimDriver } from "./batcher.ts";
import { Breaker } from "./breaker.ts";
import type { EventNotice } from "./dispatch.ts";
import { type DrainOptions, type DrainResult, Drains } from "./drains.ts";
import { describeFailure, failureCode } from "./failure.ts";
import { LaneDrives } from "./lane-drives.ts";
import { type Held, LeaseBook } from "./lease-book.ts";
import type { EventId, EventRecord, LaneId, OnDead } from "./record.ts";
import { type Runner, requestedDelayMs, type Verdict } from "./runner.ts";
import type { ClaimRequest, InboxStore, Lease, Settle, SettleResult, TurnResult } from "./store.ts";

/** How a claim ended, for those who wait for it. `put_back`: released, or lost to another worker. */
export type Ending = "done" | "dead" | "retry" | "put_back";

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

export interface WorkerEvents {
  /** A claim ended, and its end is committed. */
  ended(event: EventId, ending: Ending): void;
  failed(notice: EventNotice, attempt: number, error: unknown): void;
  deadLettered(notice: EventNotice, attempts: number, code: string): void;
}

/** While the worker has paused itself, one event is tried this often. */
const PROBE_MS = 5_000;
/** After a turn that failed, the worker claims again this much later. */
const STORE_RETRY_MS = 1_000;

/** An expired lease is claimed alone: what runs ends first, then it is claimed, then it must settle. */
type Recovery = "none" | "waiting" | "claiming" | "running";

export class Worker<Tx> implements ClaimDriver {
  readonly #store: InboxStore<Tx>;
  readonly #runner: Runner<Tx>;
  readonly #options: WorkerOptions;
  readonly #events: WorkerEvents;
  readonly #book: LeaseBook;
  readonly #drains: Drains;
  readonly #breaker = new Breaker();
  readonly #laneDrives = new LaneDrives();
  /** What this process has of each lane, from its claim until its end is committed. */
  readonly #inHand = new Map<LaneId, Lease>();
  #batcher: Batcher<Tx> | null = null;
  #started = false;
  #paused = false;
  #recovery: Recovery = "none";
  #starting = false;
  #nextProbeAt = 0;
  #wakeTimer: Timer | null = null;
  #planning = false;
  #stopWaking: (() => void) | null = null;
  #quiet: (() => void)[] = [];

  constructor(store: InboxStore<Tx>, runner: Runner<Tx>, options: WorkerOptions, events: WorkerEvents) {
    this.#store = store;
    this.#runner = runner;
    this.#options = options;
    this.#events = events;
    this.#book = new LeaseBook(store, options);
    this.#drains = new Drains(options.clock);
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
    this.#wakeTimer?.cancel();
    this.#drains.endAll();
    this.#putBackWaiting();
    await this.#untilQuiet(timeoutMs);
    this.#book.close();
  }

  /** Handles what is ready now: neither gaps nor backoffs are waited for. */
  drain(options: DrainOptions): Promise<DrainResult> {
    const drained = this.#drains.begin(options, () => this.#afterDrainEnded());
    this.#poke();
    return drained;
  }

  /**
   * Claims `lane` now, if it is due, whether or not the worker was started. `notDue` is called when `event` can not be had:
   * it waits for a gap or a backoff, or another process has its lane. Its end is announced as always.
   */
  drive(lane: LaneId, event: EventId, notDue: () => void): void {
    const lease = this.#inHand.get(lane);
    if (lease?.event === event) return;
    this.#laneDrives.add(lane, { event, notDue });
    if (lease === undefined) this.#claimLane(lane);
  }

  nextClaim(): ClaimRequest {
    const lane = this.#paused ? null : this.#laneDrives.nextClaim();
    const { leaseMs, maxAttempts, onDead } = this.#options;
    const base = { leaseMs, maxAttempts, onDead };
    if (lane !== null) return { ...base, limit: 1, mode: "ordinary", lane };
    if (this.#recovery === "claiming" && this.#isActive()) return { ...base, limit: 1, mode: "recover" };
    return { ...base, limit: this.#freeSlots(), mode: "ordinary" };
  }

  claimed(result: TurnResult, request: ClaimRequest, parsed: (acceptIndex: number) => WebhookEvent | null): void {
    for (const record of result.retired) this.#announceRetired(record);
    for (const lease of result.leases) {
      this.#inHand.set(lease.lane, lease);
      this.#book.add(lease, lease.acceptIndex === null ? null : parsed(lease.acceptIndex));
    }
    if (request.lane !== undefined) this.#laneDrives.claimed(request.lane, result.leases[0] ?? null);
    this.#drains.claimed(result.leases.length);
    this.#advanceRecovery(result, request);
    this.#startWaiting();
    if (this.#laneDrives.hasClaims) this.#batcher?.poke();
    const exhausted = request.limit > 0 && request.lane === undefined && result.leases.length < request.limit;
    if (exhausted && this.#isQuiet()) this.#drains.nothingReady();
    if (exhausted || result.leases.length === 0) this.#planWake();
    this.#checkQuiet();
  }

  turnFailed(error: Error): void {
    this.#options.logger.error(
      { code: failureCode(error) },
      "The inbox could not be written; what was not stored is answered with 503.",
    );
    if (this.#recovery === "claiming") this.#recovery = "waiting";
    this.#laneDrives.giveUp();
    this.#drains.endAll();
    this.#wakeIn(STORE_RETRY_MS);
  }

  #freeSlots(): number {
    if (!this.#isActive() || this.#recovery !== "none") return 0;
    if (this.#breaker.isOpen) {
      const probe = this.#isQuiet() && this.#options.clock.monotonic() >= this.#nextProbeAt;
      if (probe) this.#nextProbeAt = this.#options.clock.monotonic() + PROBE_MS;
      return probe ? 1 : 0;
    }
    const free = Math.max(0, this.#book.capacity - this.#book.size);
    return this.#started ? free : Math.min(free, this.#drains.remaining);
  }

  #advanceRecovery(result: TurnResult, request: ClaimRequest): void {
    if (request.mode === "recover") this.#recovery = result.leases.length > 0 ? "running" : "none";
    else if (result.recoveryDue && this.#recovery === "none" && this.#isActive()) {
      this.#recovery = "waiting";
      this.#putBackWaiting();
    }
    this.#claimRecoveryWhenQuiet();
  }

  #claimRecoveryWhenQuiet(): void {
    if (this.#recovery !== "waiting" || !this.#isQuiet()) return;
    this.#recovery = "claiming";
    this.#poke();
  }

  /** A handler that returns at once frees its place within this loop: it must not start the loop again. */
  #startWaiting(): void {
    if (this.#starting) return;
    this.#starting = true;
    for (let held = this.#book.next(); held !== null; held = this.#book.next()) this.#run(held);
    this.#starting = false;
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
    const settle = this.#settleFor(held, verdict, durationMs);
    this.#batcher?.settle(settle, (result) => {
      if (result.status === "effect_failed") {
        this.#settle(held, { kind: "failed", error: result.error, permanent: false, event: held.parsed }, durationMs);
        return;
      }
      this.#letGo(held.lease);
      this.#conclude(held, settle, result, verdict);
      this.#afterSettle();
    });
    this.#startWaiting();
  }

  #settleFor({ lease }: Held, verdict: Verdict<Tx>, durationMs: number): Settle<Tx> {
    if (verdict.kind === "complete")
      return { kind: "complete", lease, outcome: verdict.outcome, effects: verdict.effects };
    const { maxAttempts, onDead, random } = this.#options;
    const failure = describeFailure(verdict.error, verdict.event, durationMs);
    if (verdict.permanent) return { kind: "dead", lease, failure, onDead };
    if (this.#breaker.isOpen) return { kind: "release", lease, delayMs: PROBE_MS };
    if (lease.attempt >= maxAttempts) return { kind: "dead", lease, failure, onDead };
    return {
      kind: "retry",
      lease,
      failure,
      delayMs: requestedDelayMs(verdict.error) ?? backoffMs(lease.attempt, random),
    };
  }

  /** The settle is committed, or its lease was lost. */
  #conclude({ lease }: Held, settle: Settle<Tx>, result: SettleResult, verdict: Verdict<Tx>): void {
    if (result.status !== "settled") {
      this.#options.logger.warn(
        { eventId: lease.event, epoch: lease.epoch },
        "A lease was lost before its event was settled.",
      );
      return this.#events.ended(lease.event, "put_back");
    }
    if (verdict.kind === "failed") this.#events.failed(noticeOf(lease), lease.attempt, verdict.error);
    if (verdict.kind === "complete") this.#report(this.#breaker.succeeded());
    else if (!verdict.permanent) this.#report(this.#breaker.failed());
    if (settle.kind === "dead") this.#events.deadLettered(noticeOf(lease), lease.attempt, settle.failure.code);
    this.#events.ended(lease.event, ENDINGS[settle.kind]);
  }

  #report(change: "opened" | "closed" | null): void {
    if (change === "opened") {
      this.#options.logger.error(
        { code: "worker_paused", probeMs: PROBE_MS },
        "Every handler failed: the worker paused itself and probes.",
      );
      this.#nextProbeAt = this.#options.clock.monotonic() + PROBE_MS;
      this.#putBackWaiting();
      this.#wakeIn(PROBE_MS);
    } else if (change === "closed") {
      this.#options.logger.info({ code: "worker_resumed" }, "A probe succeeded: the worker goes on.");
      this.#poke();
    }
  }

  #letGo(lease: Lease): void {
    if (this.#inHand.get(lease.lane) !== lease) return;
    this.#inHand.delete(lease.lane);
    this.#claimLane(lease.lane);
  }

  #claimLane(lane: LaneId): void {
    this.#laneDrives.wantClaim(lane);
    if (this.#laneDrives.hasClaims) this.#batcher?.poke();
  }

  #afterSettle(): void {
    if (this.#recovery === "running" && this.#isQuiet()) {
      this.#recovery = "none";
      this.#poke();
    }
    this.#claimRecoveryWhenQuiet();
    this.#checkQuiet();
  }

  #afterDrainEnded(): void {
    if (!this.#started && !this.#drains.active) this.#putBackWaiting();
    this.#checkQuiet();
  }

  #announceRetired(record: EventRecord): void {
    const notice = { eventId: record.id, lane: record.lane, sequence: record.sequence, eventType: record.eventType };
    this.#events.deadLettered(notice, record.attempts, record.errorCode ?? "attempts_exhausted");
    this.#events.ended(record.id, "dead");
  }

  /** Leases that were not started go back with their attempt. */
  #putBackWaiting(): void {
    for (const { lease } of this.#book.takeWaiting()) {
      this.#batcher?.settle({ kind: "release", lease, delayMs: 0 }, () => {
        this.#letGo(lease);
        this.#events.ended(lease.event, "put_back");
        this.#afterSettle();
      });
    }
  }

  #isActive(): boolean {
    return (this.#started || this.#drains.active) && !this.#paused;
  }

  #poke(): void {
    if (this.#isActive()) this.#batcher?.poke();
  }

  /** One timer for the next lane that comes due. Asked once per round of the event loop at most. */
  #planWake(): void {
    if (this.#planning || !this.#started) return;
    this.#planning = true;
    setImmediate(async () => {
      const dueInMs = await this.#store.nextDue().catch(() => STORE_RETRY_MS);
      this.#planning = false;
      if (dueInMs !== null && this.#started) this.#wakeIn(this.#breaker.isOpen ? Math.max(dueInMs, PROBE_MS) : dueInMs);
    });
  }

  #wakeIn(ms: number): void {
    this.#wakeTimer?.cancel();
    this.#wakeTimer = this.#options.clock.setTimeout(() => this.#poke(), ms);
  }

  #isQuiet(): boolean {
    return this.#inHand.size === 0;
  }

  #checkQuiet(): void {
    if (!this.#isQuiet()) return;
    this.#drains.quiet();
    for (const resolve of this.#quiet.splice(0)) resolve();
  }

  #untilQuiet(timeoutMs: number): Promise<void> {
    if (this.#isQuiet()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.setTimeout(resolve, timeoutMs);
      this.#quiet.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }
}

const ENDINGS = { complete: "done", retry: "retry", dead: "dead", release: "put_back" } as const satisfies Record<
  Settle<unknown>["kind"],
  Ending
>;

function noticeOf(lease: Held["lease"]): EventNotice {
  return { eventId: lease.event, lane: lease.key, sequence: lease.sequence, eventType: lease.eventType };
}
