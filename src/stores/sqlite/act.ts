/** Does to the SQLite inbox what an operator asks, with its audit row in the same transaction. */
import type { EventId } from "../../inbox/record.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { auditDetail } from "../../inbox/store-rules.ts";
import { HELD } from "../database.ts";
import { accept } from "./batch.ts";
import { erase } from "./erase.ts";
import { SqliteLanes, toEntry } from "./lanes.ts";
import type { OpenInbox } from "./open-inbox.ts";
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

function perform(work: Work, request: Exclude<Act, { kind: "erase" }>): ActResult {
  const lanes = new SqliteLanes(work);
  switch (request.kind) {
    case "replay":
    case "discard": {
      const row = work.sql.entry.get(request.event);
      if (row === undefined) return refuse("not_found");
      return lanes.rules[request.kind](lanes.lane(row.lane), toEntry(row), request);
    }
    case "unblock":
      return lanes.rules.unblock(lanes.lane(request.lane));
    case "release_gap":
      return lanes.rules.releaseGap(lanes.lane(request.lane));
    case "replay_quarantined":
      return replayQuarantined(lanes, request);
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
  work.ledger.gauge("held", -1);
  work.ledger.gauge("held_bytes", -row.bytes);
}

function replayQuarantined(lanes: SqliteLanes, request: Extract<Act, { kind: "replay_quarantined" }>): ActResult {
  const row = heldQuarantine(lanes.work, request.quarantine);
  if (!("bytes" in row)) return row;
  if (row.hasBody === 0) return refuse("body_pruned");
  const mode = { lateEvents: request.lateEvents, claim: null, claimed: { leases: [], retired: [] } };
  const acceptance = accept(lanes, request.event, null, mode);
  if (acceptance.outcome === "failed") throw acceptance.error;
  letGo(lanes.work, row, HELD.replayed, acceptance.event);
  return { ok: true, event: acceptance.event, count: 1 };
}

function refuse(reason: Refusal["reason"]): Refusal {
  return { ok: false, reason };
}
