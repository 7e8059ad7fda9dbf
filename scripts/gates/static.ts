/** The gates that read without running anything: lint and format, types, unused code, plain English, the reference. */
import { readAloud } from "../plain-english.ts";
import { outdated, wholeReference } from "../reference.ts";
import { type Gate, type GateResult, problemsOf, run, tool } from "./gate.ts";

/**
 * Not dependencies, but run by npx: both bring a binary per platform, a lock file leaves out those that a registry does not have, and
 * `npm ci` then refuses it ("Missing: @biomejs/cli-… from lock file").
 */
const BIOME = "@biomejs/biome@2.6.8";
const KNIP = "knip@6.44.2";

export const lint: Gate = {
  name: "lint and format",
  async run({ root }) {
    const finished = await run("npx", ["--yes", BIOME, "check", "--error-on-warnings", "--colors=off"], { cwd: root });
    const count = Number(/Checked (\d+) files?/.exec(finished.output)?.[1] ?? 0);
    return [{ name: this.name, count, unit: "files", problems: problemsOf(finished) }];
  },
};

export const types: Gate = {
  name: "types",
  async run({ root }) {
    return [
      await typesOf(root, { name: this.name, project: "tsconfig.json" }),
      await typesOf(root, { name: `${this.name}: the inspector's page`, project: "tsconfig.page.json" }),
    ];
  },
};

async function typesOf(root: string, { name, project }: { name: string; project: string }): Promise<GateResult> {
  const finished = await tool(root, "tsc", ["-p", project, "--listFiles"]);
  const own = finished.stdout.split("\n").filter((line) => line.startsWith(root) && !line.includes("/node_modules/"));
  const errors = finished.stdout.split("\n").filter((line) => line !== "" && !line.startsWith("/"));
  const problems = finished.code === 0 ? [] : [...errors.slice(0, 40), `ended with ${finished.code}`];
  return { name, count: own.length, unit: "files", problems };
}

export const unused: Gate = {
  name: "unused code",
  async run({ root }) {
    const args = ["--no-progress", "--reporter", "symbols", "--reporter", "./scripts/knip-count.mjs"];
    const finished = await run("npx", ["--yes", KNIP, ...args], { cwd: root, env: { ...process.env, NO_COLOR: "1" } });
    const count = Number(/^analysed (\d+) files$/m.exec(finished.stdout)?.[1] ?? 0);
    return [{ name: this.name, count, unit: "files", problems: problemsOf(finished) }];
  },
};

export const english: Gate = {
  name: "plain english",
  async run({ root }) {
    const { files, problems } = readAloud(root);
    return [{ name: this.name, count: files, unit: "files", problems }];
  },
};

export const reference: Gate = {
  name: "reference",
  async run({ root }) {
    await run(process.execPath, ["scripts/build.mjs"], { cwd: root });
    const read = wholeReference(root);
    const missing = read.undocumented.map((place) => `${place} has no docstring`);
    return [{ name: this.name, count: read.lines, unit: "lines", problems: [...missing, ...outdated(root, read)] }];
  },
};
