/** Opens the inbox's own connection with the settings that durability hangs on, and reads them back. */
import { StoreError } from "../../errors.ts";
import { connect, type SqliteDatabase, type SqliteDriver } from "../../internal/sqlite-driver.ts";
import { checkOwner, checkStillOwner } from "./location.ts";

/** The driver waits for a lock by blocking the event loop, so it waits hardly at all; we wait on the clock. */
const DRIVER_BUSY_TIMEOUT_MS = 5;

/** A backstop: the log is copied into the file while idle. At the default of 1,000 pages a copy falls into every few batches. */
const AUTOCHECKPOINT_PAGES = 16_000;

/** @throws SetupError `unsafe_location` */
export function openConnection(driver: SqliteDriver, file: string): SqliteDatabase {
  const checked = checkOwner(file);
  const db = connect(driver, file, { timeout: DRIVER_BUSY_TIMEOUT_MS, fileMustExist: true });
  try {
    // Only a file without tables takes this setting; an inbox added to an application's file keeps that file's.
    db.pragma("auto_vacuum = INCREMENTAL");
    db.pragma("journal_mode = WAL");
    // After journal_mode: going to WAL lowers it to NORMAL, where a power cut loses what was acknowledged.
    db.pragma("synchronous = FULL");
    if (process.platform === "darwin") {
      // There an fsync alone does not reach the disk: neither the log's, nor the file's when the log is copied into it.
      db.pragma("fullfsync = 1");
      db.pragma("checkpoint_fullfsync = 1");
    }
    db.pragma("temp_store = MEMORY");
    db.pragma(`wal_autocheckpoint = ${AUTOCHECKPOINT_PAGES}`);
    db.pragma("secure_delete = FAST");
    db.pragma("foreign_keys = OFF");
    checkStillOwner(file, checked);
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

/** Throws `not_durable` unless a commit on `db` survives a power cut. */
export function checkDurable(db: SqliteDatabase): void {
  const synchronous = db.pragma("synchronous", { simple: true });
  const journal = db.pragma("journal_mode", { simple: true });
  if ((synchronous === 2 || synchronous === 3) && journal === "wal") return;
  const message = `The inbox is not durable: synchronous reads ${synchronous} (must be 2) and journal_mode ${journal} (must be wal). Look for code that sets them.`;
  throw new StoreError("not_durable", message);
}
