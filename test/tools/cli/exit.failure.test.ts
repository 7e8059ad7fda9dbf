/** What a command says at its end, and with which code, for each kind of error. */
import { CommanderError } from "commander";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { OncehookError, SetupError } from "../../../src/errors.ts";
import { CommandError, endingOf, FAILURE, leaveUntaken, USAGE_MISTAKE } from "../../../src/tools/cli/exit.ts";
import { createFakeClock } from "../../../src/tools/testing/index.ts";

describe("endingOf()", () => {
  it.each([
    ["help or version", new CommanderError(0, "commander.version", "0.1.0"), 0, ""],
    ["a mistake that commander printed", new CommanderError(1, "commander.unknownOption", "error: …"), 2, ""],
    ["a mistake in an option", new SetupError("invalid_option", "Write it so."), 2, "error: Write it so.\n"],
    ["an end of the command's own", new CommandError("It is in use.", FAILURE), 1, "error: It is in use.\n"],
    ["a usage mistake of its own", new CommandError("Not so.", USAGE_MISTAKE), 2, "error: Not so.\n"],
    ["an end that nobody reads of", new CommandError("", 141), 141, ""],
    ["a failure with a message", new OncehookError("closed", "It is closed."), 1, "error: It is closed.\n"],
  ])("ends for %s", (_, error, exitCode, text) => {
    expect(endingOf(error)).toEqual({ text, exitCode });
  });

  it("says in one line what nobody expected, and where it comes from with --debug", () => {
    const error = new TypeError("x is not a function");
    const line = "error: TypeError: x is not a function (unexpected; --debug shows where)\n";
    expect(endingOf(error)).toEqual({ text: line, exitCode: 1 });
    expect(endingOf("a text").text).toBe("error: a text (unexpected; --debug shows where)\n");
    const { text, exitCode } = endingOf(error, { debug: true });
    expect(exitCode).toBe(1);
    expect(text).toContain(line);
    expect(text).toMatch(/\n +at .*failure\.test\.ts/);
  });

  it("shows the cause of a known error with --debug only", () => {
    const error = new CommandError("It is in use.", FAILURE, { cause: new Error("EADDRINUSE") });
    expect(endingOf(error).text).not.toContain("EADDRINUSE");
    expect(endingOf(error, { debug: true }).text).toContain("EADDRINUSE");
  });
});

describe("leaveUntaken()", () => {
  it.each([
    ["stops waiting for standard output after a second", { stdout: 1 }, [0, 1]],
    ["stops waiting for standard error after a second", { stderr: 1 }, [0, 1]],
    ["leaves a process alone whose output was taken", {}, [0, 0]],
  ])("%s", async (_, bytes: { stdout?: number; stderr?: number }, endings) => {
    const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
    const left = (["stdout", "stderr"] as const).map((name) =>
      vi.spyOn(process[name], "writableLength", "get").mockReturnValue(bytes[name] ?? 0),
    );
    onTestFinished(() => {
      for (const spy of [exit, ...left]) spy.mockRestore();
    });
    const clock = createFakeClock();
    leaveUntaken(clock);
    for (const [index, ms] of [999, 1].entries()) {
      await clock.advance(ms);
      // With the exit code that it had.
      expect(exit.mock.calls.filter(([code]) => code === undefined).length).toBe(endings[index]);
    }
  });
});
