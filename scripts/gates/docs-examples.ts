/** The gate of the documentation: every example type-checks against the built package, and runs; every link leads somewhere. */
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Example, examplesOf } from "../docs/blocks.ts";
import { linksOf, lostLinks } from "../docs/links.ts";
import { runExample } from "../docs/run-example.ts";
import { type Gate, type GateResult, problemsOf, run, tool } from "./gate.ts";

/** Inside the project, so that `oncehook` is its own package there. */
const FOLDER = ".build/docs-examples";

export const docsExamples: Gate = {
  name: "docs examples",
  async run({ root }) {
    await run(process.execPath, ["scripts/build.mjs"], { cwd: root });
    const examples = (
      await Promise.all(
        (await documents(root)).map(async (file) => examplesOf(file, await readFile(join(root, file), "utf8"))),
      )
    ).flat();
    const checked = examples.filter(({ leftOut }) => leftOut?.from !== "check");
    const running = checked.filter(({ leftOut }) => leftOut === undefined);
    for (const { place, leftOut } of examples) {
      if (leftOut !== undefined) console.log(`      left out of the ${leftOut.from}: ${place} (${leftOut.reason})`);
    }
    const types = await typeCheck(root, checked);
    return [types, await runAll(root, running), await links(root)];
  },
};

/** The README, the pages in `docs/` itself, and the guides. */
async function documents(root: string): Promise<string[]> {
  return ["README.md", ...(await pagesIn(root, "docs")), ...(await pagesIn(root, "docs/guides"))];
}

async function pagesIn(root: string, folder: string): Promise<string[]> {
  const files = await readdir(join(root, folder));
  return files.filter((file) => file.endsWith(".md")).map((file) => join(folder, file));
}

/** Of everything written for readers, also where no example is run. */
async function links(root: string): Promise<GateResult> {
  const entries = await readdir(join(root, "examples"), { withFileTypes: true });
  const examples = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join("examples", name));
  const folders = [".", "docs/decisions", "docs/reference", "docs/spec", "docs/tutorials", "examples", ...examples];
  const more = folders.map((folder) => pagesIn(root, folder));
  const pages = new Set([...(await documents(root)), ...(await Promise.all(more)).flat()]);
  const found = await Promise.all(
    [...pages].map(async (page) => linksOf(page, await readFile(join(root, page), "utf8"))),
  );
  const all = found.flat();
  return { name: "docs examples: links", count: all.length, unit: "links", problems: lostLinks(root, all) };
}

async function typeCheck(root: string, examples: readonly Example[]): Promise<GateResult> {
  const folder = join(root, FOLDER);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const { name, language, place, code } of examples) {
    // The export makes it a module, as an ES module in a package always is.
    await writeFile(join(folder, `${name}.${language}`), `/* ${place} */ ${code}\nexport {};\n`);
  }
  // Not the project's own settings: a user's strict ones, and declarations of the build.
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023", "DOM"],
    module: "NodeNext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    allowJs: true,
    checkJs: true,
    noImplicitAny: true,
    rootDir: ".",
    outDir: "out",
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts", "*.js"] }));
  const finished = await tool(root, "tsc", ["-p", join(folder, "tsconfig.json")]);
  return { name: "docs examples: types", count: examples.length, unit: "examples", problems: problemsOf(finished) };
}

async function runAll(root: string, examples: readonly Example[]): Promise<GateResult> {
  const problems: string[] = [];
  for (const example of examples) {
    const found = await runExample(example, join(root, FOLDER, "out", `${example.name}.js`), root);
    problems.push(...found.map((problem) => `${example.place}: ${problem}`));
  }
  return { name: "docs examples: run", count: examples.length, unit: "examples", problems };
}
