/** The drains under way: each handles what is ready now, within its budget, and then resolves; it rejects if the store failed meanwhile. */
import type { Clock, Timer } from "../internal/clock.ts";
import { numberOption, refuseUnknownOptions } from "../internal/options.ts";
import type { InHand } from "./leases.ts";
import type { EventId, LaneId } from "./record.ts";
import type { ClaimRequest, Lease, TurnResult } from "./store.ts";

export interface DrainOptions {
  /** Start nothing new after this many milliseconds, 1 to 86,400,000. Default: no bound. */
  readonly budgetMs?: number;
  /** Start at most this many events, 1 to 86,400,000. Default: no bound. */
  readonly limit?: number;
}

export interface DrainResult {
  /** Events handed out while the drain ran. */
  readonly claimed: number;
  /** Nothing is left that is ready now; false when the budget or the limit ended the drain. */
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
  /** Lanes that were in hand when a claim found nothing else: what becomes ready in them still belongs to this drain. */
  lanes: ReadonlySet<LaneId> | null;
  readonly timer: Timer | null;
  failure: Error | null;
  readonly resolve: (result: DrainResult) => void;
  readonly reject: (error: Error) => void;
}

export class Drains {
  readonly #clock: Clock;
  readonly #inHand: InHand;
  readonly #cut: () => void;
  readonly #all = new Set<Drain>();
  /** They start nothing more, and what is in hand has not ended. */
  readonly #ending = new Set<Drain>();

  /** @param cut - called when drains were cut off before their limit: what they have not started should go back */
  constructor(clock: Clock, inHand: InHand, cut: () => void) {
    this.#clock = clock;
    this.#inHand = inHand;
    this.#cut = cut;
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

  /** So many claimed events went back without having been started. */
  putBack(count: number): void {
    for (const drain of this.#all) drain.claimed = Math.max(0, drain.claimed - count);
  }

  /**
   * A claim found nothing more that is due. What is in hand now may still make the next event of its lane ready; other
   * lanes that become ready are no longer waited for, so that a drain ends under steady traffic too.
   */
  nothingReady(): void {
    for (const drain of this.#all) {
      const lanes = this.#inHand.lanes().filter((lane) => drain.lanes?.has(lane) ?? true);
      drain.lanes = new Set(lanes);
      if (lanes.length > 0) continue;
      this.#remove(drain);
      drain.resolve({ claimed: drain.claimed, complete: true });
    }
  }

  endAll(): void {
    if (this.#all.size > 0) this.#end([...this.#all]);
  }

  /** As `endAll()`, and none of them was all right. */
  fail(error: Error): void {
    for (const drain of [...this.#all, ...this.#ending]) drain.failure ??= error;
    this.endAll();
  }

  #end(drains: readonly Drain[]): void {
    for (const drain of drains) drain.remaining = 0;
    this.#cut();
    for (const drain of drains) this.#finish(drain);
  }

  /** Starts nothing more, and settles when what is in hand has ended. */
  #finish(drain: Drain): void {
    this.#remove(drain);
    this.#ending.add(drain);
    void this.#inHand.untilLetGo().then(() => {
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

// Requests that drive a lane themselves (`ack: "handled"`): claim it now, behind what this process already has of it, or say that it is not due.

interface Drive {
  readonly event: EventId;
  readonly notDue: () => void;
}

export class LaneDrives {
  readonly #drives = new Map<LaneId, Drive[]>();
  readonly #claims = new Map<LaneId, ClaimRequest["mode"]>();
  #owesOthers = false;

  /** `notDue` is called when the lane can not be claimed now: a gap, a backoff, or another process has it. */
  add(lane: LaneId, drive: Drive): void {
    const drives = this.#drives.get(lane);
    if (drives === undefined) this.#drives.set(lane, [drive]);
    else drives.push(drive);
  }

  /** Asks for a claim of the lane with one of the next turns. */
  wantClaim(lane: LaneId): void {
    if (this.#drives.has(lane)) this.#claims.set(lane, "ordinary");
  }

  get hasClaims(): boolean {
    return this.#claims.size > 0;
  }

  /**
   * Null leaves the turn to an ordinary claim. An active worker gets every other one: a turn that claims one lane leases none of the
   * events that it accepts, so that each of them would be driven in its turn, and all other lanes would wait while deliveries come (I9).
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
   * How many lanes the ordinary claim that is made now may take though no place is free. Driven lanes are claimed whether one is or
   * not, so that slow handlers would leave none to the others while deliveries come (I9).
   */
  takeOwed(): number {
    const owed = this.#owesOthers ? 1 : 0;
    this.#owesOthers = false;
    return owed;
  }

  /**
   * A claim came back, of one lane or of any: an ordinary claim takes lanes that requests drive too. A lane whose lease has expired is
   * claimed again, for recovery. The worker would do that, alone, if it were active; else these requests are all that ever drives
   * the lane.
   */
  claimCame({ lane, mode }: ClaimRequest, { leases, recoveryDue }: TurnResult, workerIsActive: boolean): void {
    for (const lease of leases) this.#leased(lease);
    if (lane === undefined || leases.length > 0) return;
    const mayBeExpired = recoveryDue && mode === "ordinary" && !workerIsActive;
    if (mayBeExpired && this.#drives.has(lane)) this.#claims.set(lane, "recover");
    else this.#refuse(lane);
  }

  /** The lane has come with the wanted event, or with one before it: then the wait goes on until that one has ended. */
  #leased({ lane, event }: Lease): void {
    // It would find the lane leased, and say so to those who wait for what runs.
    this.#claims.delete(lane);
    const waiting = this.#drives.get(lane)?.filter((drive) => drive.event !== event) ?? [];
    if (waiting.length > 0) this.#drives.set(lane, waiting);
    else this.#drives.delete(lane);
  }

  #refuse(lane: LaneId): void {
    const drives = this.#drives.get(lane) ?? [];
    this.#drives.delete(lane);
    for (const drive of drives) drive.notDue();
  }

  /** No claim can be made now. */
  giveUp(): void {
    this.#claims.clear();
    for (const lane of [...this.#drives.keys()]) this.#refuse(lane);
  }
}
