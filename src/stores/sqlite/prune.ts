/** Removes what is past its retention, in bounded batches, and gives the space back. */
import { setImmediate } from "node:timers/promises";
import type { PrunePolicy, PruneResult } from "../../inbox/store.ts";
import { type RetentionEnds, retentionEnds } from "../../inbox/store-rules.ts";
import { HELD, KEEP } from "../database.ts";
import { pruneNotes } from "./notes.ts";
import type { OpenInbox } from "./open-inbox.ts";
import { untilFree, type Work } from "./transaction.ts";

/** By the index of finished events; also what the test of query plans explains. */
export const PRUNABLE =
  "select id, lane, keep from oncehook_event where keep is not null and keep = ? and finished < ? and accepted < ? and signed < ? and untimed is null order by finished limit ?";
/** The same of sources that sign no time. */
export const PRUNABLE_UNTIMED =
  "select id, lane, keep from oncehook_event indexed by oncehook_event_untimed where untimed = 1 and keep is not null and keep = ? and finished < ? and accepted < ? order by finished limit ?";

/** Pages given back at most after one prune: a short lock. */
const VACUUM_PAGES = 1000;
/** A process that has not been heard of for so long is no longer shown. */
const FORGET_INSTANCES_MS = 7 * 24 * 3_600_000;

interface PrunableRow {
  readonly id: number;
  readonly lane: number;
  readonly keep: number;
}

/** One kind of rows: those taken in this batch, and whether there are others. */
interface Batch<Row> {
  readonly rows: readonly Row[];
  readonly more: boolean;
}

export async function prune(inbox: OpenInbox, policy: PrunePolicy): Promise<PruneResult> {
  // Each part takes a while, so other work must get a turn between batches.
  const bodies = await inbox.write((work) => pruneBodies(work, policy));
  await setImmediate();
  const events = await inbox.write((work) => pruneEvents(work, policy));
  await setImmediate();
  const quarantined = await inbox.write((work) => pruneQuarantined(work, policy));
  await setImmediate();
  await inbox.write(pruneNotes);
  const more = bodies.more || events.more || quarantined.more;
  await inbox.during(() =>
    untilFree(inbox.patience, () => inbox.db.exec(`pragma incremental_vacuum(${VACUUM_PAGES})`)),
  );
  return {
    bodies: bodies.rows.length,
    events: events.rows.length,
    lanes: events.lanes,
    quarantined: quarantined.rows.length,
    more,
  };
}

function endsOf({ sql, now }: Work): RetentionEnds {
  const newest = sql.readCounter.get("newest_signed")?.value ?? -1;
  return retentionEnds(now, newest < 0 ? null : newest);
}

function pruneBodies(work: Work, policy: PrunePolicy): Batch<PrunableRow> {
  const ends = endsOf(work);
  const batch = takeBatch(policy.batch, [
    ...prunable(work, KEEP.handled, ends, policy.handledBodiesMs),
    ...prunable(work, KEEP.other, ends, policy.otherBodiesMs),
  ]);
  const removeBody = work.db.prepare("delete from oncehook_body where event = ?");
  const removeConflict = work.db.prepare("delete from oncehook_conflict where event = ?");
  const keep = work.db.prepare("update oncehook_event set keep = ? where id = ?");
  for (const { id } of batch.rows) {
    removeBody.run(id);
    removeConflict.run(id);
    keep.run(KEEP.identity, id);
  }
  return batch;
}

function pruneEvents(work: Work, policy: PrunePolicy): Batch<PrunableRow> & { readonly lanes: number } {
  const ends = endsOf(work);
  const finished = [KEEP.identity, KEEP.handled, KEEP.other];
  const batch = takeBatch(policy.batch, [
    ...finished.flatMap((keep) => prunable(work, keep, ends, policy.identitiesMs)),
    ...prunable(work, KEEP.dead, ends, policy.deadMs),
  ]);
  const tables = ["body", "conflict", "attempt"].map((table) =>
    work.db.prepare(`delete from oncehook_${table} where event = ?`),
  );
  const removeEvent = work.db.prepare("delete from oncehook_event where id = ?");
  let lanes = 0;
  for (const { id, lane, keep } of batch.rows) {
    for (const table of tables) table.run(id);
    removeEvent.run(id);
    if (keep === KEEP.dead) work.ledger.gauge("dead", -1);
    if (removeEmptyLane(work, lane)) lanes++;
  }
  return { ...batch, lanes };
}

const REMOVE_LANE = `delete from oncehook_lane where id = ?
  and not exists (select 1 from oncehook_event where lane = oncehook_lane.id) returning status = 1 as blocked`;

function removeEmptyLane(work: Work, lane: number): boolean {
  const removed = work.db.prepare(REMOVE_LANE).get(lane) as { readonly blocked: number } | undefined;
  if (removed === undefined) return false;
  work.ledger.gauge("blocked", -removed.blocked);
  work.db.prepare("delete from oncehook_gap where lane = ?").run(lane);
  return true;
}

interface OldRow {
  readonly id: number;
  readonly state: number;
  readonly bytes: number;
}

function pruneQuarantined(work: Work, policy: PrunePolicy): Batch<OldRow> {
  const { timed, untimed } = endsOf(work);
  const select = work.db.prepare(
    `select id, state, bytes from oncehook_quarantine where max(accepted, signed) < iif(untimed = 1, ?, ?) and (state = 0) = ?
     order by accepted limit ?`,
  );
  const old = (ageMs: number, held: 0 | 1) => (limit: number) =>
    select.all(untimed - ageMs, timed - ageMs, held, limit) as OldRow[];
  const batch = takeBatch(policy.batch, [old(policy.deadMs, 1), old(policy.identitiesMs, 0)]);
  const remove = work.db.prepare("delete from oncehook_quarantine where id = ?");
  for (const { id, state, bytes } of batch.rows) {
    remove.run(id);
    if (state !== HELD.held) continue;
    work.ledger.gauge("held", -1);
    work.ledger.gauge("held_bytes", -bytes);
  }
  const forgotten = work.now - FORGET_INSTANCES_MS;
  work.db
    .prepare("delete from oncehook_instance where max(opened, coalesce(seen, 0)) < ? and id <> ?")
    .run(forgotten, work.facts.holder);
  return batch;
}

/** By the latest of its times: the service might repeat it since it was accepted, and the clock may have been set back then, or when it ended. */
function prunable(work: Work, keep: number, ends: RetentionEnds, ageMs: number): ((limit: number) => PrunableRow[])[] {
  const [timed, untimed] = [ends.timed - ageMs, ends.untimed - ageMs];
  return [
    (limit) => work.db.prepare(PRUNABLE).all(keep, timed, timed, timed, limit) as PrunableRow[],
    (limit) => work.db.prepare(PRUNABLE_UNTIMED).all(keep, untimed, untimed, limit) as PrunableRow[],
  ];
}

/** The first `size` rows of the sources together, and whether they hold more. */
function takeBatch<Row>(size: number, sources: readonly ((limit: number) => Row[])[]): Batch<Row> {
  const rows: Row[] = [];
  for (const source of sources) {
    if (rows.length > size) break;
    rows.push(...source(size + 1 - rows.length));
  }
  return { rows: rows.slice(0, size), more: rows.length > size };
}
