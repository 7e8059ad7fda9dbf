/** Claims lanes, runs their events and stores how they ended: at most `concurrency` handlers at once, one event of a lane at a time. */
import { setImmediate as nextRound } from "node:timers/promises";
import { atMost, type Clock, sleep, type Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import {
  type DrainOptions,
  type DrainResult,
  Drains,
  type HeldLease,
  type LeaseOptions,
  Leases,
  OnDemandClaims,
} from "./claims.ts";
import {
  type RetryPolicy,
  reportEnd,
  reportRetired,
  reportUntaken,
  settleFor,
  type WorkerEvents,
} from "./completion.ts";
import { Flow, type FlowLimits } from "./flow.ts";
import { isFreshEvent } from "./gap.ts";
import { type ClaimDriver, GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import type { Registered } from "./handlers.ts";
import { explained, placeFields } from "./masking.ts";
import type { EventId, LaneId } from "./record.ts";
import { failed, Runner, type RunnerOptions, type Verdict } from "./runner.ts";
import type { ClaimRequest, InboxStore, Lease, SettleResult, Takes, TurnResult } from "./store.ts";
import { NO_BOUND } from "./store-rules.ts";

/** A lane that is due now may be another process's: a drain that waits does not ask for it all the time. */
const SHORTEST_WAIT_MS = 10;
/** How long batches may last before the inbox is opened anew. */
const REOPEN_MS = 5_000;
/** A drain that waits for parked lanes looks so often whether the worker is paused. */
const LONGEST_STEP_MS = 1_000;

export interface WorkerOptions extends LeaseOptions, RetryPolicy, RunnerOptions, GroupCommitOptions {
  /** Null without limits by key. */
  readonly flow: FlowLimits | null;
}

export class Worker<Tx> implements ClaimDriver {
  /** Stores deliveries too: each of its transactions can claim what it accepts. */
  readonly groupCommit: GroupCommit<Tx>;
  readonly #store: InboxStore<Tx>;
  readonly #registered: Registered<Tx>;
  readonly #runner: Runner<Tx>;
  readonly #options: WorkerOptions;
  readonly #events: WorkerEvents;
  readonly #flow: Flow<Tx> | null;
  readonly #leases: Leases;
  readonly #backlog = new Backlog();
  readonly #drains: Drains;
  readonly #onDemand = new OnDemandClaims();
  readonly #dueTimer: DueTimer;
  readonly #recovery = new Recovery();
  readonly #breaker: Breaker;
  #started = false;
  #paused = false;
  #starting = false;
  /** The last claim took all that it could: other lanes may be due. */
  #mayBeMore = false;
  #stopWaking: (() => void) | null = null;
  /** When the last event that this process accepted and holds back is due, by the monotonic clock. */
  #ownDueAt = 0;
  /** The query of drains that wait, until it is sent. */
  #asking: Promise<number | null> | null = null;
  /** What was parked while each drain ran. */
  readonly #parkedOfDrains = new Set<Parked>();
  /** Ends waits for events that are held back, and for those that are parked. */
  readonly #stopping = new AbortController();

  constructor(store: InboxStore<Tx>, registered: Registered<Tx>, events: WorkerEvents, options: WorkerOptions) {
    this.#store = store;
    this.#options = options;
    this.#events = events;
    this.#registered = registered;
    this.groupCommit = new GroupCommit(store, this, registered, options);
    this.#runner = new Runner(store, registered, options);
    const { flow: limits } = options;
    const ofFlow = { wake: () => this.#startWaiting(), park: (lease: Lease, ms: number) => this.#park(lease, ms) };
    this.#flow = limits === null ? null : new Flow(store, registered, { ...options, limits }, ofFlow);
    this.#leases = new Leases(store, options, (lease) => this.#lostBeforeStart(lease), this.#flow);
    this.#drains = new Drains(options.clock, this.#leases, () => this.#drainsCutOff());
    const afterDueMs = () => (registered.entries.missing.size > 0 ? YIELD_MS * (1 + options.random()) : 0);
    this.#dueTimer = new DueTimer(store, options.clock, () => this.#poke(), afterDueMs);
    this.#breaker = new Breaker(options.clock, options.logger);
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
    this.#listen();
    this.#poke();
  }

  #listen(): void {
    this.#stopWaking = this.#store.onWake?.(() => this.#poke()) ?? null;
  }

  pause(): void {
    this.#paused = true;
    this.#onDemand.cancelAll();
    this.#drains.endAll();
    this.#returnWaiting();
  }

  resume(): void {
    this.#paused = false;
    this.#poke();
  }

  /** Gives up all leases, and claims nothing until `reopen` has ended. */
  async whileReopening(reopen: () => Promise<void>): Promise<void> {
    const wasPaused = this.#paused;
    this.#paused = true;
    this.#onDemand.cancelAll();
    this.#leases.loseAll();
    this.#drains.endAll();
    await atMost(this.#options.clock, REOPEN_MS, this.groupCommit.idle());
    this.#stopWaking?.();
    try {
      await reopen();
    } finally {
      if (this.#started) this.#listen();
      this.#paused = wasPaused;
      this.#poke();
    }
  }

  /** Stops claiming, returns leases that have not started, and resolves when the others have ended or `timeoutMs` has passed. */
  async stop(timeoutMs: number): Promise<void> {
    this.#started = false;
    this.#stopWaking?.();
    this.#dueTimer.stop();
    this.#stopping.abort();
    this.#drains.endAll();
    this.#returnWaiting();
    const over = new AbortController();
    const ended = this.#leases.untilEnded().then(() => over.abort());
    await Promise.race([ended, sleep(this.#options.clock, timeoutMs, over.signal)]);
    this.#leases.stopRenewing();
  }

  /**
   * Handles what is ready now. Rejects if the store fails meanwhile. Where a source holds events back, it waits for those that were there when
   * it began, because the process may not run again for a while. The store reports no reason, so gaps and backoffs that end by then are waited
   * for too. It also waits for what limits by key put off.
   */
  async drain(options: DrainOptions): Promise<DrainResult> {
    const parked = new Parked();
    this.#parkedOfDrains.add(parked);
    try {
      const { claimed, complete } = await this.#drain(options, parked);
      return { claimed: Math.max(0, claimed), complete };
    } finally {
      this.#parkedOfDrains.delete(parked);
    }
  }

  async #drain(options: DrainOptions, parked: Parked): Promise<DrainResult> {
    const { clock } = this.#options;
    const { budgetMs = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY } = options;
    const { holdBackMs } = this.#registered.entries;
    const startedAt = clock.monotonic();
    // All that was there is due by then, also by a store's clock, which counts whole milliseconds.
    const end = startedAt + holdBackMs + 1;
    let lookedAt = holdBackMs === 0 ? end : startedAt;
    let { claimed, complete } = await this.#drainReady(options);
    parked.close();
    while (complete) {
      parked.isCounted = false;
      const now = clock.monotonic();
      const parkedMs = parked.soonestMs(now);
      const heldBackMs = lookedAt < end ? await this.#heldBackMs(end) : null;
      if (parkedMs === null && heldBackMs === null) break;
      const dueInMs = Math.min(parkedMs ?? Number.POSITIVE_INFINITY, heldBackMs ?? Number.POSITIVE_INFINITY);
      if (dueInMs > startedAt + budgetMs - clock.monotonic()) return { claimed, complete: false };
      // In steps, so that a pause ends the drain.
      const waitMs = heldBackMs === null ? Math.min(dueInMs, LONGEST_STEP_MS) : dueInMs;
      if (waitMs > 0) await sleep(clock, waitMs, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return { claimed, complete: false };
      lookedAt = clock.monotonic();
      parked.forgetDue(lookedAt);
      claimed -= parked.takeReturned();
      const leftMs = startedAt + budgetMs - lookedAt;
      const next = await this.#drainReady({ budgetMs: Math.max(1, leftMs), limit: limit - Math.max(0, claimed) });
      claimed += next.claimed;
      complete = next.complete;
    }
    return { claimed, complete };
  }

  /** This process accepted an event that is held back for `ms`. */
  holdsBack(ms: number): void {
    this.#ownDueAt = Math.max(this.#ownDueAt, this.#options.clock.monotonic() + ms);
  }

  /** How long until events that are held back may be due, milliseconds: 0 once `end` has passed. Null if none is until `end`. */
  async #heldBackMs(end: number): Promise<number | null> {
    // Read before the store is asked: its answer may take long.
    const now = this.#options.clock.monotonic();
    if (now >= end) return 0;
    const dueInMs = await this.#nextDue();
    if (dueInMs === null) return null;
    if (now + dueInMs <= end) return Math.max(dueInMs, SHORTEST_WAIT_MS);
    // An event that this process accepted may be in a lane of another process, which ends before the event is due.
    return this.#ownDueAt > now && this.#ownDueAt <= end ? this.#ownDueAt - now : null;
  }

  /** One query for all drains that ask at once: those that wait are woken together. */
  #nextDue(): Promise<number | null> {
    this.#asking ??= nextRound().then(() => {
      // What is stored from here on may be missing in the answer.
      this.#asking = null;
      return this.#store.nextDue();
    });
    return this.#asking;
  }

  #drainReady({ budgetMs = Number.POSITIVE_INFINITY, limit }: DrainOptions): Promise<DrainResult> {
    const drained = this.#drains.begin({ ...(Number.isFinite(budgetMs) && { budgetMs }), ...(limit && { limit }) });
    if (this.#paused) this.#drains.endAll();
    this.#poke();
    return drained;
  }

  /**
   * Claims `lane` now, if it is due, even if the worker was not started. Calls `notDue` if `event` cannot be claimed: it waits for a gap
   * or a backoff, or another process has its lane. The end of its claim is reported as always.
   */
  claimOnDemand(lane: LaneId, event: EventId, notDue: () => void): void {
    const lease = this.#leases.of(lane);
    if (lease?.event === event) return;
    if (this.#paused) return notDue();
    this.#onDemand.add(lane, { event, notDue });
    if (lease === undefined) this.#claimLane(lane);
  }

  nextClaim(): ClaimRequest {
    const onDemand = this.#mayClaimOnDemand() ? this.#onDemand.nextClaim(this.#isActive()) : null;
    const { leaseMs, maxAttempts, onDead } = this.#options;
    const { entries } = this.#registered;
    const takes: Takes = (lane, eventType, late) => entries.takes(lane, eventType, late);
    const base = { leaseMs, maxAttempts, onDead, takes };
    if (onDemand !== null) return { ...base, limit: 1, ...onDemand };
    if (this.#recovery.wantsClaim && this.#isActive()) return { ...base, limit: 1, mode: "recover" };
    const bytesLeft = this.#leases.bytesLeft;
    const limit = this.#freeSlots(this.#onDemand.takeOwed(), bytesLeft > 0);
    return { ...base, limit, mode: "ordinary", maxBytes: Math.max(1, bytesLeft), ...this.#backlog.shareOf(limit) };
  }

  claimed(result: TurnResult, request: ClaimRequest, parsed: (acceptIndex: number) => object | null): void {
    const wanted = this.#areWanted(result.leases.length, request);
    if (request.mode === "ordinary" && request.lane === undefined)
      this.#backlog.claimed(result.leases, isUsedUp(request, result.leases), this.#options.clock.now());
    const { entries, instruments } = this.#registered;
    for (const record of result.retired) reportRetired(record, this.#events, entries);
    for (const untaken of result.untaken) reportUntaken(untaken, this.#events, instruments);
    // It shows nothing of the handlers: the next probe need not wait.
    if (result.untaken.length > 0) this.#breaker.probeAgain();
    for (const lease of result.leases) {
      this.#events.claimed(lease.lane);
      this.#leases.add(lease, lease.acceptIndex === null ? null : parsed(lease.acceptIndex));
    }
    this.#onDemand.claimed(request, result, this.#isActive());
    this.#drains.claimed(result.leases.length);
    this.#noteRecovery(result, request);
    if (wanted) this.#startWaiting();
    else this.#returnWaiting();
    this.#planNext(result, request);
    this.#afterEnd();
  }

  batchFailed(error: Error): void {
    this.#options.logger.error(
      placeFields(error),
      explained("The inbox could not be written; deliveries that were not stored are answered with 503.", error),
    );
    this.#onDemand.cancelAll();
    this.#drains.fail(error);
    this.#dueTimer.wakeAfterFailure();
  }

  /** False for leases of a claim that was being made when the worker was paused or stopped, or a drain was cut off. */
  #areWanted(leases: number, { lane, limit }: ClaimRequest): boolean {
    if (leases === 0 || this.#paused) return !this.#paused;
    return lane !== undefined || (this.#isActive() && !(this.#breaker.isOpen && limit > 1));
  }

  /** Lanes that are due, or become due, need a batch, an unfinished settle or a timer that comes back to them. */
  #planNext({ leases, retired, untaken }: TurnResult, request: ClaimRequest): void {
    const { mode, lane } = request;
    const ended = retired.length + untaken.length;
    if (this.#onDemand.hasClaims && this.#mayClaimOnDemand()) this.groupCommit.poke();
    // A claim of one lane, or of an expired lease that was gone, shows nothing about other lanes. After one that ended events there may be more.
    if (lane !== undefined || ended > 0 || (mode === "recover" && leases.length === 0)) this.#poke();
    const exhausted = mode === "ordinary" && lane === undefined && ended === 0 && !isUsedUp(request, leases);
    this.#mayBeMore = !exhausted;
    if (exhausted && !this.#recovery.isInProgress) this.#drains.nothingReady();
    if (this.#breaker.isOpen) this.#drains.endAll();
    if (this.#started && (exhausted || this.#breaker.isOpen)) this.#dueTimer.plan(this.#breaker.isOpen ? PROBE_MS : 0);
  }

  /** @param hasRoom - for the bytes of another body */
  #freeSlots(least: number, hasRoom: boolean): number {
    if (!this.#isActive() || this.#recovery.isInProgress) return 0;
    if (this.#breaker.isOpen) return this.#leases.isEmpty && this.#breaker.takeProbe() ? 1 : 0;
    const wanted = Math.max(least, hasRoom ? this.#leases.capacity - this.#leases.slotsTaken : 0);
    const free = this.#flow === null ? wanted : Math.min(wanted, this.#flow.room);
    return this.#started ? free : Math.min(free, this.#drains.remaining);
  }

  #noteRecovery(result: TurnResult, request: ClaimRequest): void {
    if (request.mode === "recover" && request.lane === undefined)
      return this.#recovery.claimed(result.leases.length > 0);
    if (!result.recoveryDue || this.#recovery.isInProgress || !this.#isActive()) return;
    this.#recovery.begin();
    this.#returnWaiting();
  }

  /** A synchronous handler frees its slot within this loop: that must not start the loop again. */
  #startWaiting(): void {
    if (this.#starting) return;
    this.#starting = true;
    let started = 0;
    try {
      for (let held = this.#leases.next(); held !== null; held = this.#leases.next(), started++) this.#run(held);
    } finally {
      this.#starting = false;
    }
    // There is room for others of their keys.
    if (this.#flow !== null && started > 0 && this.#mayBeMore) this.#poke();
  }

  #run(held: HeldLease): void {
    const startedAt = this.#options.clock.monotonic();
    const run = this.#runner.run(held.lease, held.parsed, (verdict) => {
      const durationMs = this.#options.clock.monotonic() - startedAt;
      this.#leases.finished(held, durationMs);
      this.#settle(held.lease, verdict, durationMs);
    });
    this.#leases.started(held, run);
  }

  #settle(lease: Lease, verdict: Verdict<Tx>, durationMs: number): void {
    const probeDelayMs = this.#breaker.isOpen ? PROBE_MS : null;
    const settle = settleFor(lease, verdict, { durationMs, probeDelayMs }, this.#options);
    this.#followBreaker(this.#breaker.ended(lease.lane, verdict));
    this.groupCommit.settle(settle, (result) => {
      if (result.status === "unfinished") return this.#leases.keepUnfinished(lease);
      this.#followBreaker(this.#breaker.committed(verdict, result.status));
      if (result.status === "effect_failed" && verdict.kind === "complete") {
        const masking = this.#registered.entries.masking(lease.key, lease, verdict.event);
        return this.#settle(lease, failed(result.error, masking), durationMs);
      }
      this.#end(lease);
      reportEnd({ lease, verdict, settle, durationMs }, result, this.#events, this.#options.logger);
      this.#afterEnd();
    });
    this.#startWaiting();
  }

  #followBreaker(change: BreakerChange): void {
    if (change === "closed" || change === "probe_again") this.#poke();
    if (change !== "opened") return;
    this.#returnWaiting();
    this.#dueTimer.wakeIn(PROBE_MS);
  }

  #end(lease: Lease): void {
    const freed = this.#leases.end(lease);
    if (freed.slot) this.#poke();
    if (freed.lane) this.#claimLane(lease.lane);
  }

  #claimLane(lane: LaneId): void {
    this.#onDemand.wantClaim(lane);
    if (this.#onDemand.hasClaims) this.groupCommit.poke();
  }

  #drainsCutOff(): void {
    if (this.#started || this.#drains.active) return;
    this.#returnWaiting();
    if (this.#onDemand.hasClaims) this.groupCommit.poke();
  }

  #lostBeforeStart(lease: Lease): void {
    this.#endUnstarted(lease);
    this.#poke();
  }

  /** Returns leases that have not started to the queue, with their attempt. */
  #returnWaiting(): void {
    const waiting = this.#leases.takeWaiting();
    this.#drains.returned(waiting.map(({ lane }) => lane));
    for (const lease of waiting) {
      this.groupCommit.settle({ kind: "release", lease, delayMs: 0, ran: false }, () => this.#endUnstarted(lease));
    }
  }

  /** Returns a lease to its queue for `delayMs`: limits by key do not let it start soon. */
  #park(lease: Lease, delayMs: number): void {
    this.groupCommit.settle({ kind: "release", lease, delayMs, ran: false }, () => {
      // A store counts whole milliseconds.
      const dueAt = this.#options.clock.monotonic() + delayMs + 1;
      for (const parked of this.#parkedOfDrains) parked.add(lease.lane, dueAt);
      this.#drains.returned([lease.lane]);
      this.#endUnstarted(lease);
    });
  }

  #endUnstarted(lease: Lease): void {
    this.#end(lease);
    this.#events.ended(lease.event, "put_back");
    this.#afterEnd();
  }

  #isActive(): boolean {
    return (this.#started || this.#drains.active) && !this.#paused;
  }

  /** An expired lease is retried alone, so requests that claim a lane wait for its end too. */
  #mayClaimOnDemand(): boolean {
    return !this.#paused && !(this.#recovery.isInProgress && this.#isActive());
  }

  #poke(): void {
    if (this.#isActive()) this.groupCommit.poke();
  }

  /** Recovery goes on when no lease is held. */
  #afterEnd(): void {
    if (this.#leases.isEmpty && this.#recovery.idle()) this.#poke();
  }
}

/** Whether a claim took as much as it could, so that more may be due. */
function isUsedUp({ limit, maxBytes = NO_BOUND }: ClaimRequest, leases: readonly Lease[]): boolean {
  return leases.length >= limit || leases.reduce((sum, { raw }) => sum + raw.byteLength, 0) >= maxBytes;
}

/** The lanes that were parked while a drain ran, and when each is due, monotonic. */
class Parked {
  readonly #dueAt = new Map<LaneId, number>();
  /** Null until the drain has looked at all that was ready. After that no other lanes are added, so that it ends under steady traffic. */
  #lanes: ReadonlySet<LaneId> | null = null;
  /** `Drains` counts what is returned. It does not while the drain sleeps. */
  isCounted = true;
  #returned = 0;

  /** How many were returned while `Drains` did not count them. From now on it does. */
  takeReturned(): number {
    const returned = this.#returned;
    this.#returned = 0;
    this.isCounted = true;
    return returned;
  }

  add(lane: LaneId, dueAt: number): void {
    if (!this.isCounted) this.#returned++;
    if (this.#lanes?.has(lane) ?? true) this.#dueAt.set(lane, dueAt);
  }

  close(): void {
    this.#lanes = new Set(this.#dueAt.keys());
  }

  soonestMs(now: number): number | null {
    let soonest = Number.POSITIVE_INFINITY;
    for (const dueAt of this.#dueAt.values()) soonest = Math.min(soonest, dueAt);
    return soonest === Number.POSITIVE_INFINITY ? null : Math.max(soonest - now, SHORTEST_WAIT_MS);
  }

  /** They are claimed now, by this process or another one. One that is parked again is added again. */
  forgetDue(now: number): void {
    for (const [lane, dueAt] of this.#dueAt) if (dueAt <= now) this.#dueAt.delete(lane);
  }
}

/** Of the lanes of a claim, so much are for fresh events while older ones wait, and the rest for the older ones: neither starves. */
const FRESH_SHARE = 0.75;

/** Whether events wait that are not fresh, and what fresh ones get of the next claim. */
class Backlog {
  #isThere = false;
  #credit = 0;

  /** A claim came back. */
  claimed(leases: readonly Lease[], isUsedUp: boolean, now: number): void {
    if (!isUsedUp) this.#isThere = false;
    else if (!leases.every((lease) => isFreshEvent(lease, now))) this.#isThere = true;
  }

  shareOf(limit: number): Pick<ClaimRequest, "fresh"> {
    if (!this.#isThere) return {};
    this.#credit += limit * FRESH_SHARE;
    const fresh = Math.floor(this.#credit);
    this.#credit -= fresh;
    return { fresh };
  }
}

/**
 * An expired lease may belong to an event that kills its process. So running handlers end first, then that one lease is claimed alone,
 * and nothing else is claimed until it has ended: the event takes no others with it.
 */
class Recovery {
  #state: "none" | "waiting" | "claiming" | "running" = "none";

  get isInProgress(): boolean {
    return this.#state !== "none";
  }

  /** The next claim is for the expired lease. */
  get wantsClaim(): boolean {
    return this.#state === "claiming";
  }

  begin(): void {
    this.#state = "waiting";
  }

  /** The claim came back with the lease, or without: another process was first. */
  claimed(found: boolean): void {
    this.#state = found ? "running" : "none";
  }

  /** No lease is held. Returns true if there is something new to claim. */
  idle(): boolean {
    if (this.#state === "waiting") this.#state = "claiming";
    else if (this.#state === "running") this.#state = "none";
    else return false;
    return true;
  }
}

/** While the worker has paused itself, one event is tried at this interval. */
export const PROBE_MS = 5_000;

/** Failures in a row, each of another lane: one message alone cannot pause the worker. */
const WINDOW = 20;

/** What a verdict changed. */
type BreakerChange = "opened" | "closed" | "probe_again" | null;

/** Pauses the worker when every handler fails, so that events wait instead of using up their attempts. */
export class Breaker {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #failing = new Set<LaneId>();
  /**
   * Handlers that returned and whose effects are not committed yet. Each may still prove that not every handler fails, so that many more
   * lanes must fail. Waiting until there are none could take forever under load.
   */
  #undecided = 0;
  #open = false;
  #nextProbeAt = 0;

  constructor(clock: Clock, logger: Logger) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** The last 20 lanes failed in a row: only probes run. */
  get isOpen(): boolean {
    return this.#open;
  }

  /**
   * The handlers of an event ended. Called before that end is committed, so that as few claimed events as possible fail. A
   * `PermanentError` is not a failure: it shows that the handler works.
   */
  ended<Tx>(lane: LaneId, verdict: Verdict<Tx>): BreakerChange {
    if (verdict.kind === "absent") return null;
    if (verdict.kind === "failed" && verdict.permanent) return this.#open ? this.#succeeded() : null;
    if (verdict.kind === "failed") return this.#failed(lane);
    if (verdict.outcome !== "handled") return null;
    if (verdict.effects.length === 0) return this.#succeeded();
    this.#undecided++;
    return null;
  }

  /**
   * The end that `ended` received is committed, or has failed: an effect that threw is a failure of its own, for `ended`. A probe of an
   * event without a handler shows nothing, so the next one need not wait.
   */
  committed<Tx>(verdict: Verdict<Tx>, status: SettleResult["status"]): BreakerChange {
    if (verdict.kind === "failed") return null;
    if (verdict.kind === "absent" || verdict.outcome !== "handled") return this.probeAgain();
    if (verdict.effects.length === 0) return null;
    this.#undecided--;
    return status === "settled" ? this.#succeeded() : null;
  }

  /** The last one found no event with a handler. */
  probeAgain(): BreakerChange {
    if (!this.#open) return null;
    this.#nextProbeAt = this.#clock.monotonic();
    return "probe_again";
  }

  #succeeded(): BreakerChange {
    this.#failing.clear();
    if (!this.#open) return null;
    this.#open = false;
    this.#logger.info({ code: "worker_resumed" }, "A probe succeeded: the worker handles events again.");
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
      "Every handler failed: the worker paused itself, and tries one event at a time.",
    );
    return "opened";
  }

  /** True if a probe may be claimed now. It then counts as taken. */
  takeProbe(): boolean {
    const now = this.#clock.monotonic();
    if (now < this.#nextProbeAt) return false;
    this.#nextProbeAt = now + PROBE_MS;
    return true;
  }
}

/**
 * A process that lacks a source comes so much later to lanes that are due, or up to twice as much: the process that has it is first. Where
 * both lack one, chance decides. If both came at once, the same one could be first each time, and leave an event waiting forever.
 */
const YIELD_MS = 1_000;

/** After a failure the store is asked again this much later. */
const STORE_RETRY_MS = 1_000;

/** One timer for the next lane that comes due, instead of polling. */
export class DueTimer {
  readonly #store: Pick<InboxStore, "nextDue">;
  readonly #clock: Clock;
  readonly #wake: () => void;
  readonly #afterDueMs: () => number;
  #timer: Timer | null = null;
  /** `asked_again`: the pending answer may be older than the change that the plan was made for. */
  #planning: "no" | "soon" | "asked" | "asked_again" = "no";
  #leastMs = 0;

  /** @param afterDueMs - how long after a lane is due to wake. Default 0 */
  constructor(store: Pick<InboxStore, "nextDue">, clock: Clock, wake: () => void, afterDueMs = () => 0) {
    this.#store = store;
    this.#clock = clock;
    this.#wake = wake;
    this.#afterDueMs = afterDueMs;
  }

  /** Wakes when the next lane is due, `leastMs` from now at the earliest. Asks the store once per round of the event loop. */
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

  /** The batch may have been stored all the same: a pending answer may be older. */
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
    if (dueInMs !== null) this.wakeIn(Math.max(dueInMs + this.#afterDueMs(), this.#leastMs));
    if (again) this.plan(this.#leastMs);
  }

  #answered(): { readonly again: boolean; readonly stopped: boolean } {
    const planning = this.#planning;
    this.#planning = "no";
    return { again: planning === "asked_again", stopped: planning === "no" };
  }
}
