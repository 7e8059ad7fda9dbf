/** The program `oncehook` itself: what it says about itself, and how it refuses. */
import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { COMMAND, runToEnd, VERSION } from "./running.ts";

describe("oncehook", () => {
  it("prints the package's version", async () => {
    expect(await runToEnd(["--version"])).toMatchObject({ code: 0, output: `${VERSION}\n`, errors: "" });
  });

  it.each([[["--help"]], [["help"]], [["emulator", "--help"]], [["help", "emulator"]]])(
    "explains itself with %j",
    { tags: "full" },
    async (args) => {
      const { code, output, errors } = await runToEnd(args);
      expect([code, errors]).toEqual([0, ""]);
      expect(output).toMatch(/^Usage: oncehook/);
    },
  );

  it("names the variables that secrets can come from", { tags: "full" }, async () => {
    const { output } = await runToEnd(["emulator", "--help"]);
    for (const name of ["ONCEHOOK_CLIENT_SECRET", "ONCEHOOK_WEBHOOK_SECRET", "ONCEHOOK_CONTROL_TOKEN"])
      expect(output).toContain(name);
  });

  it.each([
    [[], /^Usage: oncehook/],
    [["emulatr"], /^error: unknown command 'emulatr'\n\(Did you mean emulator\?\)\n$/],
    [["emulator", "--prot", "1"], /^error: unknown option '--prot'\n\(Did you mean --port\?\)\n$/],
    [["emulator", "--port"], /^error: option '--port <number>' argument missing\n$/],
    [["emulator", "now"], /^error: too many arguments/],
  ])("calls %j a usage mistake and ends with 2", { tags: "full" }, async (args, message) => {
    const { code, output, errors } = await runToEnd(args);
    expect([code, output]).toEqual([2, ""]);
    expect(errors).toMatch(message);
  });

  it("can be started by its name alone where its package is installed", () => {
    expect(execFileSync("head", ["-n", "1", COMMAND], { encoding: "utf8" })).toBe("#!/usr/bin/env node\n");
  });
});
