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

  nextClaim(): { readonly lane: LaneId; readonly mode: ClaimRequest["mode"] } | null {
    const next = this.#claims.entries().next();
    if (next.done) return null;
    const [lane, mode] = next.value;
    this.#claims.delete(lane);
    return { lane, mode };
  }

  /**
   * A lane whose lease has expired is claimed again, for recovery. The worker would do that, alone, if it were active;
   * else these requests are all that ever drives the lane.
   */
  claimCame(lane: LaneId, { mode }: ClaimRequest, { leases, recoveryDue }: TurnResult, workerIsActive: boolean): void {
    const mayBeExpired = leases.length === 0 && recoveryDue && mode === "ordinary" && !workerIsActive;
    if (mayBeExpired && this.#drives.has(lane)) this.#claims.set(lane, "recover");
    else this.claimed(lane, leases[0] ?? null);
  }

  /** The lane's claim came back: with the wanted event, with one before it (then the wait goes on), or with none. */
  claimed(lane: LaneId, lease: Lease | null): void {
    const drives = this.#drives.get(lane) ?? [];
    const waiting = lease === null ? [] : drives.filter((drive) => drive.event !== lease.event);
    if (waiting.length > 0) this.#drives.set(lane, waiting);
    else this.#drives.delete(lane);
    if (lease === null) for (const drive of drives) drive.notDue();
  }

  /** No claim can be made now. */
  giveUp(): void {
    this.#claims.clear();
    for (const lane of [...this.#drives.keys()]) this.claimed(lane, null);
  }
}
