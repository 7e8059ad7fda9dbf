/** SQLite as oncehook uses it: the few methods of better-sqlite3, declared structurally. */

/** A prepared statement. */
export interface SqliteStatement {
  run(...params: unknown[]): { readonly changes: number; readonly lastInsertRowid: number | bigint };
  get(...params: unknown[]): unknown;
  all(...params: unknown[]): unknown[];
  safeIntegers(toggle?: boolean): unknown;
}

/** An open connection; what an effect registered with `ctx.commit` writes with. Blobs are read as `Buffer`. */
export interface SqliteDatabase {
  readonly name: string;
  readonly open: boolean;
  readonly inTransaction: boolean;
  prepare(sql: string): SqliteStatement;
  exec(sql: string): unknown;
  pragma(source: string, options?: { simple?: boolean }): unknown;
  close(): unknown;
}

/**
 * A constructor of connections, as better-sqlite3 exports it.
 *
 * @typeParam Db - its connections, as its own types have them
 */
export type SqliteDriver<Db extends SqliteDatabase = SqliteDatabase> = new (
  path: string,
  options: { timeout: number; fileMustExist: boolean },
) => Db;
