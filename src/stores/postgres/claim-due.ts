/** Claims lanes whose turn has come. The first are locked as a turn begins, others once these were not enough. */
import { roomLeft } from "../../inbox/claim-room.ts";
import { type Claimed, claimLane } from "../../inbox/lanes/claiming.ts";
import { type LaneState, laneIsDue } from "../../inbox/lanes/state.ts";
import type { ClaimRequest } from "../../inbox/store.ts";
import { claimable, type DueRequest } from "./due.ts";
import type { LaneRow } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { Session } from "./session.ts";
import type { Workspace } from "./workspace.ts";

/** Lanes that were due as the turn began, locked, the oldest first. */
export interface FirstDue {
  readonly rows: readonly LaneRow[];
  /** Whether there are no others that can be locked now. */
  readonly areAll: boolean;
}

const NONE: FirstDue = { rows: [], areAll: true };

/** As many as are to be claimed, if there are as many; none where one lane alone is to be claimed. */
export async function lockFirstDue(inbox: OpenInbox, session: Session, request: ClaimRequest): Promise<FirstDue> {
  const limit = mostToClaim(request);
  if (limit === 0 || request.lane !== undefined) return NONE;
  const asked = { now: inbox.ownTime(), limit, seen: [] };
  if (request.mode === "recover") {
    const rows = await lockDue(session, request, { ...asked, from: 0 });
    return { rows, areAll: rows.length < limit };
  }
  const { due } = inbox.lookFrom;
  const from = due.next();
  const rows = await lockDue(session, request, { ...asked, from });
  const areEnough = rows.length >= limit;
  due.goesOnFrom(areEnough ? (rows[0]?.ready_at ?? 0) : 0);
  return { rows, areAll: !areEnough && from === 0 };
}

/** With `recover` one expired lease, else due lanes, oldest first, until there are enough or no more. */
export async function claimDue(
  work: Workspace,
  request: ClaimRequest,
  { claimed, areAllLocked }: { readonly claimed: Claimed; readonly areAllLocked: boolean },
): Promise<void> {
  const most = mostToClaim(request);
  for (let areAll = areAllLocked; roomLeft(claimed, most) > 0; ) {
    const due = dueLanes(work, request);
    for (const lane of due.slice(0, roomLeft(claimed, most))) claimLane(work.moment, lane, request, claimed);
    const limit = roomLeft(claimed, most);
    if (limit > 0 && !areAll) {
      const seen = [...work.byId.keys()];
      const rows = await lockDue(work.session, request, { now: work.moment.now, limit, seen, from: 0 });
      areAll = rows.length < limit;
      await work.add(rows);
    } else if (due.length === 0) return;
  }
}

const mostToClaim = ({ mode, limit }: ClaimRequest): number => (mode === "recover" ? Math.min(1, limit) : limit);

function lockDue(
  session: Session,
  { mode }: ClaimRequest,
  asked: Omit<DueRequest, "recover">,
): Promise<readonly LaneRow[]> {
  return claimable(session, { ...asked, recover: mode === "recover" });
}

/** Of those that this transaction holds, or the one that is named. */
function dueLanes({ byId, moment }: Workspace, request: ClaimRequest): readonly LaneState[] {
  const candidates = request.lane === undefined ? [...byId.values()] : [byId.get(request.lane)];
  return candidates
    .filter((lane) => lane !== undefined)
    .filter((lane) => (lane.status === "leased") === (request.mode === "recover") && laneIsDue(lane, moment.now))
    .sort((a, b) => (a.readyAt ?? 0) - (b.readyAt ?? 0) || a.id - b.id);
}
