/** What the inbox asks of a connection of the driver over `node:sqlite`, whoever stands behind it. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { SqliteDatabase, SqliteDriver } from "../../src/internal/sqlite-driver.ts";
import { isBusy } from "../../src/stores/sqlite/failures.ts";
import { newFolder } from "./sqlite-under-test.ts";

export function nodeSqliteConnections(Driver: SqliteDriver): void {
  const open: { readonly directory: string; readonly connections: SqliteDatabase[] }[] = [];
  afterEach(async () => {
    for (const { directory, connections } of open.splice(0)) {
      for (const connection of connections) connection.close();
      await rm(directory, { recursive: true });
    }
  });

  async function connections(count: number): Promise<SqliteDatabase[]> {
    const directory = await newFolder();
    const options = { timeout: 5, fileMustExist: false };
    const made = Array.from({ length: count }, () => new Driver(join(directory, "file.db"), options));
    made[0]?.exec("create table thing (id integer primary key, text text unique, bytes blob)");
    open.push({ directory, connections: made });
    return made;
  }

  test("gives blobs as Buffer and texts whole, NUL and all", async () => {
    const [db] = await connections(1);
    const texts = ["a\0b", "a", "a\uFDD0b", "a\uFDD0\uFDD2b", "\0\uFDD0\0", "😀"];
    for (const text of texts)
      db?.prepare("insert into thing (text, bytes) values (?, ?)").run(text, Buffer.from([0, 255]));
    const rows = db?.prepare("select text, bytes from thing order by id").all() as { text: string; bytes: Buffer }[];
    expect(rows.map(({ text }) => text)).toEqual(texts);
    expect(rows[0]?.bytes.equals(Buffer.from([0, 255]))).toBe(true);
    for (const [index, text] of texts.entries())
      expect(db?.prepare("select id from thing where text = ?").get(text)).toMatchObject({ id: index + 1 });
  });

  test("names errors as better-sqlite3 does", async () => {
    const [one, other] = await connections(2);
    one?.exec("begin immediate");
    let thrown: unknown;
    try {
      other?.exec("begin immediate");
    } catch (error) {
      thrown = error;
    }
    expect(isBusy(thrown)).toBe(true);
    one?.exec("rollback");
    const insert = one?.prepare("insert into thing (text) values (?)");
    insert?.run("x");
    expect(() => insert?.run("x")).toThrow(expect.objectContaining({ code: "SQLITE_CONSTRAINT" }));
    expect(() => new Driver("/no/such/file", { timeout: 5, fileMustExist: true })).toThrow(
      expect.objectContaining({ code: "SQLITE_CANTOPEN", message: "There is no file /no/such/file." }),
    );
  });

  test("knows whether it is open, and in a transaction", async () => {
    const [db] = await connections(1);
    expect(db?.inTransaction).toBe(false);
    db?.exec("begin");
    expect(db?.inTransaction).toBe(true);
    db?.exec("rollback");
    expect(db?.inTransaction).toBe(false);
    expect(db?.open).toBe(true);
    db?.close();
    db?.close();
    expect(db?.open).toBe(false);
  });

  test("gives BigInts where they are asked for", async () => {
    const [db] = await connections(1);
    const statement = db?.prepare("select 9007199254740993 as big, ? as null_value");
    statement?.safeIntegers();
    expect(statement?.get(undefined)).toEqual({ big: 9007199254740993n, null_value: null });
  });
}
