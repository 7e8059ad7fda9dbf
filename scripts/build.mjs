// Compiles the package to dist/ and, with `tools`, everything else that Node 20 cannot run as TypeScript to .build/.
// Plain JavaScript, because it is what makes the other scripts runnable. Does nothing when the output is newer than every input.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const targets = {
  dist: { project: "tsconfig.build.json", out: "dist", inputs: ["src", "adapters"] },
  tools: {
    project: "tsconfig.tools.json",
    out: ".build",
    inputs: ["src", "adapters", "bench", "scripts", "test", "examples"],
  },
};

/** Files that are served to browsers: not compiled, but made small, in both targets. What is measured and pictured is what is shipped. */
const SERVED = "src/inspector/page";
const MAKE_SMALL = "scripts/page.mjs";

/**
 * Builds one target when it is stale.
 * @param {"dist" | "tools"} name
 * @param {{ force?: boolean, quiet?: boolean }} [options] `quiet` leaves type errors to the types gate
 * @returns {boolean} whether it compiled without an error; the output exists either way
 */
export function build(name, options = {}) {
  const { project, out, inputs } = targets[name];
  const sources = inputs.flatMap((folder) => filesOf(join(root, folder), /\.ts$/));
  const served = filesOf(join(root, SERVED), /./);
  const configs = ["package.json", "tsconfig.json", project, MAKE_SMALL].map((file) => join(root, file));
  const stamp = join(root, out, ".stamp");
  const newest = Math.max(...[...sources, ...served, ...configs].map((file) => statSync(file).mtimeMs));
  const list = [...sources, ...served].join("\n");
  if (!options.force && isFresh(stamp, list, newest)) return true;

  const startedAt = new Date();
  const tsc = createRequire(import.meta.url).resolve("typescript/package.json");
  const compiled = run([join(dirname(tsc), "bin", "tsc"), "-p", project], options);
  for (const input of inputs) removeStale(join(root, out), join(root, out, input), sources);
  const made = run([MAKE_SMALL, join(out, SERVED)]);
  if (!compiled || !made) return false;
  mkdirSync(join(root, out), { recursive: true });
  writeFileSync(stamp, list);
  // Dated before the compiler read its first file: an edit made meanwhile counts as newer.
  utimesSync(stamp, startedAt, startedAt);
  return true;
}

function run(args, { quiet = false } = {}) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  if (status !== 0 && !quiet) process.stderr.write(`${stdout}${stderr}`);
  return status === 0;
}

/** The stamp holds the names of the sources, so that a deleted one makes the output stale too. */
function isFresh(stamp, list, newestMs) {
  return existsSync(stamp) && statSync(stamp).mtimeMs > newestMs && readFileSync(stamp, "utf8") === list;
}

/** Removes compiled files whose source is gone: a package must not carry what its repository no longer has. */
function removeStale(out, folder, sources) {
  const wanted = new Set(sources.map((file) => file.slice(root.length, -".ts".length)));
  for (const file of filesOf(folder, /\.(js|d\.ts)(\.map)?$/)) {
    const name = file.slice(out.length).replace(/\.(js|d\.ts)(\.map)?$/, "");
    if (!wanted.has(name)) rmSync(file);
  }
}

/** Every file under `folder` whose name matches, without following node_modules. */
function filesOf(folder, name) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      if (entry.name === "node_modules" || entry.name === ".next") return [];
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return filesOf(path, name);
      return name.test(entry.name) ? [path] : [];
    })
    .sort();
}

function hasCompiler() {
  try {
    createRequire(import.meta.url).resolve("typescript/package.json");
    return true;
  } catch {
    return false;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const force = process.argv.includes("--force");
  // `npm install` in a clone builds too, but without development dependencies there is nothing to build with.
  if (process.env.npm_lifecycle_event !== "prepare" || hasCompiler())
    process.exitCode = build("dist", { force }) ? 0 : 1;
}
