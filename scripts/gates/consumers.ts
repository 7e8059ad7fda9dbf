/**
 * The gate that installs the tarball as users do, in each module system and with the tools of the guides, without install scripts, and runs
 * what they would write. Those that take minutes run with FULL=1.
 */
import { existsSync } from "node:fs";
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Gate, type GateResult, problemsOf, run } from "./gate.ts";

/** In a consumer's package.json: what to run there. `tsc` stands for the compiler of this project. */
interface ConsumerManifest {
  readonly steps: readonly string[];
  /** It takes minutes. */
  readonly full?: true;
  dependencies: Record<string, string>;
}

const FOLDER = "test/consumers";
/** The pages whose examples they try: users read them in the repository. */
const PAGES = ["README.md", "docs/guides"];
/** Programmes that several consumers run. */
const SHARED = ["guide-files.mjs", "guide-servers.mjs", "run-servers.mjs"];
/** Compiled by an install script, which takes minutes: what this project compiled of the same version will do. */
const COMPILED = "node_modules/better-sqlite3/build/Release/better_sqlite3.node";

export const consumers: Gate = {
  name: "consumers",
  async run({ root, temp, tarball }) {
    const file = await tarball();
    const folders = await readdir(join(root, FOLDER), { withFileTypes: true });
    const all = folders.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    const full = await Promise.all(all.map(async (name) => (await manifestOf(join(root, FOLDER, name))).full === true));
    const names = all.filter((_name, index) => process.env.FULL === "1" || full[index] !== true);
    const leftOut = all.filter((name) => !names.includes(name));
    if (leftOut.length > 0) console.log(`      left out without FULL=1: ${leftOut.join(", ")}`);
    return Promise.all(
      names.map((name) => tryOut(root, { name, folder: join(temp, "consumers", name), tarball: file })),
    );
  },
};

interface Trial {
  readonly name: string;
  readonly folder: string;
  readonly tarball: string;
}

async function tryOut(root: string, { name, folder, tarball }: Trial): Promise<GateResult> {
  await cp(join(root, FOLDER, name), folder, { recursive: true });
  for (const file of SHARED) await cp(join(root, FOLDER, file), join(folder, file));
  for (const page of PAGES) await cp(join(root, page), join(folder, "pages", page), { recursive: true });
  const manifest = await manifestOf(folder);
  manifest.dependencies = { ...manifest.dependencies, oncehook: `file:${tarball}` };
  await writeFile(join(folder, "package.json"), JSON.stringify(manifest));

  const installed = await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], {
    cwd: folder,
  });
  const problems = problemsOf(installed);
  await takeCompiled(root, folder);
  let count = 0;
  for (const step of problems.length === 0 ? manifest.steps : []) {
    const [command = "", ...args] = step.split(" ");
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const program = command === "tsc" ? [tsc, ...args] : args;
    const finished = await run(process.execPath, program, { cwd: folder, timeoutMs: 300_000 });
    problems.push(...problemsOf(finished).map((line) => `${step}: ${line}`));
    // Each programme prints a line per thing it found to work; the compiler prints the files it read, of which ours count.
    count += finished.stdout.split("\n").filter((line) => /^ok |\/node_modules\/oncehook\//.test(line)).length;
  }
  return { name: `consumers: ${name}`, count, unit: "checks", problems };
}

async function manifestOf(folder: string): Promise<ConsumerManifest> {
  return JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as ConsumerManifest;
}

async function takeCompiled(root: string, folder: string): Promise<void> {
  if (existsSync(join(folder, "node_modules/better-sqlite3"))) await cp(join(root, COMPILED), join(folder, COMPILED));
}
