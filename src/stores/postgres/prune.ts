/** Removes data past its retention, in batches of limited size. */
import type { PrunePolicy, PruneResult } from "../../inbox/store.ts";
import { type RetentionEnds, retentionEnds } from "../../inbox/store-rules.ts";
import { HELD, KEEP, STATUS } from "../database.ts";
import { removeSilent, TallySheet } from "./instances.ts";
import { idsIn } from "./lanes.ts";
import { pruneNoteRows } from "./notes.ts";
import type { PgInbox } from "./open.ts";
import type { PgSession } from "./session.ts";

const PRUNABLE = `select id, lane, keep, finished from {}.event where keep = $1::smallint and finished < $2::bigint
  and accepted < $2::bigint and signed < $2::bigint and untimed is null order by finished limit $3::int`;
const PRUNABLE_UNTIMED = `select id, lane, keep, finished from {}.event where keep = $1::smallint and finished < $2::bigint
  and accepted < $2::bigint and untimed order by finished limit $3::int`;
/** Events change only under their lane's lock, so lock the lanes and then check again. Lanes that are locked elsewhere wait for the next round. */
const LOCK_LANES = "select id from {}.lane where id = any($1::bigint[]) order by id for update skip locked";
const STILL = "select id, lane, keep, finished from {}.event where id = any($1::bigint[]) and lane = any($2::bigint[])";
const NEWEST = "select max(newest_signed) as newest from {}.tally";
const KEEP_IDENTITY = `update {}.event set keep = ${KEEP.identity}, has_body = false where id = any($1::bigint[])`;
const REMOVE_EVENTS = "delete from {}.event where id = any($1::bigint[])";
const REMOVE_LANES = `delete from {}.lane l where id = any($1::bigint[]) and not exists (select 1 from {}.event e where e.lane = l.id) returning id, status`;
const REMOVE_GAPS = "delete from {}.gap where lane = any($1::bigint[])";
const OLD_ROWS = `select id, state, bytes from {}.quarantine
  where greatest(accepted, signed) < case when untimed then $2::bigint else $1::bigint end
  and (state = 0) = $3::boolean order by accepted limit $4::int for update skip locked`;
const REMOVE_ROWS = "delete from {}.quarantine where id = any($1::bigint[])";

interface PrunableRow {
  readonly id: number;
  readonly lane: number;
  readonly keep: number;
  readonly finished: number;
}

export async function pruneRows(inbox: PgInbox, policy: PrunePolicy): Promise<PruneResult> {
  const pruning = <T>(work: (session: PgSession, ends: RetentionEnds) => Promise<T>): Promise<T> =>
    inbox.transaction(async (session) => work(session, await endsOf(inbox, session)));
  const bodies = await pruning((session, ends) => pruneBodies(session, policy, ends));
  const events = await pruning((session, ends) => pruneEvents(inbox, session, policy, ends));
  const quarantined = await pruning((session, ends) => pruneQuarantined(inbox, session, policy, ends));
  await pruning((session, { timed }) => removeSilent(session, inbox.context.instance, timed));
  await inbox.transaction(async (session) => pruneNoteRows(session, await inbox.now(session)));
  const more = bodies.more || events.more || quarantined.more;
  return { bodies: bodies.count, events: events.count, lanes: events.lanes, quarantined: quarantined.count, more };
}

interface Pruned {
  readonly count: number;
  readonly more: boolean;
}

async function endsOf(inbox: PgInbox, session: PgSession): Promise<RetentionEnds> {
  const now = await inbox.now(session);
  const [row] = await session.rows<{ newest: number | null }>("newest", NEWEST);
  return retentionEnds(now, row?.newest ?? null);
}

/** Deletes what these tables hold of the events. */
async function clear(
  session: PgSession,
  tables: readonly ("body" | "conflict" | "attempt")[],
  events: readonly number[],
): Promise<void> {
  for (const table of tables)
    await session.rows(`clear_${table}`, `delete from {}.${table} where event = any($1::bigint[])`, [events]);
}

async function pruneBodies(session: PgSession, policy: PrunePolicy, ends: RetentionEnds): Promise<Pruned> {
  const { rows, more } = await takeEvents(session, policy.batch, [
    ...prunable(session, KEEP.handled, ends, policy.handledBodiesMs),
    ...prunable(session, KEEP.other, ends, policy.otherBodiesMs),
  ]);
  const ids = idsIn(rows);
  if (ids.length > 0) {
    await clear(session, ["body", "conflict"], ids);
    await session.rows("keep_identity", KEEP_IDENTITY, [ids]);
  }
  return { count: ids.length, more };
}

async function pruneEvents(
  inbox: PgInbox,
  session: PgSession,
  policy: PrunePolicy,
  ends: RetentionEnds,
): Promise<Pruned & { lanes: number }> {
  const finished = [KEEP.identity, KEEP.handled, KEEP.other];
  const { rows, more } = await takeEvents(session, policy.batch, [
    ...finished.flatMap((keep) => prunable(session, keep, ends, policy.identitiesMs)),
    ...prunable(session, KEEP.dead, ends, policy.deadMs),
  ]);
  if (rows.length === 0) return { count: 0, more, lanes: 0 };
  const ids = idsIn(rows);
  await clear(session, ["body", "conflict", "attempt"], ids);
  await session.rows("remove_events", REMOVE_EVENTS, [ids]);
  const sheet = new TallySheet(inbox.instance);
  sheet.gauge("dead", -rows.filter(({ keep }) => keep === KEEP.dead).length);
  const lanes = await removeEmptyLanes(session, sheet, rows);
  await sheet.write(session);
  return { count: ids.length, more, lanes };
}

async function removeEmptyLanes(session: PgSession, sheet: TallySheet, rows: readonly PrunableRow[]): Promise<number> {
  const lanes = [...new Set(rows.map(({ lane }) => lane))];
  const removed = await session.rows<{ id: number; status: number }>("remove_lanes", REMOVE_LANES, [lanes]);
  if (removed.length > 0) await session.rows("remove_gaps", REMOVE_GAPS, [idsIn(removed)]);
  sheet.gauge("blocked", -removed.filter(({ status }) => status === STATUS.blocked).length);
  return removed.length;
}

async function pruneQuarantined(
  inbox: PgInbox,
  session: PgSession,
  policy: PrunePolicy,
  { timed, untimed }: RetentionEnds,
): Promise<Pruned> {
  const old = (ageMs: number, held: boolean) => (limit: number) =>
    session.rows<{ id: number; state: number; bytes: number }>("old_rows", OLD_ROWS, [
      ...[timed - ageMs, untimed - ageMs, held, limit],
    ]);
  const { rows, more } = await takeBatch(policy.batch, [old(policy.deadMs, true), old(policy.identitiesMs, false)]);
  if (rows.length === 0) return { count: 0, more };
  await session.rows("remove_rows", REMOVE_ROWS, [idsIn(rows)]);
  const held = rows.filter(({ state }) => state === HELD.held);
  const sheet = new TallySheet(inbox.instance);
  sheet.gauge("held", -held.length);
  sheet.gauge("held_bytes", -held.reduce((sum, { bytes }) => sum + bytes, 0));
  await sheet.write(session);
  return { count: rows.length, more };
}

/** Finds events to prune, by the latest of their times: the service may repeat an event after its acceptance, and the clock may have been set back. */
function prunable(session: PgSession, keep: number, { timed, untimed }: RetentionEnds, ageMs: number) {
  return [
    (limit: number) => session.rows<PrunableRow>("prunable", PRUNABLE, [keep, timed - ageMs, limit]),
    (limit: number) => session.rows<PrunableRow>("prunable_untimed", PRUNABLE_UNTIMED, [keep, untimed - ageMs, limit]),
  ];
}

/** A batch of events whose lanes are now locked, without events that have changed since they were found. */
async function takeEvents(
  session: PgSession,
  size: number,
  sources: readonly ((limit: number) => Promise<readonly PrunableRow[]>)[],
): Promise<{ readonly rows: readonly PrunableRow[]; readonly more: boolean }> {
  const found = await takeBatch(size, sources);
  if (found.rows.length === 0) return found;
  const lanes = [...new Set(found.rows.map(({ lane }) => lane))];
  const locked = await session.rows<{ id: number }>("lock_lanes", LOCK_LANES, [lanes]);
  const before = new Map(found.rows.map((row) => [row.id, row]));
  const values = [[...before.keys()], idsIn(locked)];
  const rows = (await session.rows<PrunableRow>("still_prunable", STILL, values)).filter(
    ({ id, keep, finished }) => before.get(id)?.keep === keep && before.get(id)?.finished === finished,
  );
  // Without progress the next round would find the same rows.
  return { rows, more: found.more && rows.length > 0 };
}

/** The first `size` rows of all sources, and whether there are more. */
async function takeBatch<Row>(
  size: number,
  sources: readonly ((limit: number) => Promise<readonly Row[]>)[],
): Promise<{ readonly rows: readonly Row[]; readonly more: boolean }> {
  const rows: Row[] = [];
  for (const source of sources) {
    if (rows.length > size) break;
    rows.push(...(await source(size + 1 - rows.length)));
  }
  return { rows: rows.slice(0, size), more: rows.length > size };
}
