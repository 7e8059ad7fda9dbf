/** What others find in `dist/` while it is built again. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

/** A project with this one's build and page, an entry, and a command that loads a chunk. */
function newProject(): string {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-build-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ["build", "bundle", "page"])
    cpSync(join(ROOT, `scripts/${name}.mjs`), join(folder, `scripts/${name}.mjs`));
  for (const name of ["build", "page", "tools"])
    cpSync(join(ROOT, `tsconfig.${name}.json`), join(folder, `tsconfig.${name}.json`));
  for (const [name, changed] of Object.entries(CHANGED)) {
    const settings = JSON.parse(readFileSync(join(ROOT, name), "utf8"));
    writeFileSync(join(folder, name), JSON.stringify(changed(settings)));
  }
  cpSync(join(ROOT, "src/tools/inspector/page"), join(folder, "src/tools/inspector/page"), { recursive: true });
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** One entry. */
const CHANGED: Readonly<Record<string, (settings: Record<string, object>) => object>> = {
  "package.json": (manifest) => ({
    ...manifest,
    exports: { ".": { types: "./dist/index.d.ts", default: "./dist/index.js" } },
  }),
  "tsconfig.json": (settings) => ({
    ...settings,
    compilerOptions: { ...settings.compilerOptions, paths: { oncehook: ["./src/index.ts"] } },
  }),
};

async function build(project: string, ...flags: readonly string[]): Promise<number> {
  const child = spawn(process.execPath, ["scripts/build.mjs", ...flags], { cwd: project, stdio: "inherit" });
  const [code] = await once(child, "close");
  return code;
}

function write(project: string, name: string, text: string): void {
  mkdirSync(dirname(join(project, "src", name)), { recursive: true });
  writeFileSync(join(project, "src", name), text);
}
const source = (version: number) => `export const version = ${version};\n`;

describe("the build (scripts/build.mjs)", () => {
  it("never shows half of itself: each file is whole and there, the old one or the new one", {
    tags: "full",
  }, async () => {
    const project = newProject();
    write(project, "index.ts", source(1));
    write(project, "tools/cli/main.ts", 'const { old } = await import("./old.ts");\nconsole.log(old);\n');
    write(project, "tools/cli/old.ts", 'export const old = "old";\n');
    expect(await build(project)).toBe(0);
    const dist = join(project, "dist");
    const page = readFileSync(join(dist, "page/main.js"), "utf8");
    expect(page.length).toBeGreaterThan(1_000);

    write(project, "index.ts", source(2));
    write(project, "tools/cli/main.ts", 'const { fresh } = await import("./fresh.ts");\nconsole.log(fresh);\n');
    write(project, "tools/cli/fresh.ts", 'export const fresh = "fresh";\n');
    rmSync(join(project, "src/tools/cli/old.ts"));
    const building = build(project);
    const seen = new Set<string>();
    let ended = false;
    void building.finally(() => {
      ended = true;
    });
    while (!ended) {
      const version = /version = (\d)/.exec(readFileSync(join(dist, "index.js"), "utf8"))?.[1];
      const wanted = /import\("\.\/(\w+)-/.exec(readFileSync(join(dist, "cli.js"), "utf8"))?.[1];
      const chunks = readdirSync(dist).flatMap((name) => /^(old|fresh)-/.exec(name)?.[1] ?? []);
      seen.add([version, wanted, ...chunks.sort()].join(" "));
      expect(readFileSync(join(dist, "page/main.js"), "utf8")).toBe(page);
      await wait(1);
    }
    expect(await building).toBe(0);
    // What is new is there before anything that leads to it; what is gone goes last.
    const allowed = /^(?:1 old old|1 old fresh old|[12] (?:old|fresh) fresh old|2 fresh fresh)$/;
    expect([...seen].filter((state) => !allowed.test(state))).toEqual([]);
    const names = readdirSync(dist).map((name) => name.replace(/-[\w-]{8}\.js$/, ".js"));
    expect(names.sort()).toEqual([
      ".stamp",
      "cli.js",
      "fresh.js",
      "index.d.ts",
      "index.js",
      "page",
      "rolldown-runtime.js",
      "third-party-licenses.txt",
    ]);
    expect(readdirSync(project).filter((name) => name.startsWith(".new-"))).toEqual([]);

    // The command runs, also where it lost the bit and its text is as before.
    expect(statSync(join(dist, "cli.js")).mode & 0o111).toBe(0o111);
    chmodSync(join(dist, "cli.js"), 0o644);
    expect(await build(project, "--force")).toBe(0);
    expect(statSync(join(dist, "cli.js")).mode & 0o111).toBe(0o111);
  });

  it("is no part of an install: the published package has no script that an install would run", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(["prepare", "preinstall", "install", "postinstall"].filter((name) => name in scripts)).toEqual([]);
  });
});
