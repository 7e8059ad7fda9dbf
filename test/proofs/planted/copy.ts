/** A copy of what is compiled, with a bug that was put into its sources: as good as the original for the programmes, and gone afterwards. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { MEMORY_DISK } from "../../support/memory-disk.ts";
import { runNode } from "./finding.ts";
import { type Edit, withEdits } from "./places.ts";

const COMPILED = ".build";
const PACKAGE = "dist";
const FOLDERS = [COMPILED, PACKAGE, "src", "adapters", "scripts", "test"];
const SETTINGS = ["package.json", "tsconfig.json", "tsconfig.page.json", "vitest.config.ts"];
/** What no edit changes. */
const LINKED = ["node_modules", "examples", "bench", "docs", ...["tsconfig.build.json", "tsconfig.tools.json"]];

export interface Copied {
  readonly edits: readonly Edit[];
  /** What is done with it starts the package's own command. */
  readonly startsPackage: boolean;
}

/** Makes a copy of the repository at `root` and gives its folder to `use`. Rejects when an edit does not fit or cannot be compiled. */
export async function inCopy<T>(
  root: string,
  { edits, startsPackage }: Copied,
  use: (copy: string) => Promise<T>,
): Promise<T> {
  // Removed from a real disk, its thousands of files take longer than all the rest.
  const copy = mkdtempSync(join(MEMORY_DISK, "oncehook-planted-"));
  try {
    for (const name of [...FOLDERS, ...SETTINGS])
      cpSync(join(root, name), join(copy, name), { recursive: true, filter });
    for (const name of LINKED) symlinkSync(join(root, name), join(copy, name));
    const files = new Set(edits.map(({ file }) => file));
    for (const file of files) {
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      const text = readFileSync(join(root, file), "utf8");
      const inFile = edits.filter((edit) => edit.file === file);
      writeFileSync(join(copy, file), withEdits(text, inFile));
    }
    if (files.size > 0) await compile(copy, [...files]);
    if (startsPackage) await run(copy, [join("scripts", "bundle.mjs"), PACKAGE]);
    stampAsBuilt(root, copy);
    return await use(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Packages that some tests install for themselves. */
function filter(file: string): boolean {
  return basename(file) !== "node_modules";
}

/** Otherwise the tests would build everything anew first. */
function stampAsBuilt(root: string, copy: string): void {
  for (const folder of [COMPILED, PACKAGE]) {
    const sources = readFileSync(join(root, folder, ".stamp"), "utf8");
    writeFileSync(join(copy, folder, ".stamp"), sources.replaceAll(join(root, "/"), join(copy, "/")));
  }
}

/** Each file by itself and without a look at its types, as the programmes are compiled too. */
async function compile(copy: string, files: readonly string[]): Promise<void> {
  const project = join(copy, "tsconfig.planted.json");
  const options = {
    ...{ noEmit: false, noCheck: true, noResolve: true, outDir: COMPILED },
    ...{ allowImportingTsExtensions: false, rewriteRelativeImportExtensions: true },
  };
  writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", compilerOptions: options, files, include: [] }));
  await run(copy, [join("node_modules", "typescript", "bin", "tsc"), "-p", project]);
}

async function run(copy: string, args: readonly string[]): Promise<void> {
  const { code, out, errors } = await runNode(copy, args);
  if (code !== 0) throw new Error(`it cannot be compiled: ${(out + errors).trim().split("\n")[0]}`);
}
