/** The claims of this process: the leases that it holds, and what asks for more besides the worker's loop: drains, and requests that wait. */
import { LeaseLost } from "../errors.ts";
import type { Clock, Timer } from "../internal/clock.ts";
import type { Logger } from "../internal/logger.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { EventId, LaneId } from "./record.ts";
import type { Run } from "./runner.ts";
import type { ClaimRequest, InboxStore, Lease, TurnResult } from "./store.ts";
import { MOST_BYTES } from "./store-rules.ts";

// The leases: their slots, their renewal, and the waits until they end.

export interface HeldLease {
  readonly lease: Lease;
  /** Set if the event was leased when it was accepted. Otherwise it is parsed from its bytes. */
  readonly parsed: object | null;
}

export interface LeaseOptions {
  /** Handlers that run at once. */
  readonly concurrency: number;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Leases that have not started, where limits by key decide which is next: `Flow`. */
export interface HeldLeases {
  readonly held: readonly HeldLease[];
  readonly ready: number;
  add(held: HeldLease): void;
  next(): HeldLease | null;
  ended(held: HeldLease, durationMs: number): void;
  takeAll(): readonly HeldLease[];
  remove(held: HeldLease): boolean;
}

/** Waits until some leases have ended. */
interface Watch {
  readonly leases: Set<Lease>;
  readonly resolve: () => void;
}

/** Quick handlers get leases ahead, enough for this much work. Slow ones get none ahead. */
const AHEAD_MS = 50;
const MOST_HELD = 256;
/** The weight of a new measurement in the average handler time. */
const SMOOTHING = 0.1;

export class Leases {
  readonly #store: Pick<InboxStore, "extend">;
  readonly #options: LeaseOptions;
  readonly #lost: (lease: Lease) => void;
  /** Holds what has not started instead of `#waiting`. Null without limits by key. */
  readonly #flow: HeldLeases | null;
  /** From each claim until its end is committed. */
  readonly #byLane = new Map<LaneId, Lease>();
  readonly #watches = new Set<Watch>();
  /** Not started: they wait for a free handler. */
  #waiting: HeldLease[] = [];
  readonly #running = new Map<HeldLease, Run | null>();
  /** Their handlers have ended, their effects have not. */
  readonly #unfinished = new Set<Lease>();
  #averageMs: number | null = null;
  #renewal: Timer | null = null;

  /** @param lost - called with a lease that was lost before it started: nothing else reports that one */
  constructor(
    store: Pick<InboxStore, "extend">,
    options: LeaseOptions,
    lost: (lease: Lease) => void,
    flow: HeldLeases | null = null,
  ) {
    this.#store = store;
    this.#options = options;
    this.#lost = lost;
    this.#flow = flow;
  }

  get isEmpty(): boolean {
    return this.#byLane.size === 0;
  }

  /** Slots in use: a lease whose end waits for its commit takes none. */
  get slotsTaken(): number {
    return this.#waiting.length + (this.#flow?.ready ?? 0) + this.#running.size + this.#unfinished.size;
  }

  /** How many slots there are: `concurrency` until handlers prove quick. */
  get capacity(): number {
    const { concurrency } = this.#options;
    if (this.#averageMs === null) return concurrency;
    const ahead = Math.ceil((concurrency * AHEAD_MS) / Math.max(this.#averageMs, 0.01));
    return Math.max(concurrency, Math.min(ahead, MOST_HELD));
  }

  /** How many bytes of bodies may be claimed, by the leases that take slots. 0 or less: none. */
  get bytesLeft(): number {
    let left = MOST_BYTES;
    for (const { lease } of this.#notEnded()) left -= lease.raw.byteLength;
    for (const lease of this.#unfinished) left -= lease.raw.byteLength;
    return left;
  }

  #notEnded(): readonly HeldLease[] {
    return [...this.#waiting, ...(this.#flow?.held ?? []), ...this.#running.keys()];
  }

  of(lane: LaneId): Lease | undefined {
    return this.#byLane.get(lane);
  }

  lanes(): readonly LaneId[] {
    return [...this.#byLane.keys()];
  }

  add(lease: Lease, parsed: object | null): void {
    this.#byLane.set(lease.lane, lease);
    if (this.#flow === null) this.#waiting.push({ lease, parsed });
    else this.#flow.add({ lease, parsed });
    this.#renewal ??= this.#planRenewal();
  }

  /** The next lease to run, if a handler is free. It counts as running from here on. */
  next(): HeldLease | null {
    if (this.#running.size >= this.#options.concurrency) return null;
    const held = this.#flow === null ? this.#waiting.shift() : this.#flow.next();
    if (held === undefined || held === null) return null;
    this.#running.set(held, null);
    return held;
  }

  /** Ties a lease to its run, unless the run has ended already. */
  started(held: HeldLease, run: Run): void {
    if (this.#running.has(held)) this.#running.set(held, run);
  }

  finished(held: HeldLease, durationMs: number): void {
    this.#running.delete(held);
    this.#flow?.ended(held, durationMs);
    this.#averageMs =
      this.#averageMs === null ? durationMs : this.#averageMs + (durationMs - this.#averageMs) * SMOOTHING;
  }

  /** Its end is not stored yet. It takes a slot, or more would be claimed than can be completed in time. */
  keepUnfinished(lease: Lease): void {
    this.#unfinished.add(lease);
    this.#renewal ??= this.#planRenewal();
  }

  /** Removes a lease whose end is committed. Returns whether that freed a slot, and its lane; a lane claimed anew is not free. */
  end(lease: Lease): { readonly slot: boolean; readonly lane: boolean } {
    const slot = this.#unfinished.delete(lease);
    const lane = this.#byLane.get(lease.lane) === lease;
    if (lane) this.#byLane.delete(lease.lane);
    for (const watch of this.#watches) {
      if (!watch.leases.delete(lease) || watch.leases.size > 0) continue;
      this.#watches.delete(watch);
      watch.resolve();
    }
    return { slot, lane };
  }

  /** Removes the leases that have not started from their slots, and returns them. */
  takeWaiting(): readonly Lease[] {
    const waiting = this.#flow?.takeAll() ?? this.#waiting;
    this.#waiting = [];
    return waiting.map(({ lease }) => lease);
  }

  /** Resolves when all leases that are held now have ended, whatever is claimed meanwhile. */
  untilEnded(): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    return new Promise((resolve) => void this.#watches.add({ leases: new Set(this.#byLane.values()), resolve }));
  }

  /** None is held any more, as when the inbox was replaced. Handlers that run are aborted. */
  loseAll(): void {
    for (const held of this.#notEnded()) this.#drop(held);
  }

  stopRenewing(): void {
    this.#renewal?.cancel();
    this.#renewal = null;
  }

  #planRenewal(): Timer {
    return this.#options.clock.setTimeout(() => void this.#renew(), this.#options.leaseMs / 3);
  }

  /** A lost lease aborts its handler: another worker has the event now, so this one could not commit. */
  async #renew(): Promise<void> {
    const held = this.#notEnded();
    this.#renewal = held.length + this.#unfinished.size > 0 ? this.#planRenewal() : null;
    // Whether an unfinished one was lost shows when its end is stored.
    const leases = [...held.map(({ lease }) => lease), ...this.#unfinished];
    if (leases.length === 0) return;
    try {
      const kept = await this.#store.extend(leases, this.#options.leaseMs);
      for (const [index, one] of held.entries()) if (!kept[index]) this.#drop(one);
    } catch {
      this.#options.logger.warn(
        { leases: leases.length },
        "Leases could not be renewed; the next renewal tries again.",
      );
    }
  }

  #drop(held: HeldLease): void {
    if (this.#flow?.remove(held)) return this.#lost(held.lease);
    if (this.#waiting.includes(held)) {
      this.#waiting = this.#waiting.filter((one) => one !== held);
      return this.#lost(held.lease);
    }
    this.#running.get(held)?.abort(new LeaseLost("The lease of this event passed to another worker."));
  }
}

// What asks for claims: drains, and requests that wait for the event of one lane.

export interface DrainOptions {
  /** Start nothing new after this many milliseconds, 1 to 86,400,000. Default: no bound. */
  readonly budgetMs?: number;
  /** Start at most this many events, 1 to 86,400,000. Default: no bound. */
  readonly limit?: number;
}

export interface DrainResult {
  /** Events that were started while the drain ran. */
  readonly claimed: number;
  /**
   * Nothing is left that is ready now. False when the budget or the limit ended the drain. With `holdBackMs` it is also false, at once,
   * if the rest of the budget is too short for an event that is due within `holdBackMs`, or that a rate puts off.
   */
  readonly complete: boolean;
}

/** Throws a `SetupError` for an unknown option or one beyond its bounds. */
export function checkDrainOptions(options: DrainOptions): void {
  refuseUnknownOptions("drain", options, ["budgetMs", "limit"]);
  numberOption("budgetMs", options.budgetMs, 1, { min: 1, max: 86_400_000, unit: "ms" });
  numberOption("limit", options.limit, 1, { min: 1, max: 86_400_000, unit: "events" });
}

interface Drain {
  /** Negative if more leases were returned than it claimed: others were claimed before it began. */
  claimed: number;
  remaining: number;
  /**
   * Lanes with a lease when a claim found nothing else, or when the drain was ended: the next events of the first still belong to this
   * drain, and it waits for the end of the second.
   */
  lanes: ReadonlySet<LaneId> | null;
  readonly timer: Timer | null;
  failure: Error | null;
  readonly resolve: (result: DrainResult) => void;
  readonly reject: (error: Error) => void;
}

/** Each drain handles what is ready now, within its budget, and then resolves. It rejects if the store failed meanwhile. */
export class Drains {
  readonly #clock: Clock;
  readonly #leases: Pick<Leases, "lanes" | "untilEnded">;
  readonly #cutOff: () => void;
  readonly #all = new Set<Drain>();
  /** They start nothing more, and some of their leases have not ended. */
  readonly #ending = new Set<Drain>();

  /** @param cutOff - called when drains were ended before their limit: leases that have not started should be returned */
  constructor(clock: Clock, leases: Pick<Leases, "lanes" | "untilEnded">, cutOff: () => void) {
    this.#clock = clock;
    this.#leases = leases;
    this.#cutOff = cutOff;
  }

  begin({ budgetMs, limit }: DrainOptions): Promise<DrainResult> {
    return new Promise((resolve, reject) => {
      const timer = budgetMs === undefined ? null : this.#clock.setTimeout(() => this.#end([drain]), budgetMs);
      const remaining = limit ?? Number.POSITIVE_INFINITY;
      const drain: Drain = { claimed: 0, remaining, lanes: null, timer, failure: null, resolve, reject };
      this.#all.add(drain);
    });
  }

  /** Some drain still wants events. */
  get active(): boolean {
    return this.remaining > 0;
  }

  /** How many events the drains together may still start. */
  get remaining(): number {
    let most = 0;
    for (const drain of this.#all) most = Math.max(most, drain.remaining);
    return most;
  }

  claimed(count: number): void {
    for (const drain of this.#all) {
      drain.claimed += count;
      drain.remaining -= count;
      if (drain.remaining <= 0) this.#finish(drain);
    }
  }

  /** Claimed events of these lanes were returned to the queue before they started. */
  returned(lanes: readonly LaneId[]): void {
    for (const drain of this.#all) drain.claimed -= lanes.length;
    for (const drain of this.#ending) drain.claimed -= lanes.filter((lane) => drain.lanes?.has(lane)).length;
  }

  /**
   * A claim found nothing more that is due. A drain still waits for the lanes that have a lease now, because their next event may become
   * ready. It does not wait for other lanes, so that it ends under steady traffic too.
   */
  nothingReady(): void {
    for (const drain of this.#all) {
      const lanes = this.#leases.lanes().filter((lane) => drain.lanes?.has(lane) ?? true);
      drain.lanes = new Set(lanes);
      if (lanes.length > 0) continue;
      this.#remove(drain);
      drain.resolve({ claimed: drain.claimed, complete: true });
    }
  }

  endAll(): void {
    if (this.#all.size > 0) this.#end([...this.#all]);
  }

  /** Ends all drains, and rejects them with `error`. */
  fail(error: Error): void {
    for (const drain of [...this.#all, ...this.#ending]) drain.failure ??= error;
    this.endAll();
  }

  #end(drains: readonly Drain[]): void {
    for (const drain of drains) drain.remaining = 0;
    this.#cutOff();
    for (const drain of drains) this.#finish(drain);
  }

  /** Starts nothing more, and resolves when the leases held now have ended. */
  #finish(drain: Drain): void {
    this.#remove(drain);
    drain.lanes = new Set(this.#leases.lanes());
    this.#ending.add(drain);
    void this.#leases.untilEnded().then(() => {
      this.#ending.delete(drain);
      if (drain.failure !== null) drain.reject(drain.failure);
      else drain.resolve({ claimed: drain.claimed, complete: false });
    });
  }

  #remove(drain: Drain): void {
    this.#all.delete(drain);
    drain.timer?.cancel();
  }
}

/** A request that waits for an event. `notDue` is called if its lane cannot be claimed now. */
interface Waiting {
  readonly event: EventId;
  readonly notDue: () => void;
}

/** Claims of one lane each, for requests that wait for its event (`ack: "handled"`). */
export class OnDemandClaims {
  readonly #waiting = new Map<LaneId, Waiting[]>();
  readonly #claims = new Map<LaneId, ClaimRequest["mode"]>();
  #owesOthers = false;

  /** `notDue` is called if the lane waits for a gap or a backoff, or another process has it. */
  add(lane: LaneId, waiting: Waiting): void {
    const all = this.#waiting.get(lane);
    if (all === undefined) this.#waiting.set(lane, [waiting]);
    else all.push(waiting);
  }

  /** Asks for a claim of the lane in one of the next batches, if a request waits for it. */
  wantClaim(lane: LaneId): void {
    if (this.#waiting.has(lane)) this.#claims.set(lane, "ordinary");
  }

  get hasClaims(): boolean {
    return this.#claims.size > 0;
  }

  /**
   * Null leaves the batch to an ordinary claim. An active worker gets every other batch: one that claims a single lane leases none of
   * the events that it accepts, so all other lanes would wait while deliveries come (I9).
   */
  nextClaim(workerIsActive: boolean): { readonly lane: LaneId; readonly mode: ClaimRequest["mode"] } | null {
    const next = this.#claims.entries().next();
    if (next.done || (this.#owesOthers && workerIsActive)) return null;
    this.#owesOthers = true;
    const [lane, mode] = next.value;
    this.#claims.delete(lane);
    return { lane, mode };
  }

  /**
   * How many lanes the next ordinary claim may take even if no slot is free. On-demand claims need no free slot, so slow handlers
   * would leave none to other lanes while deliveries come (I9).
   */
  takeOwed(): number {
    const owed = this.#owesOthers ? 1 : 0;
    this.#owesOthers = false;
    return owed;
  }

  /**
   * A claim came back, of one lane or of any: an ordinary claim can take a lane that requests wait for. A lane whose lease has expired
   * is claimed again, for recovery. An active worker does that itself, and alone; otherwise only these requests do.
   */
  claimed({ lane, mode }: ClaimRequest, { leases, untaken, recoveryDue }: TurnResult, workerIsActive: boolean): void {
    for (const lease of leases) this.#leased(lease);
    for (const ended of untaken) {
      this.#leased(ended);
      this.wantClaim(ended.lane);
    }
    if (lane === undefined || leases.length + untaken.length > 0) return;
    const mayBeExpired = recoveryDue && mode === "ordinary" && !workerIsActive;
    if (mayBeExpired && this.#waiting.has(lane)) this.#claims.set(lane, "recover");
    else this.#notDue(lane);
  }

  /** The lane was claimed for the wanted event, or for one before it: then the request waits until that one has ended. */
  #leased({ lane, event }: Pick<Lease, "lane" | "event">): void {
    // Another claim would find the lane leased, and report that to the requests.
    this.#claims.delete(lane);
    const others = this.#waiting.get(lane)?.filter((waiting) => waiting.event !== event) ?? [];
    if (others.length > 0) this.#waiting.set(lane, others);
    else this.#waiting.delete(lane);
  }

  #notDue(lane: LaneId): void {
    const all = this.#waiting.get(lane) ?? [];
    this.#waiting.delete(lane);
    for (const { notDue } of all) notDue();
  }

  /** No claim can be made now. */
  cancelAll(): void {
    this.#claims.clear();
    for (const lane of [...this.#waiting.keys()]) this.#notDue(lane);
  }
}
