/** Telling processes apart, also a later one with the same pid. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { hostname, uptime } from "node:os";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { processRuns, processStartedAt, thisInstance } from "../../src/internal/process.ts";

describe("thisInstance()", () => {
  it("names this process on this host, with an id of its own each time", () => {
    const [first, second] = [thisInstance(), thisInstance()];
    expect(first.id).not.toBe(second.id);
    expect({ ...first, id: "" }).toEqual({ ...second, id: "" });
    expect(first.pid).toBe(process.pid);
    expect(first.host).not.toBe("");
  });

  it.runIf(process.platform === "linux")(
    "names the boot and the namespace, in which alone a pid means anything",
    () => {
      const [boot, namespace] = [
        ["cat", "/proc/sys/kernel/random/boot_id"],
        ["readlink", "/proc/self/ns/pid"],
      ].map(([tool = "", ...flags]) => execFileSync(tool, flags, { encoding: "utf8" }).trim());
      expect(thisInstance().host).toBe(`${hostname()}/${boot}/${namespace}`);
    },
  );
});

describe.runIf(process.platform === "linux")("processStartedAt()", () => {
  it.each(["node", "a) program (of 3 words)"])("tells the clock ticks since boot of a %s", async (title) => {
    const code = `process.title = ${JSON.stringify(title)}; console.log(); setInterval(() => {}, 1000)`;
    const child = spawn(process.execPath, ["-e", code]);
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const ticksPerSecond = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
    const age = uptime() - Number(processStartedAt(child.pid ?? 0)) / ticksPerSecond;
    expect(age).toBeGreaterThan(-1);
    expect(age).toBeLessThan(60);
  });
});

describe("processRuns()", () => {
  const { pid, pidStartedAt } = thisInstance();

  it("knows this process, and not one of its pid that started at another time", () => {
    expect(processRuns(pid, pidStartedAt)).toBe(true);
    expect(processRuns(pid, "")).toBe(true);
    if (pidStartedAt !== "") expect(processRuns(pid, `${pidStartedAt}1`)).toBe(false);
  });

  it("takes a process that it may send no signal for running", () => {
    const refused = Object.assign(new Error("kill EPERM"), { code: "EPERM" });
    const kill = vi.spyOn(process, "kill").mockImplementation(() => {
      throw refused;
    });
    onTestFinished(() => kill.mockRestore());
    expect(processRuns(pid, pidStartedAt)).toBe(true);
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
