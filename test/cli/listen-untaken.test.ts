/** The end of `oncehook listen` when what it printed is not taken. */
import { expect, it, onTestFinished, vi } from "vitest";
import { leaveUntaken } from "../../src/cli/exit.ts";
import { createFakeClock } from "../../src/testing/index.ts";

/** How often the process was ended, with the exit code that it had, in a second and in the moment before, with so many bytes left. */
async function endings(bytes: { readonly stdout?: number; readonly stderr?: number }): Promise<number[]> {
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  const left = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "writableLength", "get").mockReturnValue(bytes[name] ?? 0),
  );
  onTestFinished(() => {
    for (const spy of [exit, ...left]) spy.mockRestore();
  });
  const clock = createFakeClock();
  leaveUntaken(clock);
  const counts: number[] = [];
  for (const ms of [999, 1]) {
    await clock.advance(ms);
    counts.push(exit.mock.calls.filter(([code]) => code === undefined).length);
  }
  return counts;
}

it.each([
  ["stops waiting for standard output after a second", { stdout: 1 }, [0, 1]],
  ["stops waiting for standard error after a second", { stderr: 1 }, [0, 1]],
  ["leaves a process alone whose output was taken", {}, [0, 0]],
])("%s", async (_, bytes, counts) => {
  expect(await endings(bytes)).toEqual(counts);
});
