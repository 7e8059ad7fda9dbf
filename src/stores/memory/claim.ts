/** Finds the memory store's due lanes, and leases their heads. */

import { type Claimed, claimLane } from "../../inbox/lanes/claiming.ts";
import { type LaneState, laneIsDue } from "../../inbox/lanes/state.ts";
import type { ClaimRequest } from "../../inbox/store.ts";
import { roomLeft } from "../../inbox/store-rules.ts";
import { keep, type MemoryMoment } from "./state.ts";

/** Claims what `request` asks for. With `recover` it is one expired lease, else due lanes, oldest first. */
export function claimDue(moment: MemoryMoment, request: ClaimRequest, claimed: Claimed): void {
  const recovering = request.mode === "recover";
  const limit = recovering ? Math.min(1, request.limit) : request.limit;
  while (roomLeft(claimed, limit) > 0) {
    const due = dueLanes(moment, recovering, request.lane);
    if (due.length === 0) return;
    for (const lane of due) {
      if (roomLeft(claimed, limit) <= 0) return;
      claimOne(moment, lane, request, claimed);
    }
  }
}

export function claimOne(moment: MemoryMoment, lane: LaneState, request: ClaimRequest, claimed: Claimed): void {
  claimLane(moment, lane, request, claimed);
  keep(moment.state, lane);
}

/** True while an expired lease is due. */
export function recoveryDue({ state, now }: MemoryMoment): boolean {
  for (const lane of state.waiting) if (lane.status === "leased" && laneIsDue(lane, now)) return true;
  return false;
}

function dueLanes({ state, now }: MemoryMoment, leased: boolean, only: number | undefined): LaneState[] {
  const due: LaneState[] = [];
  for (const lane of state.waiting) {
    if ((lane.status === "leased") !== leased || !laneIsDue(lane, now)) continue;
    if (only === undefined || lane.id === only) due.push(lane);
  }
  return due.sort((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
}
