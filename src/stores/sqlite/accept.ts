/** Takes events into the SQLite inbox, and leases at once those whose lane is due. */
import { sameContent } from "../../events/parse.ts";
import { type Arrival, countDuplicates, leaseOf } from "../../inbox/lane.ts";
import { laneIsDue } from "../../inbox/lane-port.ts";
import type { EventId, NewEvent } from "../../inbox/record.ts";
import type { Acceptance, ClaimRequest, Repeat, Turn } from "../../inbox/store.ts";
import { KEEP, STATE, STATUS, stateWord, TAG } from "../database.ts";
import { type SqliteEntry, type SqliteLane, type SqliteLanes, toLane } from "./lane-rows.ts";
import { type Claimed, claimLane } from "./lanes.ts";
import type { LaneRow } from "./statements.ts";

/** How events are accepted in this transaction. */
export interface AcceptMode {
  readonly lateEvents: Turn<unknown>["lateEvents"];
  /** Null when an accepted event must not be leased at once. */
  readonly claim: ClaimRequest | null;
  readonly claimed: Claimed;
}

/** Where an event goes: its lane's row, and its own place there. */
export interface Placed {
  readonly incoming: NewEvent;
  readonly lane: SqliteLane;
  readonly isNew: boolean;
  readonly kind: number;
  readonly arrival: Arrival;
}

/** Stores an event unless its identity is known, and arms its lane. `index` is its place in the turn. */
export function accept(lanes: SqliteLanes, incoming: NewEvent, index: number | null, mode: AcceptMode): Acceptance {
  const placed = place(lanes, incoming, mode);
  const isAlone = placed.lane.status === "idle" && placed.arrival.state === "pending";
  return isAlone ? acceptAlone(lanes, placed, index, mode) : acceptByRules(lanes, placed, mode);
}

export function place(lanes: SqliteLanes, incoming: NewEvent, { lateEvents }: AcceptMode): Placed {
  const { work, rules, tally } = lanes;
  const { apiClientId, tag, messageId } = incoming.lane;
  const client = work.facts.clients.id(work.clientTable, apiClientId);
  const kind = work.facts.kinds.id(work.kindTable, incoming.eventType);
  const known = work.sql.laneByKey.get(client, TAG[tag], messageId);
  const lane = toLane(known ?? newLane(tally.peek("next_lane"), TAG[tag]), { client, message: messageId });
  return {
    incoming,
    lane,
    isNew: known === undefined,
    kind,
    arrival: rules.arrivalOf(lane, incoming.sequence, lateEvents),
  };
}

/**
 * Fast path: an idle lane holds no pending event, so the one that comes is its head. No event is read, and the lane is written once, with
 * the lease if there is one. A test compares what it writes with what `acceptByRules` writes.
 */
export function acceptAlone(lanes: SqliteLanes, placed: Placed, index: number | null, mode: AcceptMode): Acceptance {
  const { incoming, lane, arrival } = placed;
  const { rules } = lanes;
  const event = newEntry(lanes, placed);
  const arming = rules.arm(lane, arrival.late ? { head: null, late: event } : { head: event, late: null });
  const claim = arming.status === "ready" && hasRoom(mode) ? mode.claim : null;
  if (!insertEvent(lanes, placed, claim !== null)) return countDuplicate(lanes, placed);
  let gapBegins = false;
  if (arming.status === "ready" && claim !== null) {
    lane.gapSince = arming.gapSince;
    event.attempts++;
    const { lane: key, eventType, signedAt, trace, raw } = incoming;
    const leased = rules.lease(lane, event, arming.missing, claim.leaseMs);
    mode.claimed.leases.push(leaseOf(lane, leased, { key, eventType, signedAt, trace, raw }, index));
  } else gapBegins = rules.apply(lane, arming);
  if (arrival.late) lane.below = 1;
  storeLane(lanes, placed);
  return accepted(lanes, placed, event.id, gapBegins);
}

/** Any event into any lane, as the rules say. */
export function acceptByRules(lanes: SqliteLanes, placed: Placed, mode: AcceptMode): Acceptance {
  const { lane, arrival } = placed;
  const event = newEntry(lanes, placed);
  if (!insertEvent(lanes, placed, false)) return countDuplicate(lanes, placed);
  storeLane(lanes, placed);
  if (arrival.late && arrival.state === "pending") lane.below = 1;
  const gapBegins = lanes.rules.armArrival(lane, event);
  const isDue = lane.status !== "leased" && laneIsDue(lane, lanes.now);
  if (isDue && mode.claim !== null && hasRoom(mode)) claimLane(lanes, lane, mode.claim, mode.claimed);
  return accepted(lanes, placed, event.id, gapBegins);
}

function hasRoom({ claim, claimed }: AcceptMode): boolean {
  return claim !== null && claimed.leases.length < claim.limit;
}

function accepted(lanes: SqliteLanes, placed: Placed, event: EventId, gapBegins: boolean): Acceptance {
  const { incoming, lane, arrival } = placed;
  lanes.rules.countArrival(lane, incoming, arrival);
  if (arrival.state === "pending") lanes.tally.gauge("pending");
  const acceptance = { outcome: arrival.late ? "late" : "accepted", event, lane: lane.id } as const;
  return gapBegins ? { ...acceptance, gapBegins } : acceptance;
}

/** False when its identity is known already; then nothing was written. */
function insertEvent({ work, now, tally }: SqliteLanes, placed: Placed, isLeased: boolean): boolean {
  const { incoming, lane, kind, arrival } = placed;
  const { sequence, gapWaitMs, occurredAt, signedAt, digest, trace, raw } = incoming;
  const isPending = arrival.state === "pending";
  const id = tally.peek("next_event");
  const { changes } = work.sql.insertEvent.run(
    id,
    lane.id,
    sequence,
    kind,
    STATE[arrival.state],
    isPending ? null : KEEP.other,
    isPending ? null : now,
    isLeased ? 1 : 0,
    isLeased ? now : null,
    arrival.late ? 1 : 0,
    gapWaitMs,
    occurredAt,
    signedAt,
    now,
    digest,
    trace,
  );
  if (changes === 0) return false;
  tally.take("next_event");
  work.sql.insertBody.run(id, raw);
  return true;
}

/** The number and the reference stand once per lane, from the first event that knows them. */
function storeLane(lanes: SqliteLanes, { incoming, lane, isNew }: Placed): void {
  const { sql } = lanes.work;
  const { peer, externalReference } = incoming;
  if (!isNew) {
    lanes.save(lane);
    if (lane.bare === 1 && (peer !== null || externalReference !== null)) {
      sql.nameLane.run(peer, externalReference, lane.id);
    }
    return;
  }
  const { id, client, tag, message, readyAt, cursor, gapSince, epoch, holder, leased } = lane;
  lanes.tally.take("next_lane");
  sql.insertLane.run(
    id,
    client,
    tag,
    message,
    STATUS[lane.status],
    readyAt,
    cursor,
    gapSince,
    epoch,
    holder,
    leased,
    peer,
    externalReference,
  );
}

function countDuplicate({ work, tally, now }: SqliteLanes, { incoming, lane, kind }: Placed): Acceptance {
  const { sql } = work;
  const { sequence, signedAt, digest, raw } = incoming;
  const first = sql.known.get(lane.id, sequence, kind);
  if (first === undefined) throw new RangeError("An event was refused as known, but is not there.");
  // Once the body is pruned or erased there is nothing to compare with.
  const body = first.digest.equals(digest) ? undefined : sql.body.get(first.id);
  const conflict = body !== undefined && !sameContent(body.raw, raw);
  sql.countDuplicates.get(1, first.id);
  countDuplicates(tally, first, { signedAt, count: 1 });
  if (conflict) {
    tally.count("conflicts");
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
export function countRepeat({ work, tally }: SqliteLanes, repeat: Repeat): void {
  const event = work.sql.countDuplicates.get(repeat.count, repeat.event);
  if (event !== undefined) countDuplicates(tally, event, repeat);
}

function newEntry({ tally, now }: SqliteLanes, { incoming, arrival: { late, state } }: Placed): SqliteEntry {
  const { sequence, gapWaitMs, occurredAt } = incoming;
  const finishedAt = state === "pending" ? null : now;
  return {
    id: tally.peek("next_event"),
    sequence,
    late,
    forced: false,
    gapWaitMs,
    occurredAt,
    acceptedAt: now,
    state,
    finishedAt,
    attempts: 0,
    hasBody: true,
  };
}

function newLane(id: number, tag: number): LaneRow {
  return {
    id,
    tag,
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
