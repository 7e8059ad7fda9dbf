/** The command beside the emulator, in this process: how its end is reported, and how long what it left may take. */
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/internal/clock.ts";
import { startCompanion } from "../../../src/tools/cli/emulator.ts";
import { codeOf } from "../../../src/tools/cli/exit.ts";

describe("startCompanion()", () => {
  it.each([
    ["exit 7", 7],
    ["true", 0],
    ["command test $GIVEN = here", 0],
    ["type true >&2 2>&-", 0],
    ["read line </dev/null", 1],
    ["unset GIVEN", 0],
    [":", 0],
    ["wait", 0],
    [". /dev/null", 0],
    ["! true", 1],
    ["(exit 5)", 5],
    ["false >/dev/null", 1],
    ["/bin/sh -c 'kill -TERM $$'", 143],
    ['"/bin/sh" -c "exit 3"', 3],
    ["test $GIVEN = here", 0],
    ["kill -TERM $$", 143],
    ["no-such-command-anywhere 2>&-", 127],
  ])("runs %s to its end: %i", async (command, code) => {
    expect(await startCompanion(command, { GIVEN: "here" }).ended).toBe(code);
  });

  it("passes a signal on, and knows none to pass once it has ended", async () => {
    const companion = startCompanion("sleep 300", {});
    companion.signal("SIGINT");
    expect(await companion.ended).toBe(codeOf("SIGINT"));
    expect(() => companion.signal("SIGINT")).not.toThrow();
  });

  it("gives what is left over five seconds", async () => {
    let asked = 0;
    // A second passes with each look at the clock.
    const clock = { ...systemClock, monotonic: () => 1_000 * asked++ };
    expect(await startCompanion(`trap "" TERM; sleep 300 & exit 4`, {}, clock).ended).toBe(4);
    expect(asked).toBe(6);
  });
});
