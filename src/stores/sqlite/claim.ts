/** Claims due lanes: leases their heads, retires what used up its attempts, records gaps that are given up. */
import { ATTEMPTS_EXHAUSTED, isDue, type Missing, TOO_FAR_AHEAD_MS } from "../../inbox/gap.ts";
import type { EventRecord } from "../../inbox/record.ts";
import type { ClaimRequest, Lease } from "../../inbox/store.ts";
import { roomLeft } from "../../inbox/store-rules.ts";
import { KEEP, STATE, STATUS, TAG, tagWord } from "../codes.ts";
import { applyArming, armingOf, goOnAfterDead, headsOf, moveCursor, rearm, schedule, writeLane } from "./lanes.ts";
import { toEvent } from "./records.ts";
import { type ClaimRow, type DueLaneRow, LANES_PER_PAGE } from "./statements.ts";
import type { Work } from "./work.ts";

/** What the scans for due lanes found so far. */
export interface Claimed {
  readonly leases: Lease[];
  readonly retired: EventRecord[];
}

const END = Number.MAX_SAFE_INTEGER;

/** Claims what `request` asks for. With `recover` it is one expired lease, else due lanes, oldest first. */
export function claimDue(work: Work, request: ClaimRequest, claimed: Claimed): void {
  const limit = request.mode === "recover" ? Math.min(1, request.limit) : request.limit;
  // A lane whose event was retired may be due again at once: then the scan begins anew.
  let retiredBefore = -1;
  while (!isEnough(claimed, limit) && claimed.retired.length > retiredBefore) {
    retiredBefore = claimed.retired.length;
    if (request.lane !== undefined) claimOnly(work, request.lane, request, claimed);
    else {
      const now = work.now;
      scan(work, { request, claimed, limit, from: Number.MIN_SAFE_INTEGER, to: now });
      // The clock went back: what lies further ahead than any wait is due as well.
      scan(work, { request, claimed, limit, from: now + TOO_FAR_AHEAD_MS + 1, to: END });
    }
  }
}

function isEnough({ leases, retired }: Claimed, limit: number): boolean {
  return roomLeft({ leased: leases, retired }, limit) <= 0;
}

/** True while an expired lease is due. */
export function recoveryDue(work: Work): boolean {
  const { sql, now } = work;
  return sql.expiredLease.get(now) !== undefined || sql.farLease.get(now + TOO_FAR_AHEAD_MS) !== undefined;
}

interface Scan {
  readonly request: ClaimRequest;
  readonly claimed: Claimed;
  readonly limit: number;
  readonly from: number;
  readonly to: number;
}

function scan(work: Work, { request, claimed, limit, from, to }: Scan): void {
  const lanes = request.mode === "recover" ? work.sql.expiredLanes : work.sql.dueLanes;
  let [readyAt, id] = [from, 0];
  while (!isEnough(claimed, limit)) {
    const page = lanes.all(readyAt, to, readyAt, id);
    for (const lane of page) {
      if (isEnough(claimed, limit)) return;
      [readyAt, id] = [lane.readyAt ?? from, lane.id];
      claimLane(work, lane, request, claimed);
    }
    if (page.length < LANES_PER_PAGE) return;
  }
}

function claimOnly(work: Work, id: number, request: ClaimRequest, claimed: Claimed): void {
  const lane = work.sql.dueLaneById.get(id);
  if (lane === undefined || lane.readyAt === null || !isDue(lane.readyAt, work.now)) return;
  if ((lane.status === STATUS.leased) === (request.mode === "recover")) claimLane(work, lane, request, claimed);
}

/** Leases a due lane's head, or retires it, or finds that there is none to take yet; the lane is not left due in vain. */
export function claimLane(work: Work, lane: DueLaneRow, request: ClaimRequest, claimed: Claimed): void {
  if (lane.leased !== null) {
    const event = work.sql.claimed.get(lane.leased);
    if (event?.state !== STATE.pending) return void rearm(work, lane);
    return take(work, { lane, event, missing: null, request, claimed });
  }
  const arming = armingOf(work, lane, headsOf(work, lane));
  const event = arming.status === "ready" ? work.sql.claimed.get(arming.head.id) : undefined;
  if (arming.status !== "ready" || event === undefined) {
    applyArming(work, lane, arming);
    return writeLane(work, lane);
  }
  lane.gapSince = arming.gapSince;
  take(work, { lane, event, missing: arming.missing, request, claimed });
}

interface Taking {
  readonly lane: DueLaneRow;
  readonly event: ClaimRow;
  readonly missing: Missing | null;
  readonly request: ClaimRequest;
  readonly claimed: Claimed;
}

function take(work: Work, { lane, event, missing, request, claimed }: Taking): void {
  if (event.attempts >= request.maxAttempts) return retire(work, { lane, event, missing, request, claimed });
  const ordinary = event.late === 0 && event.forced === 0;
  const cursorBefore = lane.cursor;
  if (missing !== null) recordGap(work, lane.id, missing);
  if (ordinary) moveCursor(lane, event.sequence);
  lane.epoch += 1;
  schedule(work, lane, STATUS.leased, work.now + request.leaseMs);
  lane.holder = work.facts.holder;
  lane.leased = event.id;
  writeLane(work, lane);
  work.sql.startEvent.run(work.now, event.id);
  const { apiClientId, messageId, eventType } = namesOf(work, lane, event);
  claimed.leases.push({
    lane: lane.id,
    epoch: lane.epoch,
    event: event.id,
    key: { apiClientId, tag: tagWord(lane.tag), messageId },
    sequence: event.sequence,
    eventType,
    attempt: event.attempts + 1,
    acceptedAt: event.acceptedAt,
    signedAt: event.signedAt,
    late: event.late === 1,
    forced: event.forced === 1,
    outOfOrder: !ordinary && cursorBefore !== null && event.sequence < cursorBefore,
    missing: missing ?? missingBefore(work, lane, event.sequence, cursorBefore),
    trace: event.trace,
    // A pending event always has its body: pruning and erasing finish it first.
    raw: event.raw ?? new Uint8Array(),
    acceptIndex: null,
  });
}

/** Records once that the sequences of `missing` are no longer waited for. */
export function recordGap(work: Work, lane: number, missing: Missing): void {
  const { changes } = work.sql.insertGap.run(lane, missing.to, missing.from, work.now);
  work.ledger.add("gaps_skipped", changes);
}

/** The gap before `sequence` that was given up at an earlier hand-out; a lane without any has none. */
function missingBefore(work: Work, lane: DueLaneRow, sequence: number, cursor: number | null): Missing | null {
  if (lane.tag !== TAG.outbound || cursor === null) return null;
  return work.sql.gapBefore.get(lane.id, sequence - 1) ?? null;
}

function retire(work: Work, { lane, event, request, claimed }: Taking): void {
  work.sql.failEvent.run(ATTEMPTS_EXHAUSTED.code, ATTEMPTS_EXHAUSTED.message, event.id);
  work.sql.finishEvent.run(STATE.dead, KEEP.dead, work.now, event.id);
  work.ledger.add("pending", -1);
  work.ledger.add("dead");
  work.ledger.add("dead_lettered");
  const row = work.sql.event.get(event.id);
  if (row !== undefined) claimed.retired.push(toEvent({ ...row, ...namesOf(work, lane, event), raw: event.raw }));
  goOnAfterDead(work, lane, request.onDead);
}

/** What the rows of a lane and of its event hold as numbers, or under other names. */
function namesOf({ facts, clientTable, kindTable }: Work, { client, tag, message }: DueLaneRow, { kind }: ClaimRow) {
  const apiClientId = facts.clients.name(clientTable, client);
  return { apiClientId, tag, messageId: message, eventType: facts.kinds.name(kindTable, kind) };
}
