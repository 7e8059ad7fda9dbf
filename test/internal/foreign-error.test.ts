/** What is told of errors that may quote secrets. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { StoreError } from "../../src/errors.ts";
import { applicationFrames, errorPlaceOf, foreignLabels } from "../../src/internal/foreign-error.ts";

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

/** An error with this stack. */
function withStack(...lines: string[]): Error {
  return Object.assign(new Error("no"), { stack: ["Error: no", ...lines.map((line) => `    at ${line}`)].join("\n") });
}

describe("applicationFrames()", () => {
  it("says where an error was thrown, relative to the working directory", () => {
    function charge() {
      return new Error("no");
    }
    expect(applicationFrames(charge())[0]).toMatch(/^charge \(test\/internal\/foreign-error\.test\.ts:\d+\)$/);
  });

  it.each([
    ["a function", `charge (${join(process.cwd(), "app/billing.ts")}:12:5)`, "charge (app/billing.ts:12)"],
    ["an awaited one", `async Billing.charge (file://${process.cwd()}/a%20b.mjs:1:2)`, "Billing.charge (a b.mjs:1)"],
    ["a constructor", "new Order (/elsewhere/order.js:3:1)", "new Order (/elsewhere/order.js:3)"],
    ["code outside of a function", "/elsewhere/main.js:9:1", "/elsewhere/main.js:9"],
    ["awaiting code there", "async file:///elsewhere/main.js:9:1", "/elsewhere/main.js:9"],
    [
      "a bundler's path",
      "POST (webpack-internal:///(rsc)/./app/route.ts:7:3)",
      "POST (webpack-internal:///(rsc)/./app/route.ts:7)",
    ],
    ["another of them", "POST (webpack-internal:///./app/route.ts:7:3)", "POST (webpack-internal:///./app/route.ts:7)"],
    ["a file of Windows", "charge (C:\\app\\billing.js:12:5)", "charge (C:\\app\\billing.js:12)"],
    ["a name that is none", "a +1 555 010 0002! (/elsewhere/a.js:1:1)", "/elsewhere/a.js:1"],
    ["Node.js", "process.processTicksAndRejections (node:internal/process/task_queues:95:5)", null],
    ["a package", "Client.query (/app/node_modules/pg/lib/client.js:526:17)", null],
    ["a package of Windows", "Client.query (C:\\app\\node_modules\\pg\\client.js:526:17)", null],
    ["code without a file", "eval (eval at run (/app/a.js:1:1), <anonymous>:1:1)", null],
    ["oncehook", `callHandlers (${join(process.cwd(), "src/inbox/runner.ts")}:142:5)`, null],
  ])("of %s are these", (_what, line, frame) => {
    expect(applicationFrames(withStack(line))).toEqual(frame === null ? [] : [frame]);
  });

  it("are five at most, the innermost first", () => {
    const lines = Array.from({ length: 8 }, (_, index) => `f${index} (/elsewhere/a.js:${index}:1)`);
    expect(applicationFrames(withStack(...lines))).toEqual(
      [0, 1, 2, 3, 4].map((index) => `f${index} (/elsewhere/a.js:${index})`),
    );
  });

  it("are none of the message's own lines", () => {
    const message = "first\n    at meet me (/at/dawn:1:1)";
    expect(applicationFrames(new Error(message)).join()).not.toContain("dawn");
    const changed = Object.assign(new Error("changed"), { stack: new Error(message).stack });
    const isQuoted = (line: string) => message.includes(line);
    expect(applicationFrames(changed, isQuoted).join()).not.toContain("dawn");
    expect(applicationFrames(changed).join()).toContain("dawn");
  });

  it.each([null, "text", {}, { stack: 7 }])("are none of %j", (thrown) => {
    expect(applicationFrames(thrown)).toEqual([]);
  });
});

describe("errorPlaceOf()", () => {
  it("is an error's name and frames, without its message", () => {
    expect(errorPlaceOf(Object.assign(withStack("f (/elsewhere/a.js:1:1)"), { name: "TypeError" }))).toEqual({
      error: "TypeError",
      at: ["f (/elsewhere/a.js:1)"],
    });
  });

  it.each([["text"], [new StoreError("closed", "It was stopped.")]])("is nothing of %s", (thrown) => {
    expect(errorPlaceOf(thrown)).toEqual({});
  });
});
