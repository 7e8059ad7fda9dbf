/** What the history checker asks of an inbox on SQLite: the table that handlers write, and what a file tells at the end or after a kill. */
import { copyFileSync, existsSync, rmSync } from "node:fs";
import Database from "better-sqlite3";
import type { HandlerContext } from "../../src/index.ts";
import { outcomeWord, stateWord, tagWord } from "../../src/stores/database.ts";
import type { SqliteDatabase } from "../../src/stores/sqlite.ts";
import { effectOf, type HandledEffect, type StoredEvent, storedEventOf } from "./history.ts";

/** For `onOpen` of the store. */
export function makeEffectTable(db: SqliteDatabase): void {
  db.exec(`create table if not exists effect (id integer primary key autoincrement, identity text, message text,
    sequence integer, attempt integer, late integer, replay integer)`);
}

const INSERT = "insert into effect (identity, message, sequence, attempt, late, replay) values (?, ?, ?, ?, ?, ?)";

/** The values of an event's effect. `own` is as in `effectOf`. */
function valuesOf<Tx>(ctx: HandlerContext<Tx>, own: Partial<HandledEffect>): readonly unknown[] {
  const { identity, messageId, sequence, attempt, late, replay } = effectOf(ctx, own);
  return [identity, messageId, sequence, attempt, Number(late), Number(replay)];
}

/** Writes the one effect of an event. */
export function writeEffect<Tx>(db: SqliteDatabase, ctx: HandlerContext<Tx>, own: Partial<HandledEffect> = {}): void {
  db.prepare(INSERT).run(...valuesOf(ctx, own));
}

/** Commits the one effect of an event, declared for every second event and as a function for the others. */
export function commitEffect(ctx: HandlerContext<SqliteDatabase>, own: Partial<HandledEffect> = {}): void {
  if (ctx.meta.eventId % 2 === 0) ctx.commit({ text: INSERT, values: valuesOf(ctx, own) });
  else ctx.commit((db) => writeEffect(db, ctx, own));
}

/** What an inbox file holds. */
export interface Contents {
  readonly effects: readonly HandledEffect[];
  readonly stored: readonly StoredEvent[];
  /** `ok`, by SQLite's own check of the file. */
  readonly integrity: string;
}

interface EventRow {
  readonly client: string;
  readonly tag: number;
  readonly message: string;
  readonly sequence: number;
  readonly kind: string;
  readonly identity: string | null;
  readonly state: number;
  readonly outcome: number | null;
  readonly attempts: number;
}

interface EffectRow {
  readonly identity: string;
  readonly message: string;
  readonly sequence: number;
  readonly attempt: number;
  readonly late: number;
  readonly replay: number;
}

/** Reads the file at `path`, which nobody else has open: opening it after a crash mends it as a restart would. */
export function contentsOf(path: string): Contents {
  const db = new Database(path, { fileMustExist: true });
  try {
    return { effects: effectsIn(db), stored: storedIn(db), integrity: integrityOf(db) };
  } finally {
    db.close();
  }
}

/** Reads the file as a crash left it, from a copy at `copyPath`, so that the restart mends the file itself. */
export function contentsAsLeft(path: string, copyPath: string): Contents {
  // Its process was killed before it made the file.
  if (!existsSync(path)) return { effects: [], stored: [], integrity: "ok" };
  copyInbox(path, copyPath);
  return contentsOf(copyPath);
}

/** The file and its log; what SQLite shares between processes is made anew at open. */
function copyInbox(from: string, to: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${to}${suffix}`, { force: true });
  for (const suffix of ["", "-wal"])
    if (existsSync(`${from}${suffix}`)) copyFileSync(`${from}${suffix}`, `${to}${suffix}`);
}

function storedIn(db: SqliteDatabase): readonly StoredEvent[] {
  if (!has(db, "oncehook_event")) return [];
  const rows = db
    .prepare(
      `select e.*, c.name as client, l.tag, l.message, e.seq as sequence, k.name as kind
       from oncehook_event e join oncehook_lane l on l.id = e.lane join oncehook_client c on c.id = l.client
       join oncehook_kind k on k.id = e.kind order by e.id`,
    )
    .all() as EventRow[];
  return rows.map(({ client, tag, message, kind, identity, state, outcome, ...rest }) =>
    storedEventOf({
      ...{ ...rest, eventType: kind, identity, state: stateWord(state), outcome: outcomeWord(outcome) },
      lane: { apiClientId: client, tag: tagWord(tag), messageId: message },
    }),
  );
}

function effectsIn(db: SqliteDatabase): readonly HandledEffect[] {
  if (!has(db, "effect")) return [];
  const rows = db.prepare("select * from effect order by id").all() as EffectRow[];
  return rows.map(({ identity, message, sequence, attempt, late, replay }) => ({
    ...{ identity, messageId: message, sequence, attempt },
    ...{ late: late === 1, replay: replay === 1 },
  }));
}

function has(db: SqliteDatabase, table: string): boolean {
  return db.prepare("select 1 from sqlite_master where type = 'table' and name = ?").get(table) !== undefined;
}

function integrityOf(db: SqliteDatabase): string {
  return String(db.pragma("integrity_check", { simple: true }));
}
