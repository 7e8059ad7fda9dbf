/** Inboxes on both stores as the programmes know them: the table that handlers write, and what an inbox holds at the end or after a kill. */
import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import pg from "pg";
import type { EffectStatement } from "../../src/inbox/store.ts";
import { type HandlerContext, type InboxStore, openInbox } from "../../src/index.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { idText, orderWord, outcomeWord, stateWord, tenantOf } from "../../src/stores/database.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { type SqliteDatabase, type SqliteStoreOptions, sqliteStore } from "../../src/stores/sqlite.ts";
import { effectOf, type HandledEffect, type StoredEvent, storedEventOf } from "./history.ts";

/** A file, or a schema of a server. */
export type Place = { readonly path: string } | { readonly url: string; readonly schema: string };

/** A row that a handler writes. */
export interface EffectRow extends HandledEffect {
  /** Of the process. */
  readonly pid: number;
  /** The event's id in the inbox. */
  readonly event: number;
  /** When the handler wrote it, epoch milliseconds. */
  readonly at: number;
  /** What its process is called. */
  readonly by: string;
  /** What was wrong with the event that the handler received; null for nothing. */
  readonly wrong: string | null;
}

/** What a handler knows without the inbox, and columns besides those of every programme. */
export type OwnEffect = Partial<HandledEffect & Pick<EffectRow, "by" | "wrong">>;

const COLUMNS = "identity, lane, sequence, attempt, late, replay, marker, pid, event, at, process, wrong";
const TYPES = `identity text, lane text, sequence int, attempt int, late boolean, replay boolean, marker text, pid int, event int,
  at float8, process text, wrong text`;
const READ = `select identity, lane, sequence, attempt, late, replay, marker, pid, event, at, process as "by", wrong from`;
/** Of the programme's own connections, which it does not cut. */
export const OWN_NAME = "programme";
const PAGE = 1_000;
const TABLE = /\{(\w+)\}/g;
/** Those that are not the inbox's. */
const OWN_TABLES: readonly string[] = ["effect", "sum"];

/** For `onOpen` of a store on SQLite. */
export function makeEffectTable(db: Pick<SqliteDatabase, "exec">): void {
  db.exec(`create table if not exists effect (id integer primary key autoincrement, ${TYPES})`);
}

/** The statement that writes an event's effect; the columns `own` come from the handler. */
export function effectStatement(
  place: Place | "sqlite",
  ctx: HandlerContext<unknown>,
  own: OwnEffect = {},
): EffectStatement {
  const { by = "", wrong = null, ...known } = own;
  const facts = { pid: process.pid, event: ctx.meta.eventId, at: Date.now(), by, wrong };
  return rowStatement(place, { ...effectOf(ctx, known), ...facts });
}

export function rowStatement(place: Place | "sqlite", row: HandledEffect & Partial<EffectRow>): EffectStatement {
  const { identity, lane, sequence, attempt, late, replay, marker = null } = row;
  const { pid = 0, event = 0, at = 0, by = "", wrong = null } = row;
  const values = [identity, lane, sequence, attempt, late, replay, marker, pid, event, at, by, wrong];
  if (place === "sqlite" || "path" in place) {
    const bindable = values.map((value) => (typeof value === "boolean" ? Number(value) : value));
    return { text: `insert into effect (${COLUMNS}) values (${values.map(() => "?")})`, values: bindable };
  }
  const places = values.map((_, index) => `$${index + 1}`);
  return { text: `insert into ${place.schema}_effect (${COLUMNS}) values (${places})`, values };
}

/** A connection or a pool of one of the stores. */
interface Connection {
  prepare?(text: string): { run(...values: unknown[]): unknown };
  query?(text: string, values: unknown[]): Promise<unknown>;
}

/** Runs statements on a connection, at once on SQLite. */
export function write(connection: unknown, statements: readonly EffectStatement[]): unknown {
  const { prepare, query } = connection as Connection;
  if (prepare === undefined) return writeEach(query?.bind(connection), statements);
  for (const { text, values } of statements) prepare.call(connection, text).run(...values);
  return undefined;
}

async function writeEach(query: Connection["query"], statements: readonly EffectStatement[]): Promise<void> {
  for (const { text, values } of statements) await query?.(text, [...values]);
}

/** Commits the one effect of an event, declared for every second event and as a function for the others. `also`: behind its row. */
export function commitEffect<Tx>(
  ctx: HandlerContext<Tx>,
  place: Place | "sqlite",
  own: OwnEffect = {},
  also: readonly EffectStatement[] = [],
): void {
  const statements = [effectStatement(place, ctx, own), ...also];
  if (ctx.meta.eventId % 2 === 0) ctx.commit(statements);
  else ctx.commit((tx) => write(tx, statements));
}

/** The store of a place, for a receiver or for a look into its inbox. */
export function storeAt(place: Place, options: SqliteStoreOptions & { readonly maxConnections?: number } = {}) {
  const { maxConnections, ...ofFile } = options;
  const store =
    "path" in place
      ? sqliteStore(place.path, { minFreeBytes: 0, onOpen: makeEffectTable, ...ofFile })
      : postgresStore(place.url, { schema: place.schema, ...(maxConnections !== undefined && { maxConnections }) });
  return store as unknown as InboxStore<never>;
}

/** What an inbox holds. */
export interface Contents {
  /** In the order in which they were committed. */
  readonly effects: readonly EffectRow[];
  /** In the order in which they were accepted. */
  readonly stored: readonly StoredEvent[];
  /** `ok`, by SQLite's own check of the file. */
  readonly integrity: string;
}

/** Reads the file at `path`, which nobody else has open: opening it after a crash mends it as a restart would. */
export function contentsOf(path: string): Contents {
  const db = new Database(path, { fileMustExist: true });
  try {
    const effects = has(db, "effect") ? (db.prepare(`${READ} effect order by id`).all() as EffectRow[]) : [];
    const integrity = String(db.pragma("integrity_check", { simple: true }));
    return { effects: effects.map(asWritten), stored: storedIn(db), integrity };
  } finally {
    db.close();
  }
}

/** Reads the file as a crash left it, from a copy in `folder`, so that the restart mends the file itself. */
export function contentsAsLeft(path: string, folder: string): Contents {
  // Its process was killed before it made the file.
  if (!existsSync(path)) return { effects: [], stored: [], integrity: "ok" };
  const copy = join(folder, "copy.db");
  // What SQLite shares between processes is made anew at open.
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${copy}${suffix}`, { force: true });
  for (const suffix of ["", "-wal"])
    if (existsSync(`${path}${suffix}`)) copyFileSync(`${path}${suffix}`, `${copy}${suffix}`);
  return contentsOf(copy);
}

/** SQLite has no booleans, and a row without a marker hides none. */
function asWritten({ late, replay, marker, ...row }: EffectRow): EffectRow {
  return { ...row, late: Boolean(late), replay: Boolean(replay), ...(typeof marker === "string" && { marker }) };
}

interface EventRow {
  readonly source: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly ord: number;
  readonly ownId: string | Buffer | null;
  readonly sequence: number;
  readonly eventType: string;
  readonly state: number;
  readonly outcome: number | null;
  readonly attempts: number;
}

function storedIn(db: SqliteDatabase): readonly StoredEvent[] {
  if (!has(db, "oncehook_event")) return [];
  const rows = db
    .prepare(
      `select l.source, l.tenant, l.name, l.ord, e.own_id as ownId, e.seq as sequence, e.type as eventType, e.state, e.outcome, e.attempts
       from oncehook_event e join oncehook_lane l on l.id = e.lane order by e.id`,
    )
    .all() as EventRow[];
  return rows.map(({ source, tenant, name, ord, ownId, state, outcome, ...rest }) =>
    storedEventOf({
      ...{ ...rest, ownId: idText(ownId), state: stateWord(state), outcome: outcomeWord(outcome) },
      lane: { source, tenant: tenantOf(tenant), name, order: orderWord(ord) },
    }),
  );
}

function has(db: SqliteDatabase, table: string): boolean {
  return db.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table) !== undefined;
}

/** A programme's own look into the inbox of a place, while processes work on it. In its SQL `{event}` is the inbox's table `event`. */
export class Look {
  readonly place: Place;
  readonly #pool: pg.Pool | null;
  #file: InstanceType<typeof Database> | null = null;

  constructor(place: Place) {
    this.place = place;
    const isOnServer = "url" in place;
    this.#pool = isOnServer ? new pg.Pool({ connectionString: place.url, max: 2, application_name: OWN_NAME }) : null;
    // The server may be restarted under it.
    this.#pool?.on("error", () => {});
  }

  /** Makes the table of effects on a server; on a file the processes make it. */
  async prepare(): Promise<void> {
    if ("url" in this.place)
      await this.rows(`create table {effect} (id bigint generated always as identity primary key, ${TYPES})`);
  }

  /** Only reads on a file. */
  async rows<Row extends pg.QueryResultRow>(sql: string, ...values: unknown[]): Promise<Row[]> {
    const { place } = this;
    if ("path" in place) {
      this.#file ??= new Database(place.path, { readonly: true, timeout: 5_000 });
      return this.#file.prepare(sql.replace(TABLE, fileTable)).all(...values) as Row[];
    }
    const tableOf = (_: string, table: string) => `${place.schema}${OWN_TABLES.includes(table) ? "_" : "."}${table}`;
    const text = sql.replace(TABLE, tableOf);
    return (await this.#pool?.query<Row>(text, values))?.rows ?? [];
  }

  /** The first column of the first row. */
  async number(sql: string, ...values: unknown[]): Promise<number> {
    const [row] = await this.rows(sql, ...values);
    return Number(Object.values(row ?? {})[0]);
  }

  /** As `number`, while the server may be down: 0 if it does not answer. */
  seen(sql: string): Promise<number> {
    return this.number(sql).catch(() => 0);
  }

  pending(): Promise<number> {
    return this.number("select count(*) from {event} where state = 0");
  }

  /** Resolves when no event is pending and at least `least` are stored; with false when that takes too long. */
  async settled(timeoutMs: number, least = 0): Promise<boolean> {
    const sql =
      "select (select count(*) from {event}) as stored, (select count(*) from {event} where state = 0) as pending";
    for (const deadline = performance.now() + timeoutMs; performance.now() < deadline; await sleep(50)) {
      const [row] = await this.rows<{ stored: string; pending: string }>(sql).catch(() => []);
      if (row !== undefined && Number(row.pending) === 0 && Number(row.stored) >= least) return true;
    }
    return false;
  }

  /** In the order in which they were committed. */
  async effects(): Promise<readonly EffectRow[]> {
    return (await this.rows<EffectRow & pg.QueryResultRow>(`${READ} {effect} order by id`)).map(asWritten);
  }

  async contents(): Promise<Contents> {
    if ("path" in this.place) return contentsOf(this.place.path);
    const store = postgresStore(this.place.url, { schema: this.place.schema, listen: false, maxConnections: 1 });
    const inbox = await openInbox({ store, logger: silentLogger });
    const stored: StoredEvent[] = [];
    for (let after: number | null | undefined; after !== null; ) {
      const page = await inbox.find({ order: "oldest", limit: PAGE, ...(after !== undefined && { after }) });
      stored.push(...page.items.map(storedEventOf));
      after = page.next;
    }
    await inbox.close();
    return { effects: await this.effects(), stored, integrity: "ok" };
  }

  /** The tables on a server; of a file only the connection ends. */
  async remove(): Promise<void> {
    this.#file?.close();
    if ("path" in this.place) return;
    await this.rows(`drop schema if exists ${this.place.schema} cascade`).catch(() => []);
    await this.rows("drop table if exists {effect}").catch(() => []);
    await this.#pool?.end();
  }
}

function fileTable(_: string, table: string): string {
  return OWN_TABLES.includes(table) ? table : `oncehook_${table}`;
}
