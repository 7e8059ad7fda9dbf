/** Brings the schema to this version, or says why it must not. */
import { SetupError } from "../../errors.ts";
import { type InboxRules, noInbox, rulesFor } from "../../inbox/rules.ts";
import type { OpenContext } from "../../inbox/store.ts";
import { copyUnfinished } from "../../inbox/transfer.ts";
import { rulesFromMeta, rulesToMeta } from "../recorded-rules.ts";
import { type FoundSchema, type Migration, missingMigrations } from "../schema-version.ts";
import { type PgClient, types } from "./driver.ts";
import { isContention, sqlState } from "./failures.ts";
import { inbox } from "./migrations/0001-inbox.ts";
import { secrets } from "./migrations/0002-secrets.ts";
import { parkedLanes } from "./migrations/0003-parked-lanes.ts";
import { attemptsOfLeases } from "./migrations/0004-attempts-of-leases.ts";
import { quarantineSigner } from "./migrations/0005-quarantine-signer.ts";
import { names } from "./migrations/0006-names.ts";
import { ANSWER_MS, limit } from "./session.ts";

/** Entry n makes schema n + 1. */
export const MIGRATIONS: readonly Migration[] = [
  { sql: inbox, minReader: 1 },
  { sql: secrets, minReader: 1 },
  { sql: parkedLanes, minReader: 1 },
  { sql: attemptsOfLeases, minReader: 1 },
  { sql: quarantineSigner, minReader: 1 },
  { sql: names, minReader: 1 },
];

/** Where the tables lie, and a connection to them. */
export interface Place {
  readonly client: PgClient;
  /** Quoted. */
  readonly schema: string;
  /** For messages. */
  readonly location: string;
}

/**
 * Runs what is missing in one transaction, under a lock that other processes wait for; checks whose inbox it is.
 *
 * @param known - for tests: the migrations that an older version has
 * @throws SetupError `inbox_too_new`, `migration_needed` with `"check"`, `wrong_receiver_name`, `no_inbox`, and `invalid_option` for a
 *   schema that holds something else
 */
export function migrate(place: Place, context: OpenContext, known = MIGRATIONS): Promise<InboxRules> {
  return alone(place, async () => {
    await bringUp(place, context, known);
    return applyRules(place, context);
  });
}

/**
 * The same for who uses a table beside the inbox, whoever's it is.
 *
 * @throws SetupError `inbox_too_new`, `migration_needed`, `invalid_option`
 */
export function migrateTables(place: Place, mode: OpenContext["migrate"]): Promise<void> {
  return alone(place, () => bringUp(place, { migrate: mode }, MIGRATIONS));
}

/** Runs `work` in a transaction that no other process has at the same time, and that sees what those before it did. */
async function alone<T>({ client, schema }: Place, work: () => Promise<T>): Promise<T> {
  await client.query({ text: "begin isolation level read committed", query_timeout: ANSWER_MS });
  try {
    // Another process may migrate a large inbox meanwhile, and the role's own limits are meant for small statements.
    await client.query("set local statement_timeout = 0; set local lock_timeout = 0");
    // All others wait for this one without a limit, so the server ends it when it stands still.
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
  known: readonly Migration[],
): Promise<void> {
  const found = await schemaOf(client, schema);
  if (found.schema === 0 && context.rules === "recorded") throw noInbox(location);
  const missing = missingMigrations(found, known, context.migrate);
  if (missing.length === 0) return;
  // One that was made for a role that may make none.
  const { rows } = await client.query({ text: "select to_regnamespace($1) is null as new", values: [schema], types });
  if (rows[0]?.new === true) await client.query(`create schema ${schema}`);
  if (found.schema > 0) await lockTables(client, schema);
  // Only for the statements of the migration, which name their tables without the schema.
  await client.query(`set local search_path = ${schema}, pg_temp`);
  for (const { sql } of missing) await client.query(sql);
  await writeMeta(client, schema, "schema", String(known.length));
  await writeMeta(client, schema, "min_reader", String(known.at(-1)?.minReader ?? known.length));
}

const TRIES = 40;

/**
 * Whoever asks for a table after this has asked waits behind it, and this behind a turn whose effects take seconds. So it asks for a
 * moment, and lets the others go on for a while; after 14 s it stays in line.
 */
async function lockTables(client: PgClient, schema: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    await client.query(`savepoint locking; set local lock_timeout = ${tries < TRIES ? 100 : 0}`);
    try {
      await client.query(`lock table ${schema}.lane, ${schema}.event`);
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

/** What `meta` says of the schema; 0 when there is no inbox yet. */
async function schemaOf(client: PgClient, schema: string): Promise<FoundSchema> {
  const { rows } = await client.query({ text: THERE, values: [`${schema}.meta`, schema], types });
  const { ours, taken } = rows[0] ?? {};
  if (ours !== true && taken === true) throw notOurs(schema);
  if (ours !== true) return { schema: 0, minReader: 0 };
  const number = Number(await readMeta(client, schema, "schema").catch(refuseOthers(schema)));
  if (!Number.isInteger(number)) throw notOurs(schema);
  return { schema: number, minReader: Number(await readMeta(client, schema, "min_reader")) };
}

const UNDEFINED_COLUMN = "42703";

function refuseOthers(schema: string): (error: unknown) => never {
  return (error) => {
    throw sqlState(error) === UNDEFINED_COLUMN ? notOurs(schema) : error;
  };
}

function notOurs(schema: string): SetupError {
  const message = `The schema ${schema} holds something else than an inbox: give the inbox a schema of its own.`;
  return new SetupError("invalid_option", message, { fields: { option: "schema" } });
}

/** Records whose inbox this is, and the rest of a receiver's rules. @returns the rules that apply */
async function applyRules({ client, schema, location }: Place, context: OpenContext): Promise<InboxRules> {
  const recorded = rulesFromMeta({
    name: await readMeta(client, schema, "name"),
    first_sequence: await readMeta(client, schema, "first_sequence"),
    tolerance_ms: await readMeta(client, schema, "tolerance_ms"),
  });
  const rules = rulesFor(context.rules, recorded, location);
  const isPart = (await readMeta(client, schema, "copied_from")) && !(await readMeta(client, schema, "copy_finished"));
  if (isPart && context.copying !== true) throw copyUnfinished(schema);
  for (const [key, value] of Object.entries(rulesToMeta(rules))) await writeMeta(client, schema, key, value);
  return rules;
}

async function readMeta(client: PgClient, schema: string, key: string): Promise<string | undefined> {
  const { rows } = await client.query(`select value from ${schema}.meta where key = $1`, [key]);
  return rows[0]?.value as string | undefined;
}

async function writeMeta(client: PgClient, schema: string, key: string, value: string): Promise<void> {
  await client.query(
    `insert into ${schema}.meta (key, value) values ($1, $2)
     on conflict (key) do update set value = excluded.value where meta.value <> excluded.value`,
    [key, value],
  );
}
