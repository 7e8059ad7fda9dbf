/** A copy of what is compiled, with a bug that was put into its sources: as good as the original for the programmes, and gone afterwards. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { MEMORY_DISK } from "../support/memory-disk.ts";
import type { Edit } from "./bugs.ts";

/** Both hold the same of the sources; some programmes start the package's own command. */
const COMPILED = [".build", "dist"];
const COPIED = [...COMPILED, "package.json", "tsconfig.json"];
const LINKED = ["node_modules", "examples"];

/** Makes a copy of the repository at `root` and gives its folder to `use`. Rejects when an edit does not fit or cannot be compiled. */
export async function inCopy<T>(root: string, edits: readonly Edit[], use: (copy: string) => Promise<T>): Promise<T> {
  // Removed from a real disk, its thousands of files take longer than all the rest.
  const copy = mkdtempSync(join(MEMORY_DISK, "oncehook-planted-"));
  try {
    for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
    for (const name of LINKED) symlinkSync(join(root, name), join(copy, name));
    const files = new Set(edits.map(({ file }) => file));
    for (const file of files) {
      mkdirSync(dirname(join(copy, file)), { recursive: true });
      writeFileSync(join(copy, file), edited(root, file, edits));
    }
    if (files.size > 0) await compile(copy, [...files]);
    return await use(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** How often `find` stands in the file. */
export function timesIn(root: string, { file, find }: Edit): number {
  return readFileSync(join(root, file), "utf8").split(find).length - 1;
}

function edited(root: string, file: string, edits: readonly Edit[]): string {
  let text = readFileSync(join(root, file), "utf8");
  for (const edit of edits.filter((each) => each.file === file)) {
    const times = timesIn(root, edit);
    if (times !== 1) throw new Error(`${file} has ${times} times: ${edit.find}`);
    text = text.replace(edit.find, () => edit.replace);
  }
  return text;
}

/** Each file by itself and without a look at its types, as the programmes are compiled too. */
async function compile(copy: string, files: readonly string[]): Promise<void> {
  const [out = ""] = COMPILED;
  const project = join(copy, "tsconfig.planted.json");
  const options = {
    ...{ noEmit: false, noCheck: true, noResolve: true, outDir: out },
    ...{ allowImportingTsExtensions: false, rewriteRelativeImportExtensions: true },
  };
  writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", compilerOptions: options, files, include: [] }));
  const tsc = join(copy, "node_modules", "typescript", "bin", "tsc");
  const compiler = spawn(process.execPath, [tsc, "-p", project], { cwd: copy, stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  compiler.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  const [code] = await once(compiler, "close");
  if (code !== 0) throw new Error(`it cannot be compiled: ${said.trim().split("\n")[0]}`);
  for (const file of files) {
    const name = file.replace(/\.ts$/, ".js");
    for (const other of COMPILED.slice(1)) cpSync(join(copy, out, name), join(copy, other, name));
  }
}
