/** What asks the worker for claims, besides its own loop: drains, and requests that wait for the event of one lane. */
import type { Clock, Timer } from "../internal/clock.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { Leases } from "./leases.ts";
import type { EventId, LaneId } from "./record.ts";
import type { ClaimRequest, Lease, TurnResult } from "./store.ts";

export interface DrainOptions {
  /** Start nothing new after this many milliseconds, 1 to 86,400,000. Default: no bound. */
  readonly budgetMs?: number;
  /** Start at most this many events, 1 to 86,400,000. Default: no bound. */
  readonly limit?: number;
}

export interface DrainResult {
  /** Events that were started while the drain ran. */
  readonly claimed: number;
  /** Nothing is left that is ready now. False when the budget or the limit ended the drain. */
  readonly complete: boolean;
}

/** Throws a `SetupError` for an unknown option or one beyond its bounds. */
export function checkDrainOptions(options: DrainOptions): void {
  refuseUnknownOptions("drain", options, ["budgetMs", "limit"]);
  numberOption("budgetMs", options.budgetMs, 1, { min: 1, max: 86_400_000, unit: "ms" });
  numberOption("limit", options.limit, 1, { min: 1, max: 86_400_000, unit: "events" });
}

interface Drain {
  claimed: number;
  remaining: number;
  /** Lanes with a lease when a claim found nothing else: the next events of these lanes still belong to this drain. */
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

  /** `count` claimed events were returned to the queue before they started. */
  returned(count: number): void {
    for (const drain of this.#all) drain.claimed = Math.max(0, drain.claimed - count);
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
  claimed({ lane, mode }: ClaimRequest, { leases, recoveryDue }: TurnResult, workerIsActive: boolean): void {
    for (const lease of leases) this.#leased(lease);
    if (lane === undefined || leases.length > 0) return;
    const mayBeExpired = recoveryDue && mode === "ordinary" && !workerIsActive;
    if (mayBeExpired && this.#waiting.has(lane)) this.#claims.set(lane, "recover");
    else this.#notDue(lane);
  }

  /** The lane was claimed for the wanted event, or for one before it: then the request waits until that one has ended. */
  #leased({ lane, event }: Lease): void {
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
