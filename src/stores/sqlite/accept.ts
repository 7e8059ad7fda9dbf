/** Takes events into the SQLite inbox, and leases at once those whose lane is due. */
import { sameContent } from "../../events/parse.ts";
import { type Arming, arm, isDue } from "../../inbox/gap.ts";
import type { NewEvent } from "../../inbox/record.ts";
import type { Acceptance, ClaimRequest, Repeat, Turn } from "../../inbox/store.ts";
import { KEEP, STATE, STATUS, stateWord, TAG } from "../database.ts";
import { type SqliteLanes, toLane } from "./lane-rows.ts";
import {
  applyArming,
  type Claimed,
  claimLane,
  type Head,
  headsOf,
  moveCursor,
  positionOf,
  rearmAfterAccept,
  recordGap,
  schedule,
  writeLane,
} from "./lanes.ts";
import type { LaneRow } from "./statements.ts";
import type { Work } from "./transaction.ts";

/** How events are accepted in this transaction. */
export interface AcceptMode {
  readonly lateEvents: Turn<unknown>["lateEvents"];
  /** Null when an accepted event must not be leased at once. */
  readonly claim: ClaimRequest | null;
  readonly claimed: Claimed;
  readonly lanes: SqliteLanes;
}

/** Where an event goes: its lane's row, and its own place there. */
interface Placed {
  readonly incoming: NewEvent;
  readonly lane: LaneRow;
  readonly isNew: boolean;
  readonly client: number;
  readonly kind: number;
  readonly late: boolean;
}

/** Stores an event unless its identity is known, and arms its lane. `index` is its place in the turn. */
export function accept(work: Work, incoming: NewEvent, index: number | null, mode: AcceptMode): Acceptance {
  const { sql, facts, ledger } = work;
  const { apiClientId, tag, messageId } = incoming.lane;
  const client = facts.clients.id(work.clientTable, apiClientId);
  const kind = facts.kinds.id(work.kindTable, incoming.eventType);
  const known = sql.laneByKey.get(client, TAG[tag], messageId);
  const lane = known ?? newLane(ledger.peek("next_lane"), client, TAG[tag], messageId);
  const late = lane.tag === TAG.outbound && lane.cursor !== null && incoming.sequence < lane.cursor;
  const placed = { incoming, lane, isNew: known === undefined, client, kind, late };

  // An idle lane holds no pending event, so the one that comes is its head, and nothing need be read.
  const handled = late && mode.lateEvents === "record";
  const alone = lane.status === STATUS.idle && !handled;
  const acceptance = alone ? acceptAlone(work, placed, index, mode) : acceptBeside(work, placed, mode);
  if (acceptance.outcome === "duplicate") return acceptance;
  ledger.signed(incoming.signedAt);
  ledger.add("accepted");
  if (late) {
    ledger.add("late");
    sql.fillGaps.run(work.now, lane.id, incoming.sequence, incoming.sequence);
  }
  if (!handled) ledger.add("pending");
  return acceptance;
}

function acceptAlone(work: Work, placed: Placed, index: number | null, mode: AcceptMode): Acceptance {
  const { incoming, lane, late } = placed;
  const id = work.ledger.peek("next_event");
  const head = headOf(id, incoming, late, work.now);
  const position = positionOf(work, lane);
  const arming = late ? arm(position, null, head, work.now) : arm(position, head, null, work.now);
  const leased = arming.status === "ready" && mode.claim !== null && mode.claimed.leases.length < mode.claim.limit;
  if (!insertEvent(work, placed, { leased, recorded: false })) return countDuplicate(work, placed);
  let beginsToWait = false;
  if (leased) leaseNow(work, placed, { arming, index, claim: mode.claim, claimed: mode.claimed });
  else beginsToWait = applyArming(work, lane, arming);
  if (late) lane.below = 1;
  storeLane(work, placed);
  const acceptance = { outcome: late ? "late" : "accepted", event: id, lane: lane.id } as const;
  return beginsToWait ? { ...acceptance, gapBegins: true } : acceptance;
}

function acceptBeside(work: Work, placed: Placed, mode: AcceptMode): Acceptance {
  const { lane, late } = placed;
  const recorded = late && mode.lateEvents === "record";
  const id = work.ledger.peek("next_event");
  if (!insertEvent(work, placed, { leased: false, recorded })) return countDuplicate(work, placed);
  const acceptance = { outcome: late ? "late" : "accepted", event: id, lane: lane.id } as const;
  nameLane(work, placed);
  if (recorded) return acceptance;
  const belowBefore = lane.below;
  if (late) lane.below = 1;
  if (!mayRearm(work, lane, id)) {
    if (lane.below !== belowBefore) writeLane(work, lane);
    return acceptance;
  }
  if (rearmAfterAccept(work, lane, belowBefore)) return { ...acceptance, gapBegins: true };
  const free = mode.claim !== null && mode.claimed.leases.length < mode.claim.limit;
  const due = lane.readyAt !== null && isDue(lane.readyAt, work.now);
  if (!free || mode.claim === null || !due) return acceptance;
  claimLane(mode.lanes, toLane(lane), mode.claim, mode.claimed);
  return acceptance;
}

/** A lane in backoff goes on early only for an event that comes before the one it waits with. */
function mayRearm(work: Work, lane: LaneRow, added: number): boolean {
  if (lane.status === STATUS.leased || lane.status === STATUS.blocked) return false;
  if (lane.status !== STATUS.backoff) return true;
  const { head, late } = headsOf(work, lane);
  return (head ?? late)?.id === added;
}

interface Leasing {
  readonly arming: Arming<Head>;
  readonly index: number | null;
  readonly claim: ClaimRequest | null;
  readonly claimed: Claimed;
}

/** The first hand-out of an event that is accepted in this transaction: nothing of it has to be read back. */
function leaseNow(work: Work, { incoming, lane, late }: Placed, { arming, index, claim, claimed }: Leasing): void {
  if (arming.status !== "ready" || claim === null) return;
  const cursorBefore = lane.cursor;
  const { sequence, signedAt, trace, raw, eventType } = incoming;
  lane.gapSince = arming.gapSince;
  if (arming.missing !== null) recordGap(work, lane.id, arming.missing);
  if (!late) moveCursor(lane, sequence);
  lane.epoch += 1;
  schedule(work, lane, STATUS.leased, work.now + claim.leaseMs);
  lane.holder = work.facts.holder;
  lane.leased = arming.head.id;
  const given =
    lane.tag === TAG.outbound && cursorBefore !== null ? work.sql.gapBefore.get(lane.id, sequence - 1) : null;
  claimed.leases.push({
    lane: lane.id,
    epoch: lane.epoch,
    event: arming.head.id,
    key: incoming.lane,
    sequence,
    eventType,
    attempt: 1,
    acceptedAt: work.now,
    signedAt,
    late,
    forced: false,
    outOfOrder: late,
    missing: arming.missing ?? given ?? null,
    trace,
    raw,
    acceptIndex: index,
  });
}

/** False when its identity is known already; then nothing was written. */
function insertEvent(
  work: Work,
  placed: Placed,
  { leased, recorded }: { leased: boolean; recorded: boolean },
): boolean {
  const { sql, ledger, now } = work;
  const { incoming, lane, kind, late } = placed;
  const { sequence, gapWaitMs, occurredAt, signedAt, digest, trace, raw } = incoming;
  const id = ledger.peek("next_event");
  const { changes } = sql.insertEvent.run(
    id,
    lane.id,
    sequence,
    kind,
    recorded ? STATE.late : STATE.pending,
    recorded ? KEEP.other : null,
    recorded ? now : null,
    leased ? 1 : 0,
    leased ? now : null,
    late ? 1 : 0,
    gapWaitMs,
    occurredAt,
    signedAt,
    now,
    digest,
    trace,
  );
  if (changes === 0) return false;
  ledger.take("next_event");
  sql.insertBody.run(id, raw);
  return true;
}

function storeLane(work: Work, placed: Placed): void {
  const { incoming, lane, isNew, client } = placed;
  if (!isNew) {
    writeLane(work, lane);
    return nameLane(work, placed);
  }
  work.ledger.take("next_lane");
  work.sql.insertLane.run(
    lane.id,
    client,
    lane.tag,
    incoming.lane.messageId,
    lane.status,
    lane.readyAt,
    lane.cursor,
    lane.gapSince,
    lane.epoch,
    lane.holder,
    lane.leased,
    incoming.peer,
    incoming.externalReference,
  );
}

/** The number and the reference stand once per lane, from the first event that knows them. */
function nameLane(work: Work, { incoming, lane }: Placed): void {
  const { peer, externalReference } = incoming;
  if (lane.bare === 1 && (peer !== null || externalReference !== null))
    work.sql.nameLane.run(peer, externalReference, lane.id);
}

function countDuplicate(work: Work, { incoming, lane, kind }: Placed): Acceptance {
  const { sql, ledger, now } = work;
  const { sequence, signedAt, digest, raw } = incoming;
  const first = sql.known.get(lane.id, sequence, kind);
  if (first === undefined) throw new RangeError("An event was refused as known, but is not there.");
  // Once the body is pruned or erased there is nothing to compare with.
  const body = first.digest.equals(digest) ? undefined : sql.body.get(first.id);
  const conflict = body !== undefined && !sameContent(body.raw, raw);
  sql.countDuplicates.get(1, first.id);
  ledger.add("duplicates");
  ledger.signed(signedAt);
  if (signedAt !== first.signedAt) ledger.resigned();
  if (conflict) {
    ledger.add("conflicts");
    if (first.conflict === 0) {
      sql.markConflict.run(first.id);
      sql.insertConflict.run(first.id, digest, signedAt, now, raw);
    }
  }
  const state = stateWord(first.state);
  return {
    outcome: "duplicate",
    event: first.id,
    lane: lane.id,
    state,
    digest: first.digest,
    signedAt: first.signedAt,
    conflict,
  };
}

/** Counts duplicates that the core answered from its cache. */
export function countRepeat(work: Work, repeat: Repeat): void {
  const event = work.sql.countDuplicates.get(repeat.count, repeat.event);
  if (event === undefined) return;
  work.ledger.add("duplicates", repeat.count);
  work.ledger.signed(repeat.signedAt);
  if (repeat.signedAt !== event.signedAt) work.ledger.resigned();
}

function headOf(id: number, incoming: NewEvent, late: boolean, now: number): Head {
  const { sequence, gapWaitMs, occurredAt } = incoming;
  return { id, sequence, gapWaitMs, occurredAt, acceptedAt: now, late, forced: false };
}

function newLane(id: number, client: number, tag: number, message: string): LaneRow {
  return {
    id,
    client,
    tag,
    message,
    status: STATUS.idle,
    readyAt: null,
    cursor: null,
    gapSince: null,
    epoch: 0,
    holder: null,
    leased: null,
    below: 0,
    bare: 0,
  };
}
