/** Copies an inbox: exports the lanes of Postgres page by page, and imports pages of another store. */
import { bySequence, type LaneEvent, NO_BODY, toEventRecord } from "../../inbox/lane-state.ts";
import type {
  AttemptRecord,
  ConflictRecord,
  ImportAnswer,
  ImportPage,
  TransferredEvent,
  TransferredLane,
  TransferredTotals,
} from "../../inbox/record.ts";
import { countIn, plainText, withinBytes, withoutLease } from "../../inbox/store-rules.ts";
import { HELD, kindsText, orderCode, STATUS } from "../database.ts";
import { columnNames, columns, nullableBytes, tenantBytes, transposed, unnested, type Values } from "./encoding.ts";
import { TallySheet } from "./instances.ts";
import { idsIn, laneColumns, type PgLaneRow, readBodies, readLanes } from "./lanes.ts";
import type { PgInbox } from "./open.ts";
import type { PgSession } from "./session.ts";
import {
  ATTEMPT,
  asBuffer,
  attemptValues,
  CONFLICT,
  changingValues,
  fixedValues,
  GAP,
  HEADED_BODY,
  sourceValues,
  WHOLE_EVENT,
} from "./statements.ts";

const LANES = `select ${laneColumns("l")} from {}.lane l where id > $1::bigint order by id limit $2::int`;
const ATTEMPTS = `select e.lane, a.event as "eventId", a.attempt, a.at, a.duration as "durationMs", a.error_code as "errorCode", a.error
  from {}.attempt a join {}.event e on e.id = a.event where a.event = any($1::bigint[]) order by a.id`;
const CONFLICTS = `select event, digest, signed as "signedAt", at, raw from {}.conflict where event = any($1::bigint[])`;

/** The length of a body is in the header of its value. */
const SIZES = `select w.id, ((select coalesce(sum(octet_length(raw)), 0) from {}.body where event = any(w.events))
    + (select coalesce(sum(octet_length(raw)), 0) from {}.conflict where event = any(w.events)))::bigint as bytes
  from (select id, array(select id from {}.event where lane = one.id) as events from unnest($1::bigint[]) as one (id)) as w`;

export async function exportLaneRows(session: PgSession, after: number, limit: number): Promise<TransferredLane[]> {
  const page = await session.rows<PgLaneRow>("export_lanes", LANES, [after, limit]);
  const sizes = await session.rows<{ id: number; bytes: number }>("export_sizes", SIZES, [idsIn(page)]);
  const sizeOf = new Map(sizes.map(({ id, bytes }) => [id, bytes]));
  const rows = withinBytes(page, ({ id }) => sizeOf.get(id) ?? 0);
  const lanes = await readLanes(session, rows);
  const events = lanes.flatMap((lane) => lane.events);
  const bodies = await readBodies(session, idsIn(events));
  const conflicts = await readConflicts(session, events);
  const values = [idsIn(events)];
  const attempts = await session.rows<AttemptRecord & { readonly lane: number }>("export_attempts", ATTEMPTS, values);
  const attemptsOf = new Map<number, AttemptRecord[]>(lanes.map(({ id }) => [id, []]));
  for (const { lane, ...attempt } of attempts) attemptsOf.get(lane)?.push(attempt);
  return lanes.map(({ token: _token, holder: _holder, leased, events, ...facts }) => ({
    ...facts,
    ...withoutLease(
      facts,
      events.find(({ id }) => id === leased),
    ),
    events: events.toSorted(bySequence).map((event) => {
      const { laneId: _laneId, lane: _lane, ...record } = toEventRecord(event, bodies.get(event.id) ?? NO_BODY);
      return { ...record, gapWaitMs: event.gapWaitMs, conflicting: conflicts.get(event.id) ?? null };
    }),
    attempts: attemptsOf.get(facts.id) ?? [],
  }));
}

async function readConflicts(session: PgSession, events: readonly LaneEvent[]) {
  const ids = idsIn(events.filter(({ conflict }) => conflict));
  const rows = await session.rows<ConflictRecord & { readonly event: number }>("export_conflicts", CONFLICTS, [ids]);
  return new Map(rows.map(({ event, ...conflict }) => [event, conflict]));
}

const TABLES = {
  lane: columns(`id bigint, name bytea, source text, tenant bytea, ord smallint, status smallint, ready_at bigint, cursor bigint,
    gap_since bigint, peer bytea, reference bytea`),
  event: WHOLE_EVENT,
  body: HEADED_BODY,
  conflict: CONFLICT,
  gap: GAP,
  attempt: ATTEMPT,
  quarantine:
    columns(`id bigint, digest bytea, reason text, slot text, signer text, source text, tenant bytea, kinds text, state smallint, replayed_as bigint,
    signed bigint, accepted bigint, bytes int, trace text, raw bytea, head text, untimed boolean`),
  audit: columns("id bigint, at bigint, by text, act text, detail text"),
} as const;
type Table = keyof typeof TABLES;

const INSERT = Object.fromEntries(
  Object.entries(TABLES).map(([table, own]) => [
    table,
    `insert into {}.${table} (${columnNames(own)}) overriding system value select * from ${unnested(own, 0)}
     on conflict do nothing returning ${own[0]?.[0]} as key`,
  ]),
);
const KNOWN = "select id from {}.lane where id = any($1::bigint[])";
/** One import at a time. */
const LOCK = "select pg_advisory_xact_lock(hashtext('oncehook import {}'))";
const META = "select key, value from {}.meta where key in ('copied_from', 'copy_finished')";
const WRITE_META = "insert into {}.meta (key, value) values ($1::text, $2::text) on conflict (key) do nothing";
const EMPTY = `select not exists (select 1 from {}.lane) and not exists (select 1 from {}.quarantine)
  and not exists (select 1 from {}.audit) as empty`;
const LAST = "select coalesce(max(id), 0) as last from {}.lane";
/** New ids are higher than those of the copy. */
const RAISE = `select setval('{}.lane_id', greatest((select last_value from {}.lane_id), (select max(id) from {}.lane), 1)),
  setval('{}.event_id', greatest((select last_value from {}.event_id), (select max(id) from {}.event), 1)),
  setval(pg_get_serial_sequence('{}.quarantine', 'id'), (select coalesce(max(id), 0) + 1 from {}.quarantine), false),
  setval(pg_get_serial_sequence('{}.audit', 'id'), (select coalesce(max(id), 0) + 1 from {}.audit), false)`;

export async function importLaneRows(inbox: PgInbox, page: ImportPage): Promise<ImportAnswer> {
  return inbox.transaction(async (session) => {
    await session.rows("import_lock", LOCK);
    const meta = await session.rows<{ key: string; value: string }>("import_meta", META);
    const source = meta.find(({ key }) => key === "copied_from")?.value;
    if (source === undefined ? !(await isEmpty(session)) : source !== page.source) return { ok: false };
    await session.rows("import_note", WRITE_META, ["copied_from", page.source]);
    const finished = meta.some(({ key }) => key === "copy_finished");
    if (!finished) await importRows(inbox, session, page);
    const [row] = await session.rows<{ last: number }>("import_last", LAST);
    return { ok: true, lastLane: row?.last ?? 0, finished: finished || page.totals !== null };
  });
}

async function isEmpty(session: PgSession): Promise<boolean> {
  const [row] = await session.rows<{ empty: boolean }>("import_empty", EMPTY);
  return row?.empty === true;
}

async function importRows(inbox: PgInbox, session: PgSession, page: ImportPage): Promise<void> {
  const sheet = new TallySheet(inbox.instance);
  const there = await session.rows<{ id: number }>("import_known", KNOWN, [idsIn(page.lanes)]);
  const known = new Set(idsIn(there));
  // A lane that exists was imported completely by an earlier call.
  const lanes = page.lanes.filter(({ id }) => !known.has(id));
  await importLanes(session, lanes);
  for (const { events, status } of lanes) {
    sheet.gauge("pending", countIn(events, "pending"));
    sheet.gauge("dead", countIn(events, "dead"));
    sheet.gauge("blocked", Number(status === "blocked"));
  }
  await importQuarantined(session, sheet, page);
  const audit = page.audit.map(({ id, at, by, act, detail }) => [id, at, plainText(by), act, plainText(detail)]);
  await insert(session, "audit", audit);
  if (page.totals !== null) await importTotals(session, sheet, page.totals);
  await sheet.write(session);
}

async function importLanes(session: PgSession, lanes: readonly TransferredLane[]): Promise<void> {
  const events = lanes.flatMap(({ events }) => events);
  const tables: readonly (readonly [Table, readonly Values[]])[] = [
    ["lane", lanes.map(laneValues)],
    ["event", lanes.flatMap((lane) => lane.events.map((event) => eventValues(event, lane)))],
    ["body", events.flatMap(({ id, raw, head }) => (raw === null ? [] : [[id, asBuffer(raw), head]]))],
    ["conflict", events.flatMap(conflictValues)],
    ["gap", lanes.flatMap(({ id, gaps }) => gaps.map((gap) => [id, gap.from, gap.to, gap.skippedAt, gap.filledAt]))],
    ["attempt", lanes.flatMap(({ attempts }) => attempts.map(attemptValues))],
  ];
  for (const [table, rows] of tables) await insert(session, table, rows);
}

/** Inserts the rows that do not exist. Returns the first column of those. */
async function insert(session: PgSession, table: Table, rows: readonly Values[]): Promise<ReadonlySet<number>> {
  if (rows.length === 0) return new Set();
  const values = transposed(TABLES[table], rows);
  const inserted = await session.rows<{ key: number }>(`import_${table}`, INSERT[table] ?? "", values);
  return new Set(inserted.map(({ key }) => key));
}

function laneValues(lane: TransferredLane): Values {
  const { id, key, status, readyAt, cursor, gapSince, peer, externalReference } = lane;
  const named = [nullableBytes(peer), nullableBytes(externalReference)];
  const { source, tenant, name, order } = key;
  const names = [nullableBytes(name), source, tenantBytes(tenant), orderCode(order)];
  return [id, ...names, STATUS[status], readyAt, cursor, gapSince, ...named];
}

function eventValues(event: TransferredEvent, lane: TransferredLane): Values {
  const facts = { ...event, hasBody: event.raw !== null };
  return [
    ...fixedValues(facts, lane),
    ...changingValues(facts),
    ...(sourceValues(facts, lane.key) ?? [null, null, null]),
  ];
}

function conflictValues({ id, conflicting }: TransferredEvent): Values[] {
  if (conflicting === null) return [];
  const { digest, signedAt, at, raw } = conflicting;
  return [[id, asBuffer(digest), signedAt, at, asBuffer(raw)]];
}

async function importQuarantined(session: PgSession, sheet: TallySheet, { quarantined }: ImportPage): Promise<void> {
  const rows = quarantined.map((row) => {
    const { id, digest, reason, slot, signer, kinds, state, replayedAs, signedAt, acceptedAt, trace, raw, head } = row;
    const body = raw === null ? null : asBuffer(raw);
    const owner = [row.source, tenantBytes(row.tenant)];
    const source = [asBuffer(digest), reason, slot, signer, ...owner, kindsText(kinds), HELD[state], replayedAs];
    return [id, ...source, signedAt, acceptedAt, body?.byteLength ?? 0, trace, body, head, row.untimed ? true : null];
  });
  const taken = await insert(session, "quarantine", rows);
  for (const { id, state, raw } of quarantined) {
    if (state !== "held" || !taken.has(id)) continue;
    sheet.gauge("held", 1);
    sheet.gauge("held_bytes", raw?.byteLength ?? 0);
  }
}

async function importTotals(session: PgSession, sheet: TallySheet, totals: TransferredTotals): Promise<void> {
  for (const [name, value] of Object.entries(totals.counters)) {
    sheet.count(name as keyof TransferredTotals["counters"], value);
  }
  if (totals.newestSignedAt !== null) sheet.signed(totals.newestSignedAt);
  if (totals.serviceResigns) sheet.resigned();
  await session.rows("import_raise", RAISE);
  await session.rows("import_end", WRITE_META, ["copy_finished", "true"]);
}
