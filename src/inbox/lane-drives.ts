/** Requests that drive a lane themselves (`ack: "handled"`): claim it now, behind what this process already has of it, or say that it is not due. */
import type { EventId, LaneId } from "./record.ts";
import type { ClaimRequest, Lease, TurnResult } from "./store.ts";

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
