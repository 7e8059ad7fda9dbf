/** The state in a SQLite file: a row per record, one transaction per commit, one emulator at a time. */
import { chmodSync, closeSync, existsSync, openSync, readSync, realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { SetupError } from "../../errors.ts";
import { ownerProblem } from "../../internal/file-owner.ts";
import { connect, loadDriver, type SqliteDatabase, type SqliteDriver } from "../../internal/sqlite-driver.ts";
import type { StateChange } from "./state.ts";

/** A row: one record of one table, as JSON. */
export interface StoredRecord {
  readonly name: string;
  readonly id: string;
  readonly json: string;
}

export interface StateFile {
  /** All records; those of one table in the order in which they were first put. */
  read(): Iterable<StoredRecord>;
  /** All or nothing. */
  write(changes: Changes): void;
  close(): void;
}

/** "ohem": how a file says that it is the emulator's. */
const APPLICATION_ID = 0x6f68656d;
const SCHEMA = 1;
/** For the process that was just killed, and whose lock is about to go. */
const LOCK_TIMEOUT_MS = 1_000;

/** The bits of a mode that let others read, write or execute. */
const OTHERS = 0o077;

const CREATE = `
  CREATE TABLE records (
    position INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    id TEXT NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (name, id)
  ) STRICT;
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA};`;

/** @throws SetupError when the file cannot be opened, can be changed by others, is damaged, another program's or a newer version's, or in use */
export async function openStateFile(path: string): Promise<StateFile> {
  const Driver = await loadDriver();
  // SQLite keeps its log next to the file that a link leads to.
  const file = existsSync(path) ? realpathSync(path) : resolve(path);
  const db = openDatabase(Driver, file);
  try {
    prepare(db, file);
    return stateFile(db, file);
  } catch (error) {
    db.close();
    throw error instanceof SetupError ? error : unusable(file, error);
  }
}

function openDatabase(Driver: SqliteDriver, file: string): SqliteDatabase {
  try {
    // It holds secrets, so only its owner may read it; SQLite gives its companions the same mode.
    // One that is there is not opened: closing it would end the lock that this process may have on it (POSIX).
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
    refuseOthers(file);
    return connect(Driver, file, { timeout: LOCK_TIMEOUT_MS, fileMustExist: true });
  } catch (cause) {
    throw cause instanceof SetupError ? cause : unusable(file, cause);
  }
}

/** SQLite takes over what it finds in the log and the journal. */
function refuseOthers(file: string): void {
  for (const each of [file, `${file}-wal`, `${file}-journal`]) {
    const stat = statSync(each, { throwIfNoEntry: false });
    const problem = stat === undefined ? null : ownerProblem("The state file", each, stat);
    if (problem !== null) throw new SetupError("unsafe_location", problem, { fields: { option: "state" } });
  }
}

function prepare(db: SqliteDatabase, file: string): void {
  // Taken with the first read and kept until the process ends, however it ends.
  db.pragma("locking_mode = EXCLUSIVE");
  const tables = db.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { count: number };
  if (tables.count > 0) {
    refuseForeign(db, file);
    refuseDamaged(db, file);
  }
  closeToOthers(file);
  db.pragma("journal_mode = WAL");
  // A killed process loses nothing by it; a lost power supply may take the last moments, but never the file.
  db.pragma("synchronous = NORMAL");
  if (tables.count === 0) db.exec(`BEGIN IMMEDIATE; ${CREATE} COMMIT;`);
}

function refuseForeign(db: SqliteDatabase, file: string): void {
  if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) {
    throw refusal(`is another program's database: choose another file than ${file}`);
  }
  const schema = Number(db.pragma("user_version", { simple: true }));
  if (schema > SCHEMA) throw refusal(`was written by a newer version of oncehook: upgrade, or remove ${file}`);
}

/** What reading would not notice, such as a page that is in the wrong place, would come out as a wrong answer later. */
function refuseDamaged(db: SqliteDatabase, file: string): void {
  if (db.pragma("quick_check(1)", { simple: true }) !== "ok") throw damaged(file);
}

/** A file that was there before, and what a killed process left next to it, can have any mode. */
function closeToOthers(file: string): void {
  for (const each of [file, `${file}-wal`]) {
    const { mode } = statSync(each, { throwIfNoEntry: false }) ?? { mode: 0 };
    if ((mode & OTHERS) !== 0) chmodSync(each, 0o600);
  }
}

function unusable(file: string, cause: unknown): SetupError {
  const { code = "" } = cause as { code?: string };
  if (code.startsWith("SQLITE_BUSY")) {
    return refusal(`is in use by another emulator: close that one, or choose another file than ${file}`, cause);
  }
  if (DAMAGE.test(code) || (code === "SQLITE_NOTADB" && beginsAsDatabase(file))) return damaged(file, cause);
  if (code === "SQLITE_NOTADB") return refusal(`is not a SQLite database: choose another file than ${file}`, cause);
  return refusal(`cannot be opened: check that ${file} can be written and that its directory exists`, cause);
}

/** The last: a statement that does not fit what the file has as its tables. */
const DAMAGE = /^SQLITE_(?:CORRUPT|IOERR_SHORT_READ|ERROR$)/;
const MAGIC = Buffer.from("SQLite format 3\0");

/** Whether a file was a database at least once; a truncated one may have lost even a part of the word. */
function beginsAsDatabase(file: string): boolean {
  const head = Buffer.alloc(MAGIC.byteLength);
  const descriptor = openSync(file, "r");
  const length = readSync(descriptor, head);
  closeSync(descriptor);
  return length > 0 && MAGIC.subarray(0, length).equals(head.subarray(0, length));
}

function damaged(file: string, cause?: unknown): SetupError {
  return refusal(`is damaged: remove ${file}, or put a copy in its place`, cause);
}

function refusal(problem: string, cause?: unknown): SetupError {
  return new SetupError("invalid_option", `The file of the option "state" ${problem}.`, {
    cause,
    fields: { option: "state" },
  });
}

function stateFile(db: SqliteDatabase, file: string): StateFile {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  const select = db.prepare("SELECT name, id, json FROM records ORDER BY position");
  const insert = db.prepare("INSERT INTO records (name, id, json) VALUES (?, ?, ?)");
  const update = db.prepare("UPDATE records SET json = ? WHERE name = ? AND id = ?");
  const remove = db.prepare("DELETE FROM records WHERE name = ? AND id = ?");
  const writeAll = (changes: Changes) => {
    for (const [name, id, write] of changes) {
      if (write.kind === "remove" || write.kind === "move") remove.run(name, id);
      if (write.kind === "insert" || write.kind === "move") insert.run(name, id, JSON.stringify(write.record));
      if (write.kind === "update") update.run(JSON.stringify(write.record), name, id);
    }
  };
  return {
    read() {
      try {
        return select.all() as StoredRecord[];
      } catch (error) {
        throw unusable(file, error);
      }
    },
    write(changes) {
      begin.run();
      try {
        writeAll(changes);
        commit.run();
      } catch (error) {
        // A full disk may have rolled it back already.
        if (db.inTransaction) db.exec("ROLLBACK");
        throw error;
      }
    },
    close: () => db.close(),
  };
}

// What changed since the state was last written: per record its newest content, and whether the file has it.

/** `move`: removed and put again, so that its place is at the end. */
type Write = { readonly kind: "insert" | "update" | "move"; readonly record: unknown } | { readonly kind: "remove" };

export class Changes {
  readonly #tables = new Map<string, Map<string, Write>>();

  add({ table, id, record, previous }: StateChange): void {
    const writes = this.#tables.get(table) ?? new Map<string, Write>();
    this.#tables.set(table, writes);
    const earlier = writes.get(id);
    if (record === undefined) {
      // What the file never had needs no removal.
      if (earlier?.kind === "insert") writes.delete(id);
      else writes.set(id, { kind: "remove" });
    } else if (previous === undefined) {
      // At the end of the batch as well: the order of inserts is the order on load.
      writes.delete(id);
      writes.set(id, { kind: earlier === undefined ? "insert" : "move", record });
    } else {
      const kind = earlier === undefined || earlier.kind === "remove" ? "update" : earlier.kind;
      writes.set(id, { kind, record });
    }
  }

  get isEmpty(): boolean {
    for (const writes of this.#tables.values()) if (writes.size > 0) return false;
    return true;
  }

  *[Symbol.iterator](): Generator<readonly [table: string, id: string, write: Write]> {
    for (const [table, writes] of this.#tables) for (const [id, write] of writes) yield [table, id, write];
  }

  clear(): void {
    this.#tables.clear();
  }
}
