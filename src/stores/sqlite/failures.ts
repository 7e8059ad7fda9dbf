/** Tells the driver's errors apart: busy, full, one bad row, or an inbox that cannot be used. */
import { OncehookError, StoreError } from "../../errors.ts";
import type { LeaseRef } from "../../inbox/store.ts";

/** An effect ended the whole transaction: the turn is run again without it. */
export class EffectAborted extends Error {
  readonly lease: LeaseRef;

  constructor(lease: LeaseRef, cause: unknown) {
    super("An effect ended the transaction.", { cause });
    this.lease = lease;
  }
}

/** SQLite's result code of a driver's error, such as `SQLITE_BUSY_SNAPSHOT`; empty for other errors. */
function sqliteCode(error: unknown): string {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" && code.startsWith("SQLITE_") ? code : "";
}

/** Another connection holds the lock: worth another try. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error));
}

/** Whether an effect met a lock, also where an ORM wrapped the driver's error or Node's own SQLite threw it. */
export function metLock(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (/^SQLITE_BUSY/.test(sqliteCode(cause)) || ("errcode" in cause && Number(cause.errcode) % 256 === NODE_BUSY))
      return true;
  }
  return false;
}

export function isFull(error: unknown): boolean {
  return /^SQLITE_FULL/.test(sqliteCode(error)) || (error instanceof StoreError && error.code === "store_full");
}

/** The row's own values cannot be stored; its neighbours' can. */
export function isRowFault(error: unknown): boolean {
  return (
    /^SQLITE_(TOOBIG|CONSTRAINT|MISMATCH|RANGE)/.test(sqliteCode(error)) ||
    error instanceof TypeError ||
    error instanceof RangeError
  );
}

const NODE_BUSY = 5;

/** By SQLite's result codes, extended ones included: `SQLITE_READONLY` is also for `SQLITE_READONLY_DIRECTORY`. */
const ADVICE: Readonly<Record<string, string>> = {
  SQLITE_NOTADB: " It is not a SQLite database: check the path.",
  SQLITE_CANTOPEN: " Check that it is a file, and that this user may read and write it.",
  SQLITE_READONLY: " Opening it writes to it: this user needs the right to write to the file and its directory.",
  SQLITE_CORRUPT: " The file is damaged: restore a backup.",
};

/** What a caller of the store gets to see. */
export function asStoreError(error: unknown, location: string): unknown {
  const code = sqliteCode(error);
  if (code === "" || error instanceof OncehookError) return error;
  if (isFull(error)) return storeFull("The disk is full: free some space.", error);
  if (isBusy(error)) return busyTooLong(location, error);
  const primary = code.split("_", 2).join("_");
  const message = `The inbox ${location} cannot be used now (${code}).${ADVICE[primary] ?? ""}`;
  return new StoreError("store_unavailable", message, { cause: error, fields: { sqliteCode: code } });
}

export function busyTooLong(location: string, cause: unknown): StoreError {
  const message = `Another connection kept the inbox ${location} locked for too long: look for a long write transaction.`;
  return new StoreError("store_unavailable", message, { cause, fields: { sqliteCode: sqliteCode(cause) } });
}

export function storeFull(what: string, cause?: unknown): StoreError {
  const message = `${what} Events are refused until then, and the service repeats them.`;
  return new StoreError("store_full", message, cause === undefined ? {} : { cause });
}
