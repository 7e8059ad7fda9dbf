/** When oncehook takes a run for one of development, and how its log reads then. */
import { stripVTControlCharacters } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import { readableLine, stderrLogger } from "../../src/internal/logger.ts";
import { isDevelopment } from "../../src/internal/process.ts";

function stubRun({ NODE_ENV, isTTY, test }: { NODE_ENV?: string; isTTY: boolean; test?: string }): void {
  vi.stubEnv("NODE_ENV", NODE_ENV);
  vi.stubEnv("NODE_TEST_CONTEXT", test);
  vi.stubEnv("NO_COLOR", undefined);
  Object.defineProperty(process.stderr, "isTTY", { value: isTTY, configurable: true });
}

const { isTTY } = process.stderr;

afterEach(() => {
  vi.unstubAllEnvs();
  Object.defineProperty(process.stderr, "isTTY", { value: isTTY, configurable: true });
});

describe("isDevelopment()", () => {
  it.each([
    [{ NODE_ENV: "development", isTTY: false }, true],
    [{ NODE_ENV: "development", isTTY: true }, true],
    [{ isTTY: true }, true],
    [{ NODE_ENV: "", isTTY: true }, true],
    [{ isTTY: false }, false],
    [{ NODE_ENV: "production", isTTY: true }, false],
    [{ NODE_ENV: "test", isTTY: true }, false],
    [{ isTTY: true, test: "child-v8" }, false],
  ])("of %j is %j", (run, expected) => {
    stubRun(run);
    expect(isDevelopment()).toBe(expected);
  });
});

describe("readableLine()", () => {
  const fields = { eventId: 17, eventType: "message.delivery", lane: "msg_1", sequence: 3 };

  it("is one line with the event, what happened, and the rest", () => {
    stubRun({ isTTY: false });
    expect(readableLine("info", fields, "Event handled in 4 ms.")).toMatch(
      /^\d\d:\d\d:\d\d oncehook message\.delivery msg_1 #3 Event handled in 4 ms\. event=17\n$/,
    );
    const unnamed = { eventType: "message.inbound", sequence: 0, missing: { from: 1, to: 2 } };
    expect(readableLine("warn", unnamed, "Odd.").slice(9)).toBe(
      'oncehook WARN message.inbound Odd. missing={"from":1,"to":2}\n',
    );
    const inbound = { eventType: "message.inbound", id: "in_1", sequence: 0 };
    expect(readableLine("info", inbound, "Event accepted.").slice(9)).toBe(
      "oncehook message.inbound in_1 Event accepted.\n",
    );
    const other = { eventType: "invoice.paid", source: "billing", lane: "sub_1", id: "evt_1", sequence: 1_700 };
    expect(readableLine("info", other, "Event accepted.").slice(9)).toBe(
      "oncehook invoice.paid sub_1 #1700 evt_1 Event accepted. source=billing\n",
    );
  });

  it("has an error, its causes and frames below", () => {
    stubRun({ isTTY: false });
    const failed = {
      ...{ ...fields, attempt: 1, code: "TypeError", error: "TypeError: no", causes: ["Error: why"] },
      ...{ at: ["orderOf (src/orders.ts:12)", "src/receiver.ts:31"], more: "onError" },
    };
    expect(readableLine("warn", failed, "A handler failed.").split("\n").slice(1)).toEqual([
      "  TypeError: no",
      "  caused by Error: why",
      "    at orderOf (src/orders.ts:12)",
      "    at src/receiver.ts:31",
      "  more: onError",
      "",
    ]);
  });

  it("has colours on a terminal only, and says the same", () => {
    stubRun({ isTTY: true });
    const coloured = readableLine("error", fields, "It broke.");
    expect(coloured).toContain("\u001b[31mERROR\u001b[39m");
    vi.stubEnv("NO_COLOR", "1");
    expect(readableLine("error", fields, "It broke.")).toBe(stripVTControlCharacters(coloured));
  });

  it("leaves nothing to a text that moves the cursor or turns the line", () => {
    stubRun({ isTTY: false });
    const line = readableLine("warn", { eventType: "a\u001b[2Jb\nc", name: "\u202ed", at: ["e\rf"] }, "g\u2028h");
    expect(line.slice(9)).toBe("oncehook WARN a\\u{1b}[2Jb\\u{a}c g\\u{2028}h name=\\u{202e}d\n    at e\\u{d}f\n");
  });

  it("is what the default logger writes in development, with the same fields", () => {
    stubRun({ NODE_ENV: "development", isTTY: false });
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => written.push(String(chunk)) > 0);
    stderrLogger.info({}, "no");
    stderrLogger.child?.({ eventId: 17 }).warn({ code: "x" }, "Odd.");
    write.mockRestore();
    expect(written.map((line) => line.slice(9))).toEqual(["oncehook WARN Odd. code=x event=17\n"]);
  });
});
