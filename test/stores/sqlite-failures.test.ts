/** What a caller of the store gets for an error of the driver. */
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { asStoreError } from "../../src/stores/sqlite/failures.ts";

describe("asStoreError()", () => {
  it.each([
    ["SQLITE_FULL", "store_full", "The disk is full: free some space."],
    ["SQLITE_BUSY_SNAPSHOT", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_LOCKED", "store_unavailable", "kept the inbox sqlite:a.db locked for too long"],
    ["SQLITE_IOERR_FSYNC", "store_unavailable", "cannot be used now (SQLITE_IOERR_FSYNC)"],
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
