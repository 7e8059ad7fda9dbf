// Compiles the package to dist/ and, with `tools`, everything else that Node 20 cannot run as TypeScript to .build/.
// Plain JavaScript, because it is what makes the other scripts runnable. Does nothing when the output is newer than every input.
// Compiles into a folder of its own, and then puts the files in place: `npm pack` or a test that reads meanwhile never finds half a build.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
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

/** The inspector's page, which runs in browsers. It is built into both targets: tests, pictures and benchmarks get it as it is shipped. */
const PAGE = "src/inspector/page";
const PAGE_BUILD = "scripts/page.mjs";

/**
 * Builds one target when it is stale.
 * @param {"dist" | "tools"} name
 * @param {{ force?: boolean, quiet?: boolean }} [options] `quiet` leaves type errors to the types gate
 * @returns {boolean} whether it compiled without an error; the output exists either way
 */
export function build(name, options = {}) {
  const { project, out, inputs } = targets[name];
  const sources = inputs.flatMap((folder) => filesOf(join(root, folder), /\.ts$/));
  const page = filesOf(join(root, PAGE), /./);
  const configs = ["package.json", "tsconfig.json", "tsconfig.page.json", project, PAGE_BUILD].map((file) =>
    join(root, file),
  );
  const stamp = join(root, out, ".stamp");
  const newest = Math.max(...[...sources, ...page, ...configs].map((file) => statSync(file).mtimeMs));
  const list = [...sources, ...page].join("\n");
  if (!options.force && isFresh(stamp, list, newest)) return true;

  const startedAt = new Date();
  const tsc = createRequire(import.meta.url).resolve("typescript/package.json");
  // Beside the output, so that a rename moves a file and source maps find their sources.
  const fresh = `.new-${name}-${process.pid}`;
  let done;
  try {
    const compiled = run([join(dirname(tsc), "bin", "tsc"), "-p", project, "--outDir", fresh], options);
    const made = run([PAGE_BUILD, join(fresh, PAGE)]);
    putInPlace(join(root, fresh), join(root, out), inputs);
    done = compiled && made;
  } finally {
    rmSync(join(root, fresh), { recursive: true, force: true });
  }
  if (!done) return false;
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

/**
 * Moves what was compiled to `out`. Files that are new come first, so that nothing leads to one that is missing; then each changed one is
 * replaced by a rename, the package's entries last; what has no source any more is removed at the end.
 */
function putInPlace(fresh, out, inputs) {
  const made = filesOf(fresh, /./).map((file) => file.slice(fresh.length + 1));
  const entries = new Set(
    Object.values(manifest().exports).map(({ default: file = "" }) => file.slice("./dist/".length)),
  );
  const rank = (name) => (existsSync(join(out, name)) ? 1 + Number(entries.has(name)) : 0);
  const ranked = made.map((name) => [rank(name), name]).sort(([a], [b]) => a - b);
  for (const [place, name] of ranked) {
    if (place > 0 && readFileSync(join(out, name)).equals(readFileSync(join(fresh, name)))) continue;
    mkdirSync(dirname(join(out, name)), { recursive: true });
    renameSync(join(fresh, name), join(out, name));
  }
  const wanted = new Set(made);
  for (const folder of inputs) {
    for (const file of filesOf(join(out, folder), /./)) if (!wanted.has(file.slice(out.length + 1))) rmSync(file);
  }
}

function manifest() {
  return JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
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

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.exitCode = build("dist", { force: process.argv.includes("--force") }) ? 0 : 1;
