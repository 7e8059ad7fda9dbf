/** The files of docs/deploy: what can be held against this package, and systemd's own judgement where it is installed. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { isWithin, versionOf } from "../../src/tools/cli/doctor/runtime.ts";
import { listenCommand } from "../../src/tools/cli/listen.ts";

const read = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../docs/deploy/${name}`, import.meta.url)), "utf8");
const manifest: { engines: { node: string }; peerDependencies: Record<string, string> } = JSON.parse(
  readFileSync(fileURLToPath(new URL("../../package.json", import.meta.url)), "utf8"),
);

/** Systemd's own; not everywhere. */
const ANALYSER = "systemd-analyze";

/** Instructions with their continued lines, without comments. */
function instructions(dockerfile: string): [name: string, rest: string][] {
  const lines = dockerfile
    .replace(/^#.*\n/gm, "")
    .replaceAll("\\\n", " ")
    .split("\n");
  return lines.filter(Boolean).map((line) => [line.split(" ", 1)[0] ?? "", line.replace(/^\S+\s+/, "")]);
}

const flagsIn = (line: string) => [...line.matchAll(/ --([\w-]+)/g)].map(([flag]) => flag.trim());
const known = listenCommand().options.map(({ long }) => long);

describe("docs/deploy/oncehook.service", () => {
  const unit = read("oncehook.service");
  const [, command = ""] = /^ExecStart=(.*)$/m.exec(unit) ?? [];

  it("gives the command flags that it has, and secrets by files only", () => {
    const flags = flagsIn(command);
    expect(flags.length).toBeGreaterThan(4);
    for (const flag of flags) expect(known).toContain(flag);
    const credentials = [...unit.matchAll(/^LoadCredential=([\w.]+):/gm)].map(([, name]) => name);
    expect([...command.matchAll(/secret-file %d\/([\w.]+)/g)].map(([, name]) => name)).toEqual(credentials);
    expect(unit).not.toMatch(/^Environment=.*SECRET/m);
  });

  it.skipIf(spawnSync(ANALYSER, ["--version"]).status !== 0)("is approved of by systemd-analyze", () => {
    const folder = mkdtempSync(join(tmpdir(), "oncehook-unit-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const verify = (text: string) => {
      const file = join(folder, "oncehook.service");
      writeFileSync(file, text);
      const { status, stderr } = spawnSync(ANALYSER, ["verify", file], { encoding: "utf8" });
      return { status, stderr };
    };
    // The command lies there only where it was installed.
    const installed = unit.replaceAll("/opt/oncehook/bin/oncehook", "/bin/true");
    expect(verify(installed)).toEqual({ status: 0, stderr: "" });
    expect(verify(installed.replace("ProtectSystem=", "ProtectSytem=")).stderr).toContain("Unknown key");
  });
});

describe("docs/deploy/Dockerfile", () => {
  const steps = instructions(read("Dockerfile"));
  const all = (name: string) => steps.filter(([step]) => step === name).map(([, rest]) => rest);

  it("has only instructions that Docker knows", () => {
    const names = "FROM WORKDIR COPY RUN ENV USER VOLUME EXPOSE HEALTHCHECK CMD".split(" ");
    expect(steps.length).toBeGreaterThan(10);
    for (const [name] of steps) expect(names).toContain(name);
  });

  it("builds in a stage of its own, on a Node that this package and better-sqlite3 work with", () => {
    const images = all("FROM");
    expect(images).toHaveLength(2);
    for (const image of images) {
      const [, major = ""] = /^node:(\d+)-/.exec(image) ?? [];
      expect(isWithin(`${major}.99.0`, { from: versionOf(manifest.engines.node) })).toBe(true);
    }
    expect(all("COPY").join()).toContain("--from=dependencies");
  });

  it("runs as nobody special, with the inbox on a volume that this user owns", () => {
    const user = steps.findIndex(([name]) => name === "USER");
    const names = steps.slice(user).map(([name]) => name);
    expect(steps[user]?.[1]).toBe("node");
    expect(names).not.toContain("RUN");
    expect(all("VOLUME")).toEqual(["/data"]);
    expect(all("ENV").join()).toContain("INBOX_PATH=/data/");
    expect(all("RUN").join()).toMatch(/install --directory --owner=node .*\/data/);
  });

  it("starts without a shell, which would keep SIGTERM to itself, and asks whether it lives", () => {
    expect(all("CMD").map((rest) => JSON.parse(rest))).toEqual([["node", "server.js"]]);
    expect(all("HEALTHCHECK").join()).toContain("/healthz");
    const [, listen = "[]"] = /^# CMD (\[.*\])$/m.exec(read("Dockerfile")) ?? [];
    const words: string[] = JSON.parse(listen);
    expect(words[1]).toBe("listen");
    for (const word of words.filter((word) => word.startsWith("--"))) expect(known).toContain(word);
  });

  it("has a health check that a shell and Node understand", () => {
    const [check = ""] = all("HEALTHCHECK");
    const command = check.slice(check.indexOf("CMD ") + 4);
    // Nothing listens on that port.
    const { status, stderr } = spawnSync("/bin/sh", ["-c", command], {
      env: { ...process.env, PORT: "9" },
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([1, ""]);
  });
});
