/** The migrations of the schema, and the migration of an inbox to this version. */
import { SetupError } from "../../errors.ts";
import type { InboxRules, OpenContext } from "../../inbox/store.ts";
import { checkMoved, copyUnfinished, noInbox, rulesFor } from "../../inbox/store-rules.ts";
import { type FoundSchema, type Migration, missingMigrations, rulesFromMeta, rulesToMeta } from "../database.ts";
import { isContention, sqlState } from "./failures.ts";
import { ANSWER_MS, limit, type PgClient, types } from "./session.ts";

/**
 * Schema 1: the facts of docs/inbox.md. Texts of the service are `bytea`, because ids may contain NUL, which `text` refuses. Bodies
 * have a table of their own, so that settling an event does not rewrite its body. Each instance has rows of counters, one for each slot
 * in which it commits: with a shared row, commits would wait for each other.
 */
const inbox = `
create table meta (key text primary key, value text not null);

create table instance (
  id int generated always as identity primary key, name text not null unique, host text not null, pid int not null,
  pid_started text not null, opened bigint not null, seen bigint, keyring text, counters jsonb
);

-- Instance 0 holds what those that are gone had counted. Gauges are sums of changes.
create table tally (
  instance int not null, slot smallint not null default 0, pending bigint not null default 0, dead bigint not null default 0, held bigint not null default 0,
  held_bytes bigint not null default 0, blocked bigint not null default 0, accepted bigint not null default 0,
  duplicates bigint not null default 0, conflicts bigint not null default 0, late bigint not null default 0,
  handled bigint not null default 0, unhandled bigint not null default 0, retried bigint not null default 0,
  dead_lettered bigint not null default 0, discarded bigint not null default 0, gaps_skipped bigint not null default 0,
  quarantined bigint not null default 0, newest_signed bigint, resigned boolean not null default false,
  filtered bigint not null default 0, primary key (instance, slot)
) with (fillfactor = 50);
insert into tally (instance) values (0);

-- The name is null, and ord 0, in a lane of one event. A tenant of none is ''.
-- ready_at is null exactly when the lane is idle or blocked; leased and holder are set exactly when it is leased.
-- The lane has what a claim changes about an event, its attempts and their start, until the lease ends; then the event has it. So a claim
-- writes only the lane, which it writes anyway.
create sequence lane_id;
create table lane (
  id bigint primary key, name bytea, source text not null, tenant bytea not null, ord smallint not null,
  status smallint not null default 0, ready_at bigint, cursor bigint, gap_since bigint, token bigint not null default 0,
  holder int, leased bigint, peer bytea, reference bytea,
  leased_attempts int, leased_started bigint
) with (fillfactor = 70);
create unique index lane_key on lane (name, source, tenant, ord) where name is not null;
create index lane_due on lane (ready_at, id) where status >= 3;
create index lane_lease on lane (ready_at, id) where status = 2;
-- For lists of lanes that are blocked or wait (blocked, gap, backoff). Ready and leased lanes are not in it and cost no write.
create index lane_parked on lane (status, id) where status in (1, 4, 5);

-- own_id: the id that the source gives the event; null by sequence. untimed is true where no time was signed, and shared in a lane of
-- several events without a sequence; both are null otherwise.
create sequence event_id;
create table event (
  id bigint primary key, lane bigint not null, seq bigint not null, type bytea not null, source text not null, tenant bytea not null, state smallint not null,
  outcome smallint, keep smallint, finished bigint, attempts int not null, started bigint, late boolean not null,
  forced boolean not null, duplicates int not null, conflict boolean not null, gap_wait bigint not null,
  occurred bigint not null, signed bigint not null, accepted bigint not null, error_code text, error text,
  digest bytea not null, trace text, has_body boolean not null, own_id bytea, untimed boolean, shared boolean, unique (lane, seq, type)
) with (fillfactor = 80);
create unique index event_own_id on event (own_id, source, tenant) where own_id is not null;
create index event_owner on event (source, tenant, id);
create index event_waiting on event (lane, seq) where shared and state + 0 = 0;
create index event_held on event (lane, id) where shared and state + 0 = 0 and gap_wait > 0;
create index event_open on event (state, id) where state <> 1;
create index event_keep on event (keep, finished) where keep is not null;
create index event_untimed on event (keep, finished) where untimed and keep is not null;
create index event_unhandled on event (id) where outcome = 2;
create index event_late on event (id) where late;
create index event_conflict on event (id) where conflict;
create index event_error on event (error_code, id) where error_code is not null;
-- For lists of a type that is rare.
create index event_type on event (type);

-- head: the headers that a source keeps, which go with the body.
create table body (event bigint primary key, raw bytea not null, head text);
create table conflict (event bigint primary key, digest bytea not null, signed bigint not null, at bigint not null, raw bytea not null);
create table gap (
  lane bigint not null, hi bigint not null, lo bigint not null, skipped bigint not null, filled bigint, primary key (lane, hi)
);
create table attempt (
  id bigint generated always as identity primary key, event bigint not null, attempt int not null, at bigint not null,
  duration bigint not null, error_code text not null, error text not null
);
create index attempt_event on attempt (event);

-- signer: the secret that signed the body, for a quota per secret.
create table quarantine (
  id bigint generated always as identity primary key, digest bytea not null unique, reason text not null, slot text not null,
  source text not null, tenant bytea not null, kinds text not null default '[]', state smallint not null default 0, replayed_as bigint, signed bigint not null, accepted bigint not null,
  bytes int not null, trace text, raw bytea, signer text not null, head text, untimed boolean
);
create index quarantine_signer on quarantine (signer, bytes) where state = 0;
create index quarantine_accepted on quarantine (accepted);

create table audit (
  id bigint generated always as identity primary key, at bigint not null, by text not null, act text not null, detail text not null
);

-- The notes of InboxStore.changeNotes. Pruning removes one once its time (until) has passed.
create table note (name text primary key, value text not null, until bigint not null);

-- The webhook secrets of each kind, sealed outside the database. revision grows with each write, so that of two writers who read the same
-- revision only one replaces it.
create table secret (kind text primary key, revision bigint not null, sealed bytea not null, changed bigint not null);
`;

/** Entry n creates schema n + 1. A published entry never changes: what changes comes as a further one. */
export const PG_MIGRATIONS: readonly Migration[] = [{ sql: inbox, minReader: 1 }];

/** The schema of the tables, and a connection to them. */
interface Place {
  readonly client: PgClient;
  /** Quoted. */
  readonly schema: string;
  /** For error messages. */
  readonly location: string;
}

/**
 * Runs the missing migrations in one transaction, under a lock that other processes wait for, and checks whose inbox it is.
 *
 * @throws SetupError `inbox_too_new`, `migration_needed` with `"check"`, `wrong_receiver_name`, `no_inbox`, and `invalid_option` for a
 *   schema that contains something else
 */
export function migratePg(place: Place, context: OpenContext): Promise<InboxRules> {
  return alone(place, async () => {
    await bringUp(place, context);
    return applyRules(place, context);
  });
}

/**
 * The same without the check of whose inbox it is, for tables that are independent of the receiver.
 *
 * @throws SetupError `inbox_too_new`, `migration_needed`, `invalid_option`
 */
export function migrateTables(place: Place, mode: OpenContext["migrate"]): Promise<void> {
  return alone(place, () => bringUp(place, { migrate: mode }));
}

/** Runs `work` in a transaction, one process at a time; it sees the changes of the previous ones. */
async function alone<T>({ client, schema }: Place, work: () => Promise<T>): Promise<T> {
  await client.query({ text: "begin isolation level read committed", query_timeout: ANSWER_MS });
  try {
    // Another process may be migrating a large inbox, and the role's own limits are meant for small statements.
    await client.query("set local statement_timeout = 0; set local lock_timeout = 0");
    // All others wait for this one without a limit, so the server ends it when it hangs.
    await client.query(limit("idle_in_transaction_session_timeout"));
    await client.query("select pg_advisory_xact_lock(hashtext('oncehook ' || $1))", [schema]);
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

async function bringUp(
  { client, schema, location }: Place,
  context: Pick<OpenContext, "migrate"> & Partial<Pick<OpenContext, "rules">>,
): Promise<void> {
  const found = await schemaOf(client, schema);
  if (found.schema === 0 && context.rules === "recorded") throw noInbox(location);
  const missing = missingMigrations(found, PG_MIGRATIONS, context.migrate);
  const last = missing.at(-1);
  if (last === undefined) return;
  // The schema may have been created for a role that may not create one.
  const { rows } = await client.query({ text: "select to_regnamespace($1) is null as new", values: [schema], types });
  if (rows[0]?.new === true) await client.query(`create schema ${schema}`);
  if (found.schema > 0) await lockTables(client, schema);
  // Only the statements of migrations need it, because they name their tables without the schema.
  await client.query(`set local search_path = ${schema}, pg_temp`);
  for (const { sql } of missing) await client.query(sql);
  await writeMeta(client, schema, "schema", String(PG_MIGRATIONS.length));
  await writeMeta(client, schema, "min_reader", String(last.minReader));
}

const TRIES = 40;
/** What migrations alter, and what batches write. All at once: a lock taken later, while others wait for the first, could end in a deadlock. */
const LOCKED = ["instance", "lane", "event", "body", "quarantine", "tally"];

/**
 * Other transactions queue behind this lock request, which itself waits for batches and effects that may take seconds. So it waits only
 * briefly and lets the others continue; after 14 s it stays in the queue.
 */
async function lockTables(client: PgClient, schema: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    await client.query(`savepoint locking; set local lock_timeout = ${tries < TRIES ? 100 : 0}`);
    try {
      await client.query(`lock table ${LOCKED.map((table) => `${schema}.${table}`).join(", ")}`);
      await client.query("set local lock_timeout = 0");
      return;
    } catch (error) {
      if (!isContention(error)) throw error;
      await client.query("rollback to savepoint locking; select pg_sleep(0.25)");
    }
  }
}

const THERE = `select to_regclass($1) is not null as ours,
  exists (select 1 from pg_catalog.pg_class where relnamespace = to_regnamespace($2)) as taken`;

/** The schema version in `meta`; 0 when there is no inbox yet. */
async function schemaOf(client: PgClient, schema: string): Promise<FoundSchema> {
  const { rows } = await client.query({ text: THERE, values: [`${schema}.meta`, schema], types });
  const { ours, taken } = rows[0] ?? {};
  if (ours !== true && taken === true) throw notOurs(schema);
  if (ours !== true) return { schema: 0, minReader: 0 };
  const meta = await readMeta(client, schema).catch((error: unknown) => {
    throw sqlState(error) === UNDEFINED_COLUMN ? notOurs(schema) : error;
  });
  const number = Number(meta.schema);
  if (!Number.isInteger(number)) throw notOurs(schema);
  return { schema: number, minReader: Number(meta.min_reader) };
}

const UNDEFINED_COLUMN = "42703";

function notOurs(schema: string): SetupError {
  const message = `The schema ${schema} contains something other than an inbox: give the inbox a schema of its own.`;
  return new SetupError("invalid_option", message, { fields: { option: "schema" } });
}

/** Records whose inbox this is, and the receiver's other rules. @returns the rules that apply */
async function applyRules({ client, schema, location }: Place, context: OpenContext): Promise<InboxRules> {
  const { name, tolerance_ms, copied_from, copy_finished, moved_to } = await readMeta(client, schema);
  const rules = rulesFor(context.rules, rulesFromMeta({ name, tolerance_ms }), location);
  if (copied_from && !copy_finished && context.copying !== true) throw copyUnfinished(schema);
  checkMoved(moved_to, location, context.movedTo);
  for (const [key, value] of Object.entries(rulesToMeta(rules))) await writeMeta(client, schema, key, value);
  return rules;
}

async function readMeta(client: PgClient, schema: string): Promise<Readonly<Record<string, string | undefined>>> {
  const { rows } = await client.query(`select key, value from ${schema}.meta`);
  return Object.fromEntries(rows.map(({ key, value }) => [key, value]));
}

async function writeMeta(client: PgClient, schema: string, key: string, value: string): Promise<void> {
  await client.query(
    `insert into ${schema}.meta (key, value) values ($1, $2)
     on conflict (key) do update set value = excluded.value where meta.value <> excluded.value`,
    [key, value],
  );
}
