/** The default logger, the guard around a user's, and the sample that keeps a flood small. */
import { describe, expect, it, onTestFinished, vi } from "vitest";
import {
  guardedLogger,
  type LogFields,
  type Logger,
  loggerOption,
  SampledLog,
  stderrLogger,
} from "../../src/internal/logger.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";

function recorded() {
  const lines: [string, LogFields, string][] = [];
  const at = (level: string) => (fields: LogFields, message: string) => void lines.push([level, fields, message]);
  const logger: Logger = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  return { lines, logger };
}

describe("SampledLog", () => {
  it("writes 10 lines a second of all levels together, and counts the rest", async () => {
    const { lines, logger } = recorded();
    const clock = createFakeClock();
    const log = new SampledLog(logger, clock);
    for (let index = 0; index < 25; index++) log[index % 2 === 0 ? "warn" : "error"]({ index }, "line");
    expect(lines).toHaveLength(10);
    expect(lines.slice(0, 2)).toEqual([
      ["warn", { index: 0 }, "line"],
      ["error", { index: 1 }, "line"],
    ]);
    await clock.advance(999);
    log.warn({}, "still the same second");
    expect(lines).toHaveLength(10);
    await clock.advance(1);
    log.warn({ index: 26 }, "next");
    log.warn({ index: 27 }, "next");
    expect(lines.slice(10)).toEqual([
      ["warn", { index: 26, leftOut: 16 }, "next"],
      ["warn", { index: 27 }, "next"],
    ]);
  });

  it("is not moved by a wall clock that jumps", async () => {
    const { lines, logger } = recorded();
    const clock = createFakeClock();
    const log = new SampledLog(logger, clock);
    for (let index = 0; index < 11; index++) {
      clock.set(clock.now() + 3_600_000);
      log.warn({}, "line");
    }
    expect(lines).toHaveLength(10);
  });
});

describe("stderrLogger", () => {
  it("writes warnings and errors as one JSON line each, and nothing of the other levels", () => {
    const written: string[] = [];
    const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      written.push(String(chunk));
      return true;
    });
    onTestFinished(() => write.mockRestore());
    stderrLogger.debug({}, "no");
    stderrLogger.info({}, "no");
    stderrLogger.warn({ code: "x" }, "a\nb");
    stderrLogger.child?.({ eventId: 7 }).child?.({ more: 1 }).error({ code: "y" }, "\u001b[31mred\u009b\u2028");
    stderrLogger.child?.({}).info({}, "no");
    stderrLogger.child?.({ eventId: 8 }).warn({}, "of a child");
    expect(written).toEqual([
      '{"level":"warn","name":"oncehook","message":"a\\nb","code":"x"}\n',
      '{"level":"error","name":"oncehook","message":"\\u001b[31mred\\u009b\\u2028","eventId":7,"more":1,"code":"y"}\n',
      '{"level":"warn","name":"oncehook","message":"of a child","eventId":8}\n',
    ]);
  });
});

describe("guardedLogger()", () => {
  const broken = () => {
    throw new Error("The disk is full.");
  };

  it("passes everything on, with the fields of a child", () => {
    const { lines, logger } = recorded();
    const guarded = guardedLogger(logger);
    guarded.debug({ a: 1 }, "one");
    const child = guarded.child?.({ id: 7 });
    child?.info({ b: 2 }, "two");
    child?.child?.({ deep: true }).warn({}, "three");
    child?.error({}, "four");
    child?.debug({}, "five");
    expect(lines).toEqual([
      ["debug", { a: 1 }, "one"],
      ["info", { id: 7, b: 2 }, "two"],
      ["warn", { id: 7, deep: true }, "three"],
      ["error", { id: 7 }, "four"],
      ["debug", { id: 7 }, "five"],
    ]);
  });

  it("uses the logger's own child, with its this", () => {
    const { lines, logger } = recorded();
    const own: Logger & { name: string } = {
      ...logger,
      name: "own",
      child(fields) {
        return guardedLogger({
          ...logger,
          warn: (more, text) => logger.warn({ ...fields, ...more, by: this.name }, text),
        });
      },
    };
    guardedLogger(own).child?.({ id: 1 }).warn({}, "text");
    expect(lines).toEqual([["warn", { id: 1, by: "own" }, "text"]]);
  });

  it("drops what the logger throws, and what its child throws", () => {
    const guarded = guardedLogger({ debug: broken, info: broken, warn: broken, error: broken, child: broken });
    for (const level of ["debug", "info", "warn", "error"] as const) {
      expect(() => guarded[level]({}, "text")).not.toThrow();
      expect(() => guarded.child?.({})[level]({}, "text")).not.toThrow();
    }
  });

  it("drops what an asynchronous logger fails with", async () => {
    const others = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection");
    onTestFinished(() => {
      process.removeAllListeners("unhandledRejection");
      for (const other of others) process.on("unhandledRejection", other);
    });
    const unhandled: unknown[] = [];
    process.on("unhandledRejection", (reason) => unhandled.push(reason));
    const later = async () => broken();
    const guarded = guardedLogger({ debug: later, info: later, warn: later, error: later });
    for (const level of ["debug", "info", "warn", "error"] as const) {
      guarded[level]({}, "text");
      guarded.child?.({ id: 1 })[level]({}, "text");
    }
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
  });
});

describe("loggerOption()", () => {
  it("guards the logger that it is given, and the one of standard error by default", () => {
    const { lines, logger } = recorded();
    loggerOption(logger).warn({ a: 1 }, "text");
    expect(lines).toEqual([["warn", { a: 1 }, "text"]]);
    expect(() => loggerOption({ ...logger, warn: () => fail() }).warn({}, "text")).not.toThrow();
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    onTestFinished(() => write.mockRestore());
    loggerOption(undefined).warn({}, "text");
    expect(write).toHaveBeenCalledTimes(1);
  });

  it.each([
    ...(["debug", "info", "warn", "error"] as const).map((level) => ({ ...recorded().logger, [level]: undefined })),
    null,
  ])("refuses %o", (wrong) => {
    const message = `Option "logger" must have debug, info, warn and error methods; it is ${wrong === null ? "null" : "object"}.`;
    const refused = expect.objectContaining({ code: "invalid_option", message });
    expect(() => loggerOption(wrong as unknown as Logger)).toThrow(refused);
  });
});

function fail(): never {
  throw new Error("The disk is full.");
}
