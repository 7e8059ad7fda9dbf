/**
 * Group commit: what arrives while one write transaction commits becomes the next batch. There is no timer, so no added latency. A batch
 * starts once its queue has stopped growing for one more `setImmediate`.
 */
import { StoreError } from "../errors.ts";
import { atMost, type Clock, type Timer } from "../internal/clock.ts";
import { USER_SHAPED } from "../internal/json.ts";
import type { Registered } from "./handlers.ts";
import { repeatsWith } from "./lane.ts";
import { identityText } from "./lane-key.ts";
import type { NewEvent, NewQuarantine, Repeats } from "./record.ts";
import type {
  Acceptance,
  ClaimRequest,
  Effect,
  InboxStore,
  QuarantineAnswer,
  QuarantineQuota,
  Settle,
  SettleResult,
  TurnResult,
} from "./store.ts";

/** Called once: with the result, or with the reason why nothing was stored. */
type Callback<T> = (error: Error | null, result: T | null) => void;

interface QueuedAccept {
  readonly identity: string;
  readonly event: NewEvent;
  readonly parsed: object;
  readonly done: Callback<Acceptance>;
  /** Of identical deliveries that came while this one waited: they are answered as its duplicates. */
  readonly joined: Callback<Acceptance>[];
  repeats?: Repeats;
}

interface QueuedQuarantine {
  readonly quarantine: NewQuarantine;
  readonly done: Callback<QuarantineAnswer>;
}

interface QueuedSettle<Tx> {
  readonly settle: Settle<Tx>;
  readonly done: (result: SettleResult) => void;
}

/** What one write transaction stores. */
interface Batch<Tx> {
  readonly accepts: readonly QueuedAccept[];
  readonly quarantines: readonly QueuedQuarantine[];
  readonly settles: readonly QueuedSettle<Tx>[];
}

/** The worker: it decides what each batch claims, and receives the leases. */
export interface ClaimDriver {
  /** It claims what becomes due without being asked. */
  readonly isStarted: boolean;
  /** Called once for each batch. */
  nextClaim(): ClaimRequest;
  /** `parsed(acceptIndex)` returns the event of a lease taken at accept, so that it need not be parsed again. */
  claimed(result: TurnResult, request: ClaimRequest, parsed: (acceptIndex: number) => object | null): void;
  /** Nothing of the batch was stored, or all of it and the answer was lost. */
  batchFailed(error: Error): void;
}

export interface GroupCommitLimits {
  /** Events in one batch. */
  readonly maxEvents: number;
  /** Bytes of bodies in one batch. */
  readonly maxBytes: number;
  /** Deliveries that wait for a batch. Further ones are refused with `overloaded`. */
  readonly maxQueued: number;
  readonly quarantineQuota: QuarantineQuota;
}

export interface GroupCommitOptions {
  readonly clock: Clock;
  readonly limits?: Partial<GroupCommitLimits>;
}

const LIMITS: GroupCommitLimits = {
  maxEvents: 256,
  maxBytes: 4 * 1024 * 1024,
  maxQueued: 4_096,
  quarantineQuota: { maxRows: 1_000, maxBytes: 64 * 1024 * 1024, givingWay: USER_SHAPED },
};

/** How long a store that does not answer can delay the end. */
const CLOSE_MS = 5_000;
const RETRY_MS = { first: 50, longest: 5_000 } as const;
/** With a limit of 0 the other fields do not matter. */
const NO_CLAIM = {
  limit: 0,
  leaseMs: 0,
  maxAttempts: 1,
  onDead: "continue",
  mode: "ordinary",
  takes: () => true,
} as const;

export class GroupCommit<Tx> {
  readonly #store: Pick<InboxStore<Tx>, "step" | "capabilities">;
  readonly #clock: Clock;
  readonly #driver: ClaimDriver;
  readonly #registered: Registered<Tx>;
  readonly #limits: GroupCommitLimits;
  readonly #accepts: AcceptQueue;
  readonly #quarantines: QueuedQuarantine[] = [];
  readonly #settles: QueuedSettle<Tx>[] = [];
  /** Settles that failed with their batch or are unfinished, until the next try. Deliveries need not wait for them. */
  readonly #postponed: QueuedSettle<Tx>[] = [];
  #wanted = false;
  #scheduled = false;
  #committing = false;
  /**
   * The batch that is being committed has effects, which can take long: another batch accepts meanwhile. Only with declared effects, which
   * run in the batch's own statements, does it take the deliveries that wait already.
   */
  #acceptsApart = false;
  /** A batch of accepts alone is being committed, in parallel to the other one. */
  #accepting = false;
  #retryMs: number = RETRY_MS.first;
  #retryTimer: Timer | null = null;
  readonly #idle: (() => void)[] = [];
  #closed = false;

  constructor(
    store: Pick<InboxStore<Tx>, "step" | "capabilities">,
    driver: ClaimDriver,
    registered: Registered<Tx>,
    { clock, limits }: GroupCommitOptions,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#driver = driver;
    this.#registered = registered;
    this.#limits = { ...LIMITS, ...limits };
    this.#accepts = new AcceptQueue(this.#limits);
  }

  /** Stores an event. `done` is called after the commit. */
  accept(event: NewEvent, parsed: object, done: Callback<Acceptance>): void {
    const identity = identityText(event);
    if (this.#accepts.join(identity, event, done)) return;
    this.#enqueue(this.#accepts, { identity, event, parsed, done, joined: [] });
  }

  quarantine(quarantine: NewQuarantine, done: Callback<QuarantineAnswer>): void {
    this.#enqueue(this.#quarantines, { quarantine, done });
  }

  /**
   * Stores the end of a claim. If its batch fails, or its effects are unfinished, it is tried again until the store knows the end.
   * `done` is called with that end, and with `unfinished` before.
   */
  settle(settle: Settle<Tx>, done: (result: SettleResult) => void): void {
    if (this.#closed) return done({ status: "lost" });
    this.#settles.push({ settle, done });
    this.#schedule();
  }

  /** Asks for a batch even if nothing is queued: the worker wants to claim. */
  poke(): void {
    this.#wanted = true;
    this.#schedule();
  }

  /** Resolves when nothing is queued and no batch is being committed. */
  idle(): Promise<void> {
    if (!this.#isBusy() && !this.#scheduled && this.#postponed.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /**
   * Writes what is queued, for 5 s at most. After that nothing is tried again: deliveries are refused. A claim whose end was not stored
   * counts as lost, because the next process claims it when its lease expires.
   */
  async close(): Promise<void> {
    await atMost(this.#clock, CLOSE_MS, this.idle());
    this.#closed = true;
    this.#retryTimer?.cancel();
    // Postponed settles may have joined the queue again, behind a batch that does not end.
    lose([...this.#settles.splice(0), ...this.#postponed.splice(0)]);
    fail([...this.#accepts.takeAll(), ...this.#quarantines.splice(0)], closed());
  }

  #isBusy(): boolean {
    return this.#committing || this.#accepting;
  }

  #enqueue<Item extends { readonly done: Callback<never> }>(queue: { push(item: Item): void }, item: Item): void {
    const isFull = this.#accepts.length + this.#quarantines.length >= this.#limits.maxQueued;
    if (this.#closed || isFull) return item.done(this.#closed ? closed() : overloaded(), null);
    queue.push(item);
    this.#schedule();
  }

  #queued(): number {
    return this.#accepts.length + this.#quarantines.length + this.#settles.length;
  }

  #schedule(): void {
    if (this.#scheduled || (this.#committing && !this.#mayAcceptInParallel())) return;
    this.#scheduled = true;
    // Never at once: a request that was just answered may want its event claimed, before the next claim is made.
    const queued = this.#queued();
    setImmediate(() => this.#startOnceSteady(queued));
  }

  /** Starts the batch once nothing more has arrived for one round of the event loop, or once it is full. */
  #startOnceSteady(before: number): void {
    const queued = this.#queued();
    if (queued > before && queued < this.#limits.maxEvents) {
      setImmediate(() => this.#startOnceSteady(queued));
      return;
    }
    this.#scheduled = false;
    // Another batch may have taken everything meanwhile.
    if (queued === 0 && !this.#wanted) return this.#continue();
    if (!this.#committing) void this.#commit();
    else if (this.#mayAcceptInParallel()) void this.#commitAccepts();
  }

  /** Deliveries do not wait for effects if the store takes another batch meanwhile. Without effects one larger batch costs less than two. */
  #mayAcceptInParallel(): boolean {
    return this.#acceptsApart && !this.#accepting && this.#accepts.length > 0;
  }

  async #commitAccepts(): Promise<void> {
    this.#accepting = true;
    const batch = { accepts: this.#accepts.take(), quarantines: [], settles: [] };
    const result = await this.#try(batch, NO_CLAIM);
    if (result !== null) {
      answer(batch.accepts, result);
      // The accepted events may be due, and this batch claims nothing.
      if (this.#driver.isStarted) this.#wanted = true;
    }
    this.#accepting = false;
    this.#continue();
  }

  async #commit(): Promise<void> {
    this.#committing = true;
    this.#wanted = false;
    const { maxEvents, maxBytes } = this.#limits;
    const settles = this.#settles.splice(0);
    const effects = effectsOf(settles);
    this.#acceptsApart = this.#store.capabilities.parallelTurns === true && effects.length > 0;
    const acceptsNone = this.#acceptsApart && effects.some((effect) => typeof effect === "function");
    const batch: Batch<Tx> = {
      settles,
      accepts: acceptsNone ? [] : this.#accepts.take(),
      quarantines: takeUpTo(this.#quarantines, maxEvents, maxBytes, ({ quarantine }) => quarantine.raw.byteLength),
    };
    const claim = this.#driver.nextClaim();
    const committing = this.#try(batch, claim);
    if (this.#mayAcceptInParallel()) void this.#commitAccepts();
    const result = await committing;
    if (result !== null) this.#succeeded(batch, claim, result);
    this.#committing = false;
    this.#acceptsApart = false;
    this.#continue();
  }

  /** Null if the batch failed. Then all callbacks of its items have been called. */
  async #try(batch: Batch<Tx>, claim: ClaimRequest): Promise<TurnResult | null> {
    try {
      return await this.#step(batch, claim);
    } catch (thrown) {
      const error =
        thrown instanceof Error ? thrown : new StoreError("store_unavailable", "The store failed.", { cause: thrown });
      this.#failed(batch, error);
      return null;
    }
  }

  #step({ accepts, quarantines, settles }: Batch<Tx>, claim: ClaimRequest): Promise<TurnResult> {
    return this.#registered.instruments.timedStep(this.#store, {
      settles: settles.map((queued) => queued.settle),
      accepts: accepts.map(({ event, repeats }) => (repeats === undefined ? event : { ...event, repeats })),
      quarantines: quarantines.map((queued) => queued.quarantine),
      quarantineQuota: this.#limits.quarantineQuota,
      claim,
    });
  }

  #succeeded({ accepts, quarantines, settles }: Batch<Tx>, claim: ClaimRequest, result: TurnResult): void {
    this.#retryMs = RETRY_MS.first;
    this.#retryPostponed();
    answer(accepts, result);
    for (const [index, { done }] of quarantines.entries()) guard(() => done(null, result.quarantined[index] ?? null));
    const unfinished: QueuedSettle<Tx>[] = [];
    for (const [index, queued] of settles.entries()) {
      const settled = result.settled[index] ?? { status: "lost" };
      if (settled.status === "unfinished") unfinished.push(queued);
      guard(() => queued.done(settled));
    }
    this.#postpone(unfinished);
    guard(() => this.#driver.claimed(result, claim, (index) => accepts[index]?.parsed ?? null));
  }

  #failed({ accepts, quarantines, settles }: Batch<Tx>, error: Error): void {
    fail([...accepts, ...quarantines], error);
    guard(() => this.#driver.batchFailed(error));
    this.#postpone(settles);
  }

  #postpone(settles: readonly QueuedSettle<Tx>[]): void {
    if (settles.length === 0) return;
    if (this.#closed) return lose(settles);
    this.#postponed.push(...settles);
    if (this.#retryTimer === null) {
      this.#retryTimer = this.#clock.setTimeout(() => {
        this.#retryPostponed();
        this.#schedule();
      }, this.#retryMs);
      // A drain waits for it, and handled events would be handled again if the process ended now.
      this.#retryTimer.keepAlive();
    }
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS.longest);
  }

  /** The postponed settles join the next batch: it is time to try again, or the store has answered meanwhile. */
  #retryPostponed(): void {
    this.#retryTimer?.cancel();
    this.#retryTimer = null;
    this.#settles.unshift(...this.#postponed.splice(0));
  }

  #continue(): void {
    if (this.#wanted || this.#queued() > 0) return this.#schedule();
    if (this.#postponed.length > 0 || this.#isBusy()) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

function effectsOf<Tx>(settles: readonly QueuedSettle<Tx>[]): readonly Effect<Tx>[] {
  return settles.flatMap(({ settle }) => (settle.kind === "complete" ? settle.effects : []));
}

function answer(accepts: readonly QueuedAccept[], { accepted }: TurnResult): void {
  for (const [index, { event, done, joined }] of accepts.entries()) {
    const acceptance = accepted[index] ?? null;
    guard(() => done(null, acceptance));
    const repeated = acceptance === null ? null : repeatOf(event, acceptance);
    for (const one of joined) guard(() => one(null, repeated));
  }
}

/** What an identical delivery that was joined to this one is answered. */
function repeatOf(event: NewEvent, acceptance: Acceptance): Acceptance {
  if (acceptance.outcome === "duplicate" || acceptance.outcome === "failed") return acceptance;
  const { event: id, lane, outcome } = acceptance;
  const { digest, signedAt, externalReference } = event;
  const state = outcome === "filtered" ? "done" : "pending";
  const reference = event.lane.order === null ? externalReference : null;
  return { outcome: "duplicate", event: id, lane, state, digest, signedAt, conflict: false, reference };
}

function fail(queued: readonly (QueuedAccept | QueuedQuarantine)[], error: Error): void {
  for (const { done, ...rest } of queued) {
    guard(() => done(error, null));
    if ("joined" in rest) for (const one of rest.joined) guard(() => one(error, null));
  }
}

/** Their claims count as lost, because nothing is written any more. */
function lose<Tx>(settles: readonly QueuedSettle<Tx>[]): void {
  for (const { done } of settles) guard(() => done({ status: "lost" }));
}

function overloaded(): StoreError {
  return new StoreError("overloaded", "More deliveries wait for the inbox than it can store now; the service retries.");
}

function closed(): StoreError {
  return new StoreError("closed", "The inbox was closed before the delivery was stored; the service retries.");
}

/** Takes from the front of `queue` up to `most` items with `mostBytes` together, at least one. */
function takeUpTo<T>(queue: T[], most: number, mostBytes: number, bytesOf: (item: T) => number): T[] {
  let count = 0;
  let bytes = 0;
  for (const item of queue) {
    bytes += bytesOf(item);
    if (count === most || (bytes > mostBytes && count > 0)) break;
    count++;
  }
  return queue.splice(0, count);
}

/** A callback that throws, such as one with the application's logger, must not fail the batch: its error becomes an uncaught exception. */
function guard(callback: () => void): void {
  try {
    callback();
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

/** Deliveries that wait for a batch. Identical ones wait as one: a flood of one event then costs a row and not many. */
class AcceptQueue {
  readonly #items: QueuedAccept[] = [];
  readonly #byIdentity = new Map<string, QueuedAccept>();
  readonly #limits: GroupCommitLimits;

  constructor(limits: GroupCommitLimits) {
    this.#limits = limits;
  }

  get length(): number {
    return this.#items.length;
  }

  push(item: QueuedAccept): void {
    this.#items.push(item);
    this.#byIdentity.set(item.identity, item);
  }

  /** Joins a delivery to an identical one that waits. False if there is none. */
  join(identity: string, event: NewEvent, done: Callback<Acceptance>): boolean {
    const item = this.#byIdentity.get(identity);
    if (item === undefined || Buffer.compare(item.event.digest, event.digest) !== 0) return false;
    item.repeats = repeatsWith(event, item.repeats);
    item.joined.push(done);
    return true;
  }

  /** What fits into one batch, oldest first. */
  take(): QueuedAccept[] {
    const { maxEvents, maxBytes } = this.#limits;
    return this.#left(takeUpTo(this.#items, maxEvents, maxBytes, ({ event }) => event.raw.byteLength));
  }

  takeAll(): QueuedAccept[] {
    return this.#left(this.#items.splice(0));
  }

  #left(taken: QueuedAccept[]): QueuedAccept[] {
    for (const { identity } of taken) this.#byIdentity.delete(identity);
    return taken;
  }
}
