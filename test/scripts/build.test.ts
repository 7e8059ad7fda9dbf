/** What others find in `dist/` while it is built again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

/** A project with this one's build, three sources of its own, and the inspector's page. */
function newProject(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-build-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const path of [
    "scripts/build.mjs",
    "scripts/page.mjs",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "tsconfig.page.json",
  ]) {
    cpSync(join(ROOT, path), join(folder, path));
  }
  cpSync(join(ROOT, "src/inspector/page"), join(folder, "src/inspector/page"), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

async function build(project: string): Promise<number> {
  const child = spawn(process.execPath, ["scripts/build.mjs"], { cwd: project, stdio: "inherit" });
  const [code] = await once(child, "close");
  return code;
}

const write = (project: string, name: string, text: string) => writeFileSync(join(project, "src", name), text);
const source = (version: number) => `export const version = ${version};\n`;

describe("the build (scripts/build.mjs)", () => {
  it("never shows half of itself: each file is whole and there, the old one or the new one", {
    tags: "full",
  }, async () => {
    const project = newProject();
    for (const name of ["index.ts", "same.ts", "old.ts"]) write(project, name, source(1));
    expect(await build(project)).toBe(0);
    const dist = join(project, "dist/src");
    const before = readFileSync(join(dist, "inspector/page/main.js"), "utf8");
    expect(before.length).toBeGreaterThan(1_000);

    write(project, "index.ts", source(2));
    write(project, "new.ts", source(2));
    rmSync(join(project, "src/old.ts"));
    const building = build(project);
    const seen = new Set<string>();
    let ended = false;
    void building.finally(() => {
      ended = true;
    });
    while (!ended) {
      const text = readFileSync(join(dist, "index.js"), "utf8").replace(/\n\/\/#.*$/s, "");
      const others = ["new.js", "old.js"].filter((name) => existsSync(join(dist, name)));
      seen.add([text, ...others].join(" "));
      expect(readFileSync(join(dist, "inspector/page/main.js"), "utf8")).toBe(before);
      expect(readFileSync(join(dist, "same.js"), "utf8")).toContain("version = 1");
      await wait(1);
    }
    expect(await building).toBe(0);
    // What is new is there before anything that leads to it; what is gone goes last.
    const allowed = [
      "export const version = 1; old.js",
      "export const version = 1; new.js old.js",
      "export const version = 2; new.js old.js",
      "export const version = 2; new.js",
    ];
    expect([...seen].filter((state) => !allowed.includes(state))).toEqual([]);
    expect(readdirSync(dist).filter((name) => name.endsWith(".js"))).toEqual(["index.js", "new.js", "same.js"]);
    expect(readdirSync(project).filter((name) => name.startsWith(".new-"))).toEqual([]);
  });

  it("is no part of an install: the published package has no script that an install would run", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(["prepare", "preinstall", "install", "postinstall"].filter((name) => name in scripts)).toEqual([]);
  });
});
