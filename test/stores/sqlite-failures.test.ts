/** What a caller of the store gets for an error of the driver. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { asStoreError } from "../../src/stores/sqlite/failures.ts";

describe("asStoreError()", () => {
  it.each([
    ["SQLITE_FULL", "store_full", "The disk is full: free some space."],
    ["SQLITE_BUSY_SNAPSHOT", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_LOCKED", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_IOERR_FSYNC", "store_unavailable", "cannot be used now (SQLITE_IOERR_FSYNC)."],
    ["SQLITE_NOTADB", "store_unavailable", "(SQLITE_NOTADB). It is no SQLite database: check the path."],
    ["SQLITE_CANTOPEN_FULLPATH", "store_unavailable", "that this user may read and write it."],
    ["SQLITE_READONLY_DIRECTORY", "store_unavailable", "the right to write to the file and its directory."],
    ["SQLITE_CORRUPT_INDEX", "store_unavailable", "The file is damaged: restore a backup."],
  ])("tells %s as %s", (sqliteCode, code, message) => {
    const cause = Object.assign(new Error("of the driver"), { code: sqliteCode });
    const told = asStoreError(cause, "sqlite:a.db");
    expect(told).toBeInstanceOf(StoreError);
    expect(told).toMatchObject({ code, cause, message: expect.stringContaining(message) });
  });

  it.each([new StoreError("store_full", "full"), new Error("an application's own"), "a text", null])(
    "leaves %s as it is",
    (error) => {
      expect(asStoreError(error, "sqlite:a.db")).toBe(error);
    },
  );
});
