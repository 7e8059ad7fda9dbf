/** Does to the Postgres inbox what an operator asks. */
import { auditDetail } from "../../inbox/audit-detail.ts";
import { discard, releaseGap, replay, unblock } from "../../inbox/lanes/acting.ts";
import type { LaneEvent } from "../../inbox/lanes/state.ts";
import { plainText } from "../../inbox/plain-text.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { HELD } from "../codes.ts";
import { acceptAll, lanesOf } from "./accept.ts";
import { erase } from "./erase.ts";
import { NONE_EXPIRED, newNumbers } from "./numbers.ts";
import type { OpenInbox } from "./open-inbox.ts";
import type { Session } from "./session.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

const AUDIT = "insert into {}.audit (at, by, act, detail) values ($1::bigint, $2::text, $3::text, $4::text)";
const LANE_OF = "select lane from {}.event where id = $1::bigint";

export function act(inbox: OpenInbox, request: Act, by: string): Promise<ActResult> {
  return inbox.during(async () => {
    if (request.kind === "replay_quarantined") await inbox.enterNames([request.event]);
    const result = await inbox.write((session) => actIn(inbox, session, { request, by }));
    // What it made due may wait for another process's worker.
    if (result.ok) inbox.wake.tell();
    return result;
  });
}

async function actIn(
  inbox: OpenInbox,
  session: Session,
  { request, by }: { readonly request: Act; readonly by: string },
): Promise<ActResult> {
  const work = await openWorkspace(inbox, session);
  const result = await perform(work, request);
  if (!result.ok) return result;
  await work.flush();
  const detail = auditDetail(request, result.count);
  await session.rows("audit_row", AUDIT, [work.moment.now, plainText(by), request.kind, detail]);
  return result;
}

async function perform(work: Workspace, request: Act): Promise<ActResult> {
  switch (request.kind) {
    case "replay":
      return replay(work.moment, await eventOf(work, request.event), request);
    case "discard":
      return discard(work.moment, await eventOf(work, request.event), request);
    case "unblock":
      await work.lock([request.lane], []);
      return unblock(work.moment, work.byId.get(request.lane));
    case "release_gap":
      await work.lock([request.lane], []);
      return releaseGap(work.moment, work.byId.get(request.lane));
    case "erase":
      return erase(work, request.subject);
    case "replay_quarantined":
      return replayQuarantined(work, request);
    case "discard_quarantined": {
      const row = await heldQuarantine(work.session, request.quarantine);
      if ("ok" in row) return row;
      await letGo(work, row, { state: HELD.discarded, replayedAs: null });
      return { ok: true, count: 1 };
    }
    case "reveal":
      return there(work.session, "lane", request.lane);
    case "reveal_quarantined":
      return there(work.session, "quarantine", request.quarantine);
    default:
      return request satisfies never;
  }
}

async function there({ rows }: Session, table: "lane" | "quarantine", id: number): Promise<ActResult> {
  const found = await rows(`is_${table}`, `select 1 from {}.${table} where id = $1::bigint`, [id]);
  return found.length === 0 ? { ok: false, reason: "not_found" } : { ok: true, count: 1 };
}

async function eventOf(work: Workspace, id: number): Promise<LaneEvent | undefined> {
  const [row] = await work.session.rows<{ lane: number }>("lane_of", LANE_OF, [id]);
  if (row === undefined) return undefined;
  await work.lock([row.lane], []);
  return work.byId.get(row.lane)?.events.find((event) => event.id === id);
}

interface HeldRow {
  readonly id: number;
  readonly state: number;
  readonly bytes: number;
  readonly has_body: boolean;
}

const HELD_ROW =
  "select id, state, bytes, raw is not null as has_body from {}.quarantine where id = $1::bigint for update";
const LET_GO = "update {}.quarantine set state = $2::smallint, replayed_as = $3::bigint where id = $1::bigint";

async function heldQuarantine(session: Session, id: number): Promise<HeldRow | Extract<ActResult, { ok: false }>> {
  const [row] = await session.rows<HeldRow>("held_row", HELD_ROW, [id]);
  if (row === undefined) return { ok: false, reason: "not_found" };
  return row.state === HELD.held ? row : { ok: false, reason: "wrong_state" };
}

async function letGo(
  work: Workspace,
  row: HeldRow,
  to: { readonly state: number; readonly replayedAs: number | null },
): Promise<void> {
  await work.session.rows("let_go", LET_GO, [row.id, to.state, to.replayedAs]);
  work.sheet.gauge("held", -1);
  work.sheet.gauge("held_bytes", -row.bytes);
}

async function replayQuarantined(
  work: Workspace,
  request: Extract<Act, { kind: "replay_quarantined" }>,
): Promise<ActResult> {
  const row = await heldQuarantine(work.session, request.quarantine);
  if ("ok" in row) return row;
  if (!row.has_body) return { ok: false, reason: "body_pruned" };
  await work.names.find(work.session, [request.event]);
  await work.lock([], lanesOf(work.names, [request.event]));
  const numbers = await newNumbers(work.session, {
    lanes: 1,
    events: 1,
    now: work.moment.now,
    held: 0,
    expiredFrom: NONE_EXPIRED,
  });
  work.enter(numbers);
  const [accepted] = await acceptAll(work, {
    events: [request.event],
    lateEvents: request.lateEvents,
    ids: numbers.events,
  });
  if (accepted === undefined) throw new RangeError("An event was neither accepted nor known.");
  await letGo(work, row, { state: HELD.replayed, replayedAs: accepted.event });
  return { ok: true, event: accepted.event, count: 1 };
}
