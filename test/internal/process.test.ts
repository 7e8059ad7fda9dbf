/** Telling processes apart, also a later one with the same pid. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { processRuns, processStartedAt, thisInstance } from "../../src/internal/process.ts";

describe("thisInstance()", () => {
  it("names this process on this host, with an id of its own each time", () => {
    const [first, second] = [thisInstance(), thisInstance()];
    expect(first.id).not.toBe(second.id);
    expect({ ...first, id: "" }).toEqual({ ...second, id: "" });
    expect(first.pid).toBe(process.pid);
    expect(first.host).not.toBe("");
  });
});

describe("processRuns()", () => {
  const { pid, pidStartedAt } = thisInstance();

  it("knows this process, and not one of its pid that started at another time", () => {
    expect(processRuns(pid, pidStartedAt)).toBe(true);
    expect(processRuns(pid, "")).toBe(true);
    if (pidStartedAt !== "") expect(processRuns(pid, `${pidStartedAt}1`)).toBe(false);
  });

  it("knows a child while it runs, and no longer when it is gone", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    const childPid = child.pid ?? 0;
    const startedAt = processStartedAt(childPid);
    expect(processRuns(childPid, startedAt)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(processRuns(childPid, startedAt)).toBe(false);
    expect(processStartedAt(childPid)).toBe("");
  });
});
