/** An operator's acts on the inbox, including the erasure of a person's data. */

import { isShared } from "../../inbox/lane-key.ts";
import { isHeld } from "../../inbox/lane-port.ts";
import type { LaneEvent, LaneState } from "../../inbox/lane-state.ts";
import type { Act, ActResult } from "../../inbox/store.ts";
import { auditDetail, MOST_BYTES, plainText } from "../../inbox/store-rules.ts";
import { createMentionTest } from "../../inbox/subject.ts";
import { HELD, ORDER } from "../database.ts";
import { acceptAll } from "./batch.ts";
import { idBytes, textBytes } from "./encoding.ts";
import { idsIn, NONE_EXPIRED, newNumbers, upToBytes } from "./lanes.ts";
import type { PgInbox } from "./open.ts";
import type { PgSession } from "./session.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

const AUDIT = "insert into {}.audit (at, by, act, detail) values ($1::bigint, $2::text, $3::text, $4::text)";
const LANE_OF = "select lane from {}.event where id = $1::bigint";

export function actOnRows(inbox: PgInbox, request: Act, by: string): Promise<ActResult> {
  return inbox.during(async () => {
    const result = await inbox.write((session) => actIn(inbox, session, request, by));
    // A lane that became due may be claimed by another process.
    if (result.ok) inbox.wake.tell();
    return result;
  });
}

async function actIn(inbox: PgInbox, session: PgSession, request: Act, by: string): Promise<ActResult> {
  const work = await openWorkspace(inbox, session);
  const result = await perform(work, request);
  if (!result.ok) return result;
  await work.flush();
  const detail = auditDetail(request, result.count);
  await session.rows("audit_row", AUDIT, [work.loaded.now, plainText(by), request.kind, detail]);
  return result;
}

async function perform(work: Workspace, request: Act): Promise<ActResult> {
  const { rules } = work.loaded;
  switch (request.kind) {
    case "replay":
    case "discard": {
      const event = await eventOf(work, request.event);
      return rules[request.kind](event?.lane, event, request);
    }
    case "unblock":
      await work.lockWhole([request.lane]);
      return rules.unblock(work.byId.get(request.lane));
    case "release_gap":
      await work.lockWhole([request.lane]);
      return rules.releaseGap(work.byId.get(request.lane));
    case "erase":
      return erase(work, request.subject);
    case "replay_quarantined":
      return replayQuarantined(work, request);
    case "discard_quarantined": {
      const row = await heldQuarantine(work.session, request.quarantine);
      if ("ok" in row) return row;
      await release(work, row, HELD.discarded, null);
      return { ok: true, count: 1 };
    }
    case "reveal":
      return exists(work.session, "lane", request.lane);
    case "reveal_quarantined":
      return exists(work.session, "quarantine", request.quarantine);
    default:
      return request satisfies never;
  }
}

async function exists({ rows }: PgSession, table: "lane" | "quarantine", id: number): Promise<ActResult> {
  const found = await rows(`is_${table}`, `select 1 from {}.${table} where id = $1::bigint`, [id]);
  return found.length === 0 ? { ok: false, reason: "not_found" } : { ok: true, count: 1 };
}

async function eventOf(work: Workspace, id: number): Promise<LaneEvent | undefined> {
  const [row] = await work.session.rows<{ lane: number }>("lane_of", LANE_OF, [id]);
  if (row === undefined) return undefined;
  await work.lockWhole([row.lane]);
  return work.byId.get(row.lane)?.events.find((event) => event.id === id);
}

interface QuarantineState {
  readonly id: number;
  readonly state: number;
  readonly bytes: number;
}

interface HeldRow extends QuarantineState {
  readonly has_body: boolean;
}

const HELD_ROW =
  "select id, state, bytes, raw is not null as has_body from {}.quarantine where id = $1::bigint for update";
const RELEASE = "update {}.quarantine set state = $2::smallint, replayed_as = $3::bigint where id = $1::bigint";

async function heldQuarantine(session: PgSession, id: number): Promise<HeldRow | Extract<ActResult, { ok: false }>> {
  const [row] = await session.rows<HeldRow>("held_row", HELD_ROW, [id]);
  if (row === undefined) return { ok: false, reason: "not_found" };
  return row.state === HELD.held ? row : { ok: false, reason: "wrong_state" };
}

/** Ends the quarantine of a body that was replayed or discarded. */
async function release(work: Workspace, row: HeldRow, state: number, replayedAs: number | null): Promise<void> {
  await work.session.rows("release_quarantine", RELEASE, [row.id, state, replayedAs]);
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
  await work.lock([], [request.event]);
  const { now } = work.loaded;
  const numbers = await newNumbers(work.session, { lanes: 1, events: 1, now, held: 0, expiredFrom: NONE_EXPIRED });
  work.enter(numbers);
  const [accepted] = await acceptAll(work, [request.event], numbers.events);
  if (accepted === undefined) throw new RangeError("An event was neither accepted nor known.");
  await release(work, row, HELD.replayed, accepted.event);
  return { ok: true, event: accepted.event, count: 1 };
}

type Subject = Extract<Act, { kind: "erase" }>["subject"];

const LANES_OF_PEER = "select id from {}.lane where peer = $1::bytea order by id";
/** By sequence a lane is a message. */
const LANES_OF_ID = `select id from {}.lane where name = $1::bytea and ord = ${ORDER.sequence} order by id`;
const EVENTS_OF_ID = "select lane, id as event from {}.event where own_id = $1::bytea";
/**
 * Events of lanes whose columns do not name the subject, so that the bodies must be searched, a page at a time. With `$3`, those of lanes
 * without a peer, otherwise those without a sequence. The lane is compared twice, because otherwise a merge of both tables would read all events before the page.
 */
const SEARCHED = upToBytes(
  `select l.id as lane, e.id as event, b.raw, c.raw as other from {}.lane l join {}.event e on e.lane = l.id
  left join {}.body b on b.event = e.id left join {}.conflict c on c.event = e.id
  where l.id >= $1::bigint and e.lane >= $1::bigint and (l.id > $1::bigint or e.id > $2::bigint)
    and case when $3::boolean then l.peer is null else l.ord <> ${ORDER.sequence} end order by l.id, e.id limit $4::int`,
  "lane, event",
  "(coalesce(octet_length(raw), 0) + coalesce(octet_length(other), 0))",
  MOST_BYTES,
);
const QUARANTINED = upToBytes(
  "select id, raw from {}.quarantine where id > $1::bigint and raw is not null order by id limit $2::int",
  "id",
  "octet_length(raw)",
  MOST_BYTES,
);
/** The bodies that were read may have been replayed, discarded or pruned since. */
const STILL_QUARANTINED =
  "select id, bytes, state from {}.quarantine where id = any($1::bigint[]) and raw is not null order by id for update";

/** Counts the events of these lanes that still have a number, a reference or a text. */
const HOLDING = `select count(*)::int as count from {}.event e join {}.lane l on l.id = e.lane
  where e.id = any($1::bigint[]) and (l.peer is not null or l.reference is not null or e.error is not null
    or exists (select 1 from {}.body b where b.event = e.id) or exists (select 1 from {}.conflict c where c.event = e.id)
    or exists (select 1 from {}.attempt a where a.event = e.id and a.error <> ''))`;
const CLEAR = [
  "delete from {}.body where event = any($1::bigint[])",
  "delete from {}.conflict where event = any($1::bigint[])",
  "update {}.attempt set error = '' where event = any($1::bigint[])",
] as const;
const CLEAR_QUARANTINE = `update {}.quarantine set raw = null, head = null, state = case state when ${HELD.held} then ${HELD.discarded} else state end
  where id = any($1::bigint[])`;

const PAGE = 1_000;

/**
 * Removes a person's data and keeps what identifies events, in one transaction: a batch of another process waits only for the lanes that
 * are being erased. Quarantined bodies are locked before lanes, as in their replay.
 */
async function erase(work: Workspace, subject: Subject): Promise<ActResult> {
  const { session } = work;
  const isNamedIn = createMentionTest("peer" in subject ? subject.peer : subject.id);
  const quarantined = await lockQuarantined(session, isNamedIn);
  const named = await lanesOfSubject(session, subject);
  const mentioning = await lanesMentioning(session, subject, isNamedIn);
  await work.lockWhole([...named, ...mentioning.keys()]);
  const lanes = [...work.byId.values()];
  if (lanes.some((lane) => isHeld(lane, work.loaded.now))) return { ok: false, reason: "in_progress" };
  const count = quarantined.length + (await eraseLanes(work, lanes, mentioning));
  await eraseQuarantined(work, quarantined);
  return { ok: true, count };
}

/** Returns the number of events that still had something to erase. */
async function eraseLanes(
  { session, loaded }: Workspace,
  lanes: readonly LaneState[],
  mentioning: Mentions,
): Promise<number> {
  if (lanes.length === 0) return 0;
  const about = (lane: LaneState) => (isShared(lane.key) ? (mentioning.get(lane.id) ?? new Set<number>()) : null);
  const ids = lanes.flatMap((lane) => [...(about(lane) ?? idsIn(lane.events))]);
  const [held] = await session.rows<{ count: number }>("erase_holding", HOLDING, [ids]);
  for (const lane of lanes) loaded.rules.erase(lane, about(lane));
  for (const [index, text] of CLEAR.entries()) await session.rows(`erase_${index}`, text, [ids]);
  return held?.count ?? 0;
}

/** The lanes whose columns name the subject. */
async function lanesOfSubject(session: PgSession, subject: Subject): Promise<number[]> {
  const [name, text, value] =
    "peer" in subject ? ["lanes_of_peer", LANES_OF_PEER, subject.peer] : ["lanes_by_id", LANES_OF_ID, subject.id];
  const rows = await session.rows<{ id: number }>(name, text, [textBytes(value)]);
  return idsIn(rows);
}

type OwnRow = Pick<SearchedRow, "lane" | "event">;

interface SearchedRow {
  readonly lane: number;
  readonly event: number;
  readonly raw: Buffer | null;
  readonly other: Buffer | null;
}

/** The events whose body mentions the subject, by their lane. */
type Mentions = ReadonlyMap<number, ReadonlySet<number>>;

/** The other lanes with a body that mentions the subject. */
async function lanesMentioning(
  session: PgSession,
  subject: Subject,
  isNamedIn: (raw: Uint8Array) => boolean,
): Promise<Mentions> {
  const found = new Map<number, Set<number>>();
  const add = (lane: number, event: number) => found.set(lane, (found.get(lane) ?? new Set()).add(event));
  const byPeer = "peer" in subject;
  const own = byPeer ? [] : await session.rows<OwnRow>("events_of_id", EVENTS_OF_ID, [idBytes(subject.id)]);
  for (const { lane, event } of own) add(lane, event);
  for (let after = { lane: 0, event: 0 }; ; ) {
    const values = [after.lane, after.event, byPeer, PAGE];
    const rows = await session.rows<SearchedRow>("searched_events", SEARCHED, values);
    for (const { lane, event, raw, other } of rows) {
      const isNamed = (raw !== null && isNamedIn(raw)) || (other !== null && isNamedIn(other));
      if (isNamed) add(lane, event);
    }
    const last = rows.at(-1);
    if (last === undefined) return found;
    after = last;
  }
}

async function lockQuarantined(
  session: PgSession,
  isNamedIn: (raw: Uint8Array) => boolean,
): Promise<readonly QuarantineState[]> {
  const named: number[] = [];
  for (let after = 0; ; ) {
    const rows = await session.rows<{ id: number; raw: Buffer }>("erase_quarantined", QUARANTINED, [after, PAGE]);
    for (const { id, raw } of rows) if (isNamedIn(raw)) named.push(id);
    const last = rows.at(-1);
    if (last === undefined) break;
    after = last.id;
  }
  return named.length === 0 ? [] : session.rows<QuarantineState>("still_quarantined", STILL_QUARANTINED, [named]);
}

async function eraseQuarantined({ session, sheet }: Workspace, rows: readonly QuarantineState[]): Promise<void> {
  if (rows.length === 0) return;
  for (const { bytes, state } of rows) {
    if (state !== HELD.held) continue;
    sheet.gauge("held", -1);
    sheet.gauge("held_bytes", -bytes);
  }
  await session.rows("clear_quarantine", CLEAR_QUARANTINE, [idsIn(rows)]);
}
