/** The gate that installs the tarball as users do, in each module system, without install scripts, and runs what they would write. */
import { cp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Gate, type GateResult, problemsOf, run } from "./gate.ts";

/** In a consumer's package.json: what to run there. `tsc` stands for the compiler of this project. */
interface ConsumerManifest {
  readonly steps: readonly string[];
  dependencies: Record<string, string>;
}

const FOLDER = "test/consumers";

export const consumers: Gate = {
  name: "consumers",
  async run({ root, temp, tarball }) {
    const file = await tarball();
    const folders = await readdir(join(root, FOLDER), { withFileTypes: true });
    const names = folders.filter((entry) => entry.isDirectory()).map(({ name }) => name);
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
  const path = join(folder, "package.json");
  const manifest = JSON.parse(await readFile(path, "utf8")) as ConsumerManifest;
  manifest.dependencies = { ...manifest.dependencies, oncehook: `file:${tarball}` };
  await writeFile(path, JSON.stringify(manifest));

  const installed = await run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], {
    cwd: folder,
  });
  const problems = problemsOf(installed);
  let count = 0;
  for (const step of problems.length === 0 ? manifest.steps : []) {
    const [command = "", ...args] = step.split(" ");
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const program = command === "tsc" ? [tsc, ...args] : args;
    const finished = await run(process.execPath, program, { cwd: folder, timeoutMs: 60_000 });
    problems.push(...problemsOf(finished).map((line) => `${step}: ${line}`));
    // Each programme prints a line per thing it found to work; the compiler prints the files it read, of which ours count.
    count += finished.stdout.split("\n").filter((line) => /^ok |\/node_modules\/oncehook\//.test(line)).length;
  }
  return { name: `consumers: ${name}`, count, unit: "checks", problems };
}
