/**
 * Group commit: what arrives while one write transaction commits becomes the next one. There is no timer and so no added
 * latency: a turn starts once its queue has stopped growing over one more `setImmediate`, or before that where a store takes
 * several turns at once and can write what waits quickly, so that it works while the next deliveries are read.
 */
import { StoreError } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import { atMost, type Clock, type Timer } from "../internal/clock.ts";
import type { EventId, NewEvent, NewQuarantine } from "./record.ts";
import type {
  Acceptance,
  ClaimRequest,
  InboxStore,
  QuarantineAnswer,
  QuarantineQuota,
  Repeat,
  Settle,
  SettleResult,
  Turn,
  TurnResult,
} from "./store.ts";

/** The worker, as the batcher sees it: it says what to claim, and gets what was claimed. */
export interface ClaimDriver {
  /** What becomes due is claimed by itself. */
  readonly isStarted: boolean;
  /** Asked as each turn is made. */
  nextClaim(): ClaimRequest;
  /** `parsed(acceptIndex)` gives the event of a lease taken at accept, so that it need not be parsed again. */
  claimed(result: TurnResult, request: ClaimRequest, parsed: (acceptIndex: number) => WebhookEvent | null): void;
  /** The turn failed: nothing of it happened, or all of it and the answer was lost. */
  turnFailed(error: Error): void;
}

export interface BatcherOptions extends AcceptLimits {
  /** Accepts waiting for a turn at most; beyond it they are refused with `overloaded`. */
  readonly maxQueued: number;
  readonly quarantineQuota: QuarantineQuota;
  readonly lateEvents: () => Turn<unknown>["lateEvents"];
}

/** How long a store that does not answer may hold up the end. */
const CLOSE_MS = 5_000;
const RETRY_MS = { first: 50, longest: 5_000 } as const;
/** Without a slot the rest is not looked at. */
const NO_CLAIM = { limit: 0, leaseMs: 0, maxAttempts: 1, onDead: "continue", mode: "ordinary" } as const;

/** What the batcher asks of a store. */
export type TurnTaker<Tx> = Pick<InboxStore<Tx>, "step" | "acceptsQuickly" | "capabilities">;

export class Batcher<Tx> {
  readonly #store: TurnTaker<Tx>;
  readonly #clock: Clock;
  readonly #driver: ClaimDriver;
  readonly #options: BatcherOptions;
  readonly #accepts: AcceptQueue;
  readonly #quarantines: QueuedQuarantine[] = [];
  readonly #settles: QueuedSettle<Tx>[] = [];
  /** Settles of a turn that failed, and unfinished ones, until the next try: deliveries need not wait for that. */
  readonly #postponed: QueuedSettle<Tx>[] = [];
  readonly #repeats: Repeats;
  #wanted = false;
  #scheduled = false;
  #turning = false;
  /** A turn of accepts alone is under way beside the other one, or was before that one. */
  #acceptingBeside = false;
  #retryMs: number = RETRY_MS.first;
  #retryTimer: Timer | null = null;
  readonly #idle: (() => void)[] = [];
  #closed = false;

  constructor(store: TurnTaker<Tx>, clock: Clock, driver: ClaimDriver, options: BatcherOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#driver = driver;
    this.#options = options;
    this.#accepts = new AcceptQueue(options, (event) => store.acceptsQuickly?.(event) ?? false);
    this.#repeats = new Repeats(clock, () => this.poke());
  }

  /** Stores an event; `done` is called after the commit. */
  accept(event: NewEvent, parsed: WebhookEvent, done: Callback<Acceptance>): void {
    this.#enqueue(this.#accepts, { event, parsed, done });
    if (this.#accepts.isQuickTurn && this.#mayAcceptBeside()) void this.#acceptBeside();
  }

  quarantine(quarantine: NewQuarantine, done: Callback<QuarantineAnswer>): void {
    this.#enqueue(this.#quarantines, { quarantine, done });
  }

  /**
   * Settles a claim. What fails with its turn, or is unfinished, is tried again until the store knows its end; `done` is called
   * with it, and each time before with `unfinished`.
   */
  settle(settle: Settle<Tx>, done: (result: SettleResult) => void): void {
    if (this.#closed) return done({ status: "lost" });
    this.#settles.push({ settle, done });
    this.#schedule();
  }

  /** Counts duplicates that were answered without the store. */
  repeat(repeat: Repeat): void {
    if (!this.#closed) this.#repeats.add(repeat);
  }

  /** Asks for a turn, even with nothing to write: the driver wants to claim, or repeats want counting. */
  poke(): void {
    this.#wanted = true;
    this.#schedule();
  }

  /** Resolves when nothing is queued and no turn is under way. */
  idle(): Promise<void> {
    if (!this.#isBusy() && !this.#scheduled && this.#postponed.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  /**
   * Writes what is queued, for 5 s at most. After it nothing is tried again: deliveries are refused, and a claim that was
   * not settled counts as lost, since the next process claims it when its lease ends.
   */
  async close(): Promise<void> {
    this.#repeats.writeNow();
    await atMost(this.#clock, CLOSE_MS, this.idle());
    this.#closed = true;
    this.#repeats.stop();
    this.#retryTimer?.cancel();
    // Of those that were to be tried again some may have joined the next turn, which waits for one that does not end.
    lose([...this.#settles.splice(0), ...this.#postponed.splice(0)]);
    for (const { done } of [...this.#accepts.takeAll(), ...this.#quarantines.splice(0)])
      guard(() => done(closed(), null));
  }

  #isBusy(): boolean {
    return this.#turning || this.#acceptingBeside;
  }

  #enqueue<Item extends { readonly done: Callback<never> }>(queue: { push(item: Item): void }, item: Item): void {
    const isFull = this.#accepts.length + this.#quarantines.length >= this.#options.maxQueued;
    if (this.#closed || isFull) return item.done(this.#closed ? closed() : overloaded(), null);
    queue.push(item);
    this.#schedule();
  }

  #queued(): number {
    return this.#accepts.length + this.#quarantines.length + this.#settles.length;
  }

  #schedule(): void {
    if (this.#scheduled || (this.#turning && !this.#mayAcceptBeside())) return;
    this.#scheduled = true;
    // Never at once: who was just answered may want its event driven, and must be heard before the next claim.
    const queued = this.#queued();
    setImmediate(() => this.#whenSettled(queued));
  }

  /** Starts the turn once no more has come in over one round of the event loop, or once it is full. */
  #whenSettled(before: number): void {
    const queued = this.#queued();
    if (queued > before && queued < this.#options.maxEvents) {
      setImmediate(() => this.#whenSettled(queued));
      return;
    }
    this.#scheduled = false;
    // What asked for it may have been taken meanwhile.
    if (queued === 0 && !this.#wanted) return this.#continue();
    if (!this.#turning) void this.#turn();
    else if (this.#mayAcceptBeside()) void this.#acceptBeside();
  }

  /** Deliveries need not wait for the turn under way where the store takes another one meanwhile. */
  #mayAcceptBeside(): boolean {
    return this.#store.capabilities.parallelTurns === true && !this.#acceptingBeside && this.#accepts.length > 0;
  }

  async #acceptBeside(): Promise<void> {
    this.#acceptingBeside = true;
    const taken = { accepts: this.#accepts.take(), quarantines: [], settles: [], repeats: [] };
    const result = await this.#try(taken, NO_CLAIM);
    if (result !== null) {
      answer(taken.accepts, result);
      // What was accepted may be due, and this turn claims nothing.
      if (this.#driver.isStarted) this.#wanted = true;
    }
    this.#acceptingBeside = false;
    this.#continue();
  }

  async #turn(): Promise<void> {
    this.#turning = true;
    this.#wanted = false;
    const { maxEvents, maxBytes } = this.#options;
    const taken: Taken<Tx> = {
      accepts: this.#accepts.take(),
      quarantines: takeUpTo(this.#quarantines, maxEvents, maxBytes, ({ quarantine }) => quarantine.raw.byteLength),
      settles: this.#settles.splice(0),
      repeats: this.#repeats.take(),
    };
    const claim = this.#driver.nextClaim();
    const result = await this.#try(taken, claim);
    if (result !== null) this.#succeeded(taken, claim, result);
    this.#turning = false;
    this.#continue();
  }

  /** Null when the turn failed, which all who wait for it have been told then. */
  async #try(taken: Taken<Tx>, claim: ClaimRequest): Promise<TurnResult | null> {
    try {
      return await this.#step(taken, claim);
    } catch (thrown) {
      const error =
        thrown instanceof Error ? thrown : new StoreError("store_unavailable", "The store failed.", { cause: thrown });
      this.#failed(taken, error);
      return null;
    }
  }

  #step({ accepts, quarantines, settles, repeats }: Taken<Tx>, claim: ClaimRequest): Promise<TurnResult> {
    return this.#store.step({
      settles: settles.map((queued) => queued.settle),
      accepts: accepts.map((queued) => queued.event),
      quarantines: quarantines.map((queued) => queued.quarantine),
      repeats,
      lateEvents: this.#options.lateEvents(),
      quarantineQuota: this.#options.quarantineQuota,
      claim,
    });
  }

  #succeeded({ accepts, quarantines, settles }: Taken<Tx>, claim: ClaimRequest, result: TurnResult): void {
    this.#retryMs = RETRY_MS.first;
    this.#bringBack();
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

  #failed({ accepts, quarantines, settles, repeats }: Taken<Tx>, error: Error): void {
    for (const { done } of accepts) guard(() => done(error, null));
    for (const { done } of quarantines) guard(() => done(error, null));
    for (const repeat of repeats) this.repeat(repeat);
    guard(() => this.#driver.turnFailed(error));
    this.#postpone(settles);
  }

  #postpone(settles: readonly QueuedSettle<Tx>[]): void {
    if (settles.length === 0) return;
    if (this.#closed) return lose(settles);
    this.#postponed.push(...settles);
    if (this.#retryTimer === null) {
      this.#retryTimer = this.#clock.setTimeout(() => {
        this.#bringBack();
        this.#schedule();
      }, this.#retryMs);
      // A drain waits for it, and what was handled would be handled again if the process ended now.
      this.#retryTimer.keepAlive();
    }
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS.longest);
  }

  /** The postponed settles join the next turn: it is time to try again, or the store has answered meanwhile. */
  #bringBack(): void {
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

// Small parts of the group commit: what waits for a turn, what fits into one, and callbacks that cannot spoil it.

/** Called once: with the result, or with the reason why nothing was stored. */
type Callback<T> = (error: Error | null, result: T | null) => void;

interface QueuedAccept {
  readonly event: NewEvent;
  readonly parsed: WebhookEvent;
  readonly done: Callback<Acceptance>;
}

interface QueuedQuarantine {
  readonly quarantine: NewQuarantine;
  readonly done: Callback<QuarantineAnswer>;
}

interface QueuedSettle<Tx> {
  readonly settle: Settle<Tx>;
  readonly done: (result: SettleResult) => void;
}

/** What goes into one turn. */
interface Taken<Tx> {
  readonly accepts: readonly QueuedAccept[];
  readonly quarantines: readonly QueuedQuarantine[];
  readonly settles: readonly QueuedSettle<Tx>[];
  readonly repeats: readonly Repeat[];
}

function answer(accepts: readonly QueuedAccept[], { accepted }: TurnResult): void {
  for (const [index, { done }] of accepts.entries()) guard(() => done(null, accepted[index] ?? null));
}

/** Their claims count as lost, since nothing is written any more. */
function lose<Tx>(settles: readonly QueuedSettle<Tx>[]): void {
  for (const { done } of settles) guard(() => done({ status: "lost" }));
}

function overloaded(): StoreError {
  return new StoreError("overloaded", "More deliveries wait for the inbox than it can store now; the service retries.");
}

function closed(): StoreError {
  return new StoreError("closed", "The inbox was closed before the delivery was stored; the service retries.");
}

/** Takes from the front of `queue` up to `most` items of `mostBytes` together, at least one. */
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

/** What a callback throws, such as a logger of the application's, is not the turn's failure: it is thrown where nobody waits. */
function guard(callback: () => void): void {
  try {
    callback();
  } catch (thrown) {
    queueMicrotask(() => {
      throw thrown;
    });
  }
}

// Deliveries that wait for a turn, and when so many wait that a turn of their own should not wait for more.

/**
 * So many of a quick kind are a turn: fewer would cost more for each, and were there more, this process would rest while the store works on
 * all of them, and the store while the next are read.
 */
export const QUICK_TURN = 32;

interface AcceptLimits {
  /** In one turn at most. */
  readonly maxEvents: number;
  /** Bytes of bodies in one turn at most. */
  readonly maxBytes: number;
}

class AcceptQueue {
  readonly #items: QueuedAccept[] = [];
  readonly #limits: AcceptLimits;
  readonly #isQuick: (event: NewEvent) => boolean;
  #areAllQuick = true;

  constructor(limits: AcceptLimits, isQuick: (event: NewEvent) => boolean) {
    this.#limits = limits;
    this.#isQuick = isQuick;
  }

  get length(): number {
    return this.#items.length;
  }

  /** They are a turn already, whatever else is on its way. */
  get isQuickTurn(): boolean {
    return this.#areAllQuick && this.#items.length >= QUICK_TURN;
  }

  push(item: QueuedAccept): void {
    // Asked first: a store that throws here has taken nothing.
    this.#areAllQuick &&= this.#isQuick(item.event);
    this.#items.push(item);
  }

  /** What fits into one turn, oldest first. */
  take(): QueuedAccept[] {
    const { maxEvents, maxBytes } = this.#limits;
    return this.#left(takeUpTo(this.#items, maxEvents, maxBytes, ({ event }) => event.raw.byteLength));
  }

  takeAll(): QueuedAccept[] {
    return this.#left(this.#items.splice(0));
  }

  #left(taken: QueuedAccept[]): QueuedAccept[] {
    if (this.#items.length === 0) this.#areAllQuick = true;
    return taken;
  }
}

// Counts duplicates that need no answer of the store, so that a flood of them writes each row once a second at most.

const WRITE_EVERY_MS = 1_000;

export class Repeats {
  readonly #clock: Clock;
  readonly #write: () => void;
  readonly #counted = new Map<EventId, Repeat>();
  #timer: Timer | null = null;
  #due = false;

  /** `write` asks for a turn that takes what was counted. */
  constructor(clock: Clock, write: () => void) {
    this.#clock = clock;
    this.#write = write;
  }

  add({ event, count, signedAt }: Repeat): void {
    this.#timer ??= this.#clock.setTimeout(() => this.writeNow(), WRITE_EVERY_MS);
    const known = this.#counted.get(event) ?? { count: 0, signedAt: 0 };
    this.#counted.set(event, { event, count: known.count + count, signedAt: Math.max(known.signedAt, signedAt) });
  }

  writeNow(): void {
    if (this.#counted.size === 0) return;
    this.#due = true;
    this.#write();
  }

  /** What the turn that is made now should write: nothing before its time. */
  take(): readonly Repeat[] {
    if (!this.#due) return [];
    this.stop();
    const counted = [...this.#counted.values()];
    this.#counted.clear();
    return counted;
  }

  stop(): void {
    this.#due = false;
    this.#timer?.cancel();
    this.#timer = null;
  }
}
