/** Removes a person's data from the Postgres inbox; what identifies an event stays. */
import { eraseLane } from "../../inbox/lanes/acting.ts";
import { isHeld, type LaneState } from "../../inbox/lanes/state.ts";
import { createMentionTest } from "../../inbox/mention.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { HELD, TAG } from "../codes.ts";
import { LANES_OF_MESSAGE } from "./lanes.ts";
import type { Session } from "./session.ts";
import { textBytes } from "./text.ts";
import type { Workspace } from "./workspace.ts";

type Subject = Extract<Act, { kind: "erase" }>["subject"];

const TOLD_BY_PEER = "select id from {}.lane where peer = $1::bytea order by id";
const TOLD_BY_MESSAGE = `${LANES_OF_MESSAGE("$1")} order by k.id`;
/**
 * Events of lanes of which only the bodies can tell, a page at a time. `$3`: also of those that know no number. The lane is compared
 * twice, or a merge of both tables would read all events before the page.
 */
const SILENT = `select l.id as lane, e.id as event, b.raw, c.raw as other from {}.lane l join {}.event e on e.lane = l.id
  left join {}.body b on b.event = e.id left join {}.conflict c on c.event = e.id
  where l.id >= $1::bigint and e.lane >= $1::bigint and (l.id > $1::bigint or e.id > $2::bigint)
    and (l.tag = ${TAG.unlaned} or ($3::boolean and l.peer is null)) order by l.id, e.id limit $4::int`;
const QUARANTINED =
  "select id, raw from {}.quarantine where id > $1::bigint and raw is not null order by id limit $2::int";
/** What was read may have been replayed, discarded or pruned since. */
const STILL_QUARANTINED =
  "select id, bytes, state from {}.quarantine where id = any($1::bigint[]) and raw is not null order by id for update";

/** The events of which these lanes still hold a number, a reference or a text. */
const HOLDING = `select count(*)::int as count from {}.event e join {}.lane l on l.id = e.lane
  where e.lane = any($1::bigint[]) and (l.peer is not null or l.reference is not null or e.error is not null
    or exists (select 1 from {}.body b where b.event = e.id) or exists (select 1 from {}.conflict c where c.event = e.id)
    or exists (select 1 from {}.attempt a where a.event = e.id and a.error <> ''))`;
const CLEAR = [
  "delete from {}.body where event in (select id from {}.event where lane = any($1::bigint[]))",
  "delete from {}.conflict where event in (select id from {}.event where lane = any($1::bigint[]))",
  "update {}.attempt set error = '' where event in (select id from {}.event where lane = any($1::bigint[]))",
] as const;
const CLEAR_QUARANTINE = `update {}.quarantine set raw = null, state = case state when ${HELD.held} then ${HELD.discarded} else state end
  where id = any($1::bigint[])`;

const PAGE = 1_000;

/**
 * In one transaction: another process's turn waits for the lanes that are being erased, and for no others. Quarantined bodies are
 * locked before lanes, as by their replay.
 */
export async function erase(work: Workspace, subject: Subject): Promise<ActResult> {
  const { session } = work;
  const isNamedIn = createMentionTest("peer" in subject ? subject.peer : subject.messageId);
  const quarantined = await lockQuarantined(session, isNamedIn);
  await work.lock([...(await told(session, subject)), ...(await mentioned(session, "peer" in subject, isNamedIn))], []);
  const lanes = [...work.byId.values()];
  if (lanes.some((lane) => isHeld(lane, work.moment.now))) return { ok: false, reason: "in_progress" };
  const count = quarantined.length + (await eraseLanes(work, lanes));
  await eraseQuarantined(work, quarantined);
  return { ok: true, count };
}

/** Returns the number of events of which something was still held. */
async function eraseLanes({ session, moment }: Workspace, lanes: readonly LaneState[]): Promise<number> {
  if (lanes.length === 0) return 0;
  const ids = lanes.map(({ id }) => id);
  const [held] = await session.rows<{ count: number }>("erase_holding", HOLDING, [ids]);
  for (const lane of lanes) eraseLane(moment, lane);
  for (const [index, text] of CLEAR.entries()) await session.rows(`erase_${index}`, text, [ids]);
  return held?.count ?? 0;
}

async function told(session: Session, subject: Subject): Promise<number[]> {
  const [name, text, value] =
    "peer" in subject
      ? ["told_by_peer", TOLD_BY_PEER, subject.peer]
      : ["told_by_message", TOLD_BY_MESSAGE, subject.messageId];
  const rows = await session.rows<{ id: number }>(name, text, [textBytes(value)]);
  return rows.map(({ id }) => id);
}

interface SilentRow {
  readonly lane: number;
  readonly event: number;
  readonly raw: Buffer | null;
  readonly other: Buffer | null;
}

async function mentioned(
  session: Session,
  byPeer: boolean,
  isNamedIn: (raw: Uint8Array) => boolean,
): Promise<number[]> {
  const found = new Set<number>();
  for (let after = { lane: 0, event: 0 }; ; ) {
    const values = [after.lane, after.event, byPeer, PAGE];
    const rows = await session.rows<SilentRow>("silent_events", SILENT, values);
    for (const { lane, raw, other } of rows) {
      if ((raw !== null && isNamedIn(raw)) || (other !== null && isNamedIn(other))) found.add(lane);
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return [...found];
    after = last;
  }
}

interface QuarantinedRow {
  readonly id: number;
  readonly bytes: number;
  readonly state: number;
}

async function lockQuarantined(
  session: Session,
  isNamedIn: (raw: Uint8Array) => boolean,
): Promise<readonly QuarantinedRow[]> {
  const named: number[] = [];
  for (let after = 0; ; ) {
    const rows = await session.rows<{ id: number; raw: Buffer }>("erase_quarantined", QUARANTINED, [after, PAGE]);
    for (const { id, raw } of rows) if (isNamedIn(raw)) named.push(id);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) break;
    after = last.id;
  }
  return named.length === 0 ? [] : session.rows<QuarantinedRow>("still_quarantined", STILL_QUARANTINED, [named]);
}

async function eraseQuarantined({ session, sheet }: Workspace, rows: readonly QuarantinedRow[]): Promise<void> {
  if (rows.length === 0) return;
  for (const { bytes, state } of rows) {
    if (state !== HELD.held) continue;
    sheet.gauge("held", -1);
    sheet.gauge("held_bytes", -bytes);
  }
  await session.rows("clear_quarantine", CLEAR_QUARANTINE, [rows.map(({ id }) => id)]);
}
