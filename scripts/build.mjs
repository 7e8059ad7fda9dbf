// Makes the package in dist/ and, with `tools`, compiles everything that Node 20 cannot run as TypeScript to .build/.
// Plain JavaScript, because it is what makes the other scripts runnable. Does nothing when the output is newer than every input.
// Builds into a folder of its own, and then puts the files in place: `npm pack` or a test that reads meanwhile never finds half a build.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
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

/** The output folder is renamed file by file, so it lies beside the final one. `owned`: the folders of `out` that hold nothing else. */
const targets = {
  dist: { make: makePackage, out: "dist", inputs: ["src", "adapters", "test/contracts"], owned: ["."] },
  tools: {
    make: (fresh, options) => compile("tsconfig.tools.json", fresh, options),
    out: ".build",
    inputs: ["src", "adapters", "bench", "scripts", "test", "examples"],
    owned: ["src", "adapters", "bench", "scripts", "test", "examples"],
  },
};

/** What decides the output besides the sources. */
const SETTINGS = [
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  "tsconfig.page.json",
  "tsconfig.tools.json",
  "scripts/bundle.mjs",
  "scripts/page.mjs",
];

/**
 * Builds one target when it is stale.
 * @param {"dist" | "tools"} name
 * @param {{ force?: boolean, quiet?: boolean }} [options] `quiet` leaves type errors to the types gate
 * @returns {boolean} whether it was built without an error; the output exists either way
 */
export function build(name, options = {}) {
  const { make, out, inputs, owned } = targets[name];
  const sources = inputs.flatMap((folder) => filesOf(join(root, folder)));
  const settings = SETTINGS.map((file) => join(root, file));
  const stamp = join(root, out, ".stamp");
  const newest = Math.max(...[...sources, ...settings].map((file) => statSync(file).mtimeMs));
  const list = sources.join("\n");
  if (!options.force && isFresh(stamp, list, newest)) return true;

  const startedAt = new Date();
  const fresh = join(root, `.new-${name}-${process.pid}`);
  let done;
  try {
    done = make(fresh, options);
    putInPlace(fresh, join(root, out), owned);
  } finally {
    rmSync(fresh, { recursive: true, force: true });
  }
  if (!done) return false;
  writeFileSync(stamp, list);
  // Dated before the compiler read its first file: an edit made meanwhile counts as newer.
  utimesSync(stamp, startedAt, startedAt);
  return true;
}

/** Declarations first, which the bundle takes in. They are emitted in spite of type errors. */
function makePackage(fresh, options) {
  const declarations = `${fresh}-types`;
  try {
    const compiled = compile("tsconfig.build.json", declarations, options);
    return run(["scripts/bundle.mjs", fresh, declarations]) && compiled;
  } finally {
    rmSync(declarations, { recursive: true, force: true });
  }
}

function compile(project, folder, options) {
  const tsc = createRequire(import.meta.url).resolve("typescript/package.json");
  return run([join(dirname(tsc), "bin", "tsc"), "-p", project, "--outDir", folder], options);
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
 * Moves what was built to `out`. Files that are new come first, so that nothing leads to one that is missing; then each changed one is
 * replaced by a rename, the package's entries last; what is not built any more is removed at the end.
 */
function putInPlace(fresh, out, owned) {
  const made = filesOf(fresh).map((file) => file.slice(fresh.length + 1));
  const { exports, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = new Set(
    [...Object.values(exports).map(({ default: file = "" }) => file), ...Object.values(bin)].map((file) =>
      file.replace(/^(?:\.\/)?dist\//, ""),
    ),
  );
  for (const file of Object.values(bin).map((path) => path.replace(/^dist\//, "")))
    if (made.includes(file)) chmodSync(join(fresh, file), 0o755);
  const rank = (name) => (existsSync(join(out, name)) ? 1 + Number(entries.has(name)) : 0);
  const ranked = made.map((name) => [rank(name), name]).sort(([a], [b]) => a - b);
  for (const [place, name] of ranked) {
    if (place > 0 && isSame(join(out, name), join(fresh, name))) continue;
    mkdirSync(dirname(join(out, name)), { recursive: true });
    renameSync(join(fresh, name), join(out, name));
  }
  const wanted = new Set([...made, ".stamp"]);
  for (const folder of owned) {
    for (const file of filesOf(join(out, folder))) if (!wanted.has(file.slice(out.length + 1))) rmSync(file);
  }
}

/** Text and run bit: npm sets the bit when it installs, and a link to a clone brings the file as it is. */
function isSame(one, other) {
  return readFileSync(one).equals(readFileSync(other)) && statSync(one).mode === statSync(other).mode;
}

/** Every file under `folder`, without those of installed packages. */
function filesOf(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => {
      if (entry.name === "node_modules" || entry.name === ".next") return [];
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesOf(path) : [path];
    })
    .sort();
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  process.exitCode = build("dist", { force: process.argv.includes("--force") }) ? 0 : 1;
