/** What is told of errors that may quote secrets. */
import { describe, expect, it } from "vitest";
import { foreignLabels } from "../../src/internal/foreign-error.ts";

describe("foreignLabels()", () => {
  it.each<[unknown, string]>([
    [new TypeError("no"), " (TypeError)"],
    [Object.assign(new Error("no"), { code: "ECONNRESET" }), " (Error, ECONNRESET)"],
    [Object.assign(new Error("no"), { name: "AccessDenied", code: "AccessDenied" }), " (AccessDenied)"],
    [{ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" }, " (UNABLE_TO_VERIFY_LEAF_SIGNATURE)"],
    [{ code: "ERR_HTTP2_ERROR" }, " (ERR_HTTP2_ERROR)"],
    [{ code: 7 }, ""],
    [{ name: "a-webhook-signing-secret-of-32-b" }, ""],
    [{ code: "DEADBEEF01234567" }, ""],
    [{ code: "deadbeefdeadbeefdeadbeefdeadbeef" }, ""],
    [{ name: "A".repeat(40) }, ` (${"A".repeat(40)})`],
    [{ name: "A".repeat(41) }, ""],
    ["a-webhook-signing-secret-of-32-b", ""],
    [null, ""],
    [undefined, ""],
  ])("of %j are %j", (thrown, labels) => {
    expect(foreignLabels(thrown)).toBe(labels);
  });

  it("are none of what throws when it is looked at", () => {
    const thrown = {
      get name() {
        throw new Error("no");
      },
    };
    expect(foreignLabels(thrown)).toBe("");
  });
});
