/** Does to the SQLite inbox what an operator asks, with its audit row in the same transaction. */
import { expectedSequence, gapSinceWithout } from "../../inbox/gap.ts";
import type { EventId, LaneId } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { auditDetail, meetsPrecondition } from "../../inbox/store-rules.ts";
import { HELD, KEEP, STATE, STATUS, stateWord, TAG } from "../database.ts";
import { accept } from "./accept.ts";
import { erase } from "./erase.ts";
import { headsOf, isHeld, moveCursor, rearm } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { LaneRow } from "./statements.ts";
import type { Work } from "./transaction.ts";

type Refusal = Extract<ActResult, { ok: false }>;

export async function act(inbox: OpenInbox, request: Act, by: string): Promise<ActResult> {
  if (request.kind === "erase") {
    return erase(inbox, request.subject, (work, count) => audit(work, request, by, count));
  }
  return inbox.write((work) => {
    const done = perform(work, request);
    if (done.ok) audit(work, request, by, done.count);
    return done;
  });
}

function audit(work: Work, request: Act, by: string, count: number): void {
  const insert = work.db.prepare("insert into oncehook_audit (at, by, act, detail) values (?, ?, ?, ?)");
  insert.run(work.now, by, request.kind, auditDetail(request, count));
}

/** Ids and counts for the audit row; never a number or a text. */
function perform(work: Work, request: Exclude<Act, { kind: "erase" }>): ActResult {
  switch (request.kind) {
    case "replay":
      return replay(work, request);
    case "discard":
      return discard(work, request);
    case "unblock":
      return unblock(work, request.lane);
    case "release_gap":
      return releaseGap(work, request.lane);
    case "replay_quarantined":
      return replayQuarantined(work, request);
    case "discard_quarantined": {
      const row = heldQuarantine(work, request.quarantine);
      if (!("bytes" in row)) return row;
      letGo(work, row, HELD.discarded, null);
      return { ok: true, count: 1 };
    }
    case "reveal":
      return there(work, "oncehook_lane", request.lane);
    case "reveal_quarantined":
      return there(work, "oncehook_quarantine", request.quarantine);
    default:
      return request satisfies never;
  }
}

function there({ db }: Work, table: "oncehook_lane" | "oncehook_quarantine", id: number): ActResult {
  const row = db.prepare(`select 1 from ${table} where id = ?`).get(id);
  return row === undefined ? { ok: false, reason: "not_found" } : { ok: true, count: 1 };
}

interface TargetRow {
  readonly lane: number;
  readonly sequence: number;
  readonly state: number;
  readonly finishedAt: number | null;
  readonly hasBody: number;
}

type OnEvent = Extract<Act, { kind: "replay" | "discard" }>;

/** An event with its lane, unless a worker holds it or it is not as it was found. */
function target(
  work: Work,
  { event: id, ...precondition }: OnEvent,
): { readonly event: TargetRow; readonly lane: LaneRow } | Refusal {
  const event = work.db
    .prepare(
      `select lane, seq as sequence, state, finished as finishedAt, exists (select 1 from oncehook_body where event = id) as hasBody
       from oncehook_event where id = ?`,
    )
    .get(id) as TargetRow | undefined;
  const lane = event === undefined ? undefined : work.sql.laneById.get(event.lane);
  if (event === undefined || lane === undefined) return refuse("not_found");
  if (lane.leased === id && isHeld(work, lane)) return refuse("in_progress");
  const { finishedAt } = event;
  return meetsPrecondition({ state: stateWord(event.state), finishedAt }, precondition)
    ? { event, lane }
    : refuse("wrong_state");
}

function replay(work: Work, request: OnEvent): ActResult {
  const found = target(work, request);
  if ("ok" in found) return found;
  const { event: id } = request;
  const { event, lane } = found;
  const waits = lane.status === STATUS.backoff || lane.status === STATUS.blocked;
  if (event.state === STATE.pending && !waits) return refuse("wrong_state");
  if (event.hasBody === 0) return refuse("body_pruned");
  endWaitOf(work, lane, id);
  work.db
    .prepare(
      `update oncehook_event set state = 0, outcome = null, keep = null, finished = null, forced = 1, late = 0, attempts = 0
       where id = ?`,
    )
    .run(id);
  if (event.state !== STATE.pending) work.ledger.add("pending");
  if (event.state === STATE.dead) work.ledger.add("dead", -1);
  // It may lie below the cursor.
  lane.below = 1;
  // A lane in backoff with another event before this one waits on.
  if (lane.status !== STATUS.leased && (lane.status !== STATUS.backoff || headId(work, lane) === id)) rearm(work, lane);
  else keepPlace(work, lane);
  return { ok: true, event: id, count: 1 };
}

function discard(work: Work, request: OnEvent): ActResult {
  const found = target(work, request);
  if ("ok" in found) return found;
  const { event: id } = request;
  const { event, lane } = found;
  if (event.state !== STATE.pending && event.state !== STATE.dead) return refuse("wrong_state");
  const headBefore = headId(work, lane);
  endWaitOf(work, lane, id);
  work.sql.finishEvent.run(STATE.discarded, KEEP.other, work.now, id);
  work.ledger.add("discarded");
  work.ledger.add(event.state === STATE.dead ? "dead" : "pending", -1);
  const expected = expectedSequence({ cursor: lane.cursor, firstSequence: work.facts.firstSequence });
  if (lane.tag === TAG.outbound && event.sequence === expected) moveCursor(lane, event.sequence);
  // The cursor may have passed a pending event, such as one of sequence 0.
  lane.below = 1;
  const { status, leased } = lane;
  const goesOn =
    status === STATUS.leased ? leased !== id : status === STATUS.backoff && headId(work, lane) === headBefore;
  if (goesOn) keepPlace(work, lane);
  else rearm(work, lane);
  return { ok: true, event: id, count: 1 };
}

/** To be called before the event leaves those in their turn. */
function endWaitOf(work: Work, lane: LaneRow, id: EventId): void {
  if (lane.gapSince === null) return;
  const inTurn = work.db.prepare(
    `select id, accepted as acceptedAt from oncehook_event where lane = ? and state = 0 and late = 0 and forced = 0
     order by seq, id limit 2`,
  );
  const first = inTurn.all(lane.id) as readonly { readonly id: EventId; readonly acceptedAt: number }[];
  lane.gapSince = gapSinceWithout(id, lane.gapSince, first);
}

/** Stores what an act changed of a lane that goes on as it was. */
function keepPlace(work: Work, { cursor, gapSince, id }: LaneRow): void {
  work.db
    .prepare("update oncehook_lane set below = 1, cursor = ?, gap_since = ? where id = ?")
    .run(cursor, gapSince, id);
}

function headId(work: Work, lane: LaneRow): EventId | null {
  const { head, late } = headsOf(work, lane);
  return (head ?? late)?.id ?? null;
}

function unblock(work: Work, id: LaneId): ActResult {
  const lane = work.sql.laneById.get(id);
  if (lane === undefined) return refuse("not_found");
  if (isHeld(work, lane)) return refuse("in_progress");
  if (lane.status !== STATUS.blocked) return refuse("wrong_state");
  rearm(work, lane);
  return { ok: true, count: 1 };
}

function releaseGap(work: Work, id: LaneId): ActResult {
  const lane = work.sql.laneById.get(id);
  if (lane === undefined) return refuse("not_found");
  if (isHeld(work, lane)) return refuse("in_progress");
  const head = headId(work, lane);
  if (lane.status !== STATUS.gap || head === null) return refuse("wrong_state");
  work.db.prepare("update oncehook_event set gap_wait = 0 where id = ?").run(head);
  rearm(work, lane);
  return { ok: true, event: head, count: 1 };
}

interface HeldRow {
  readonly id: number;
  readonly state: number;
  readonly bytes: number;
  readonly hasBody: number;
}

function heldQuarantine(work: Work, id: number): HeldRow | Refusal {
  const row = work.db
    .prepare("select id, state, bytes, raw is not null as hasBody from oncehook_quarantine where id = ?")
    .get(id) as HeldRow | undefined;
  if (row === undefined) return refuse("not_found");
  return row.state === HELD.held ? row : refuse("wrong_state");
}

function letGo(work: Work, row: HeldRow, state: number, replayedAs: EventId | null): void {
  work.db
    .prepare("update oncehook_quarantine set state = ?, replayed_as = ? where id = ?")
    .run(state, replayedAs, row.id);
  work.ledger.add("held", -1);
  work.ledger.add("held_bytes", -row.bytes);
}

function replayQuarantined(work: Work, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = heldQuarantine(work, request.quarantine);
  if (!("bytes" in row)) return row;
  if (row.hasBody === 0) return refuse("body_pruned");
  const claimed = { leases: [], retired: [] };
  const acceptance = accept(work, request.event, null, { lateEvents: request.lateEvents, claim: null, claimed });
  if (acceptance.outcome === "failed") throw acceptance.error;
  letGo(work, row, HELD.replayed, acceptance.event);
  return { ok: true, event: acceptance.event, count: 1 };
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
