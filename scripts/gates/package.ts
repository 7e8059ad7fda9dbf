/** The gates on what is published: the packed tarball, its listing, its types, and what its entries load. */
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Project, readProject } from "../architecture/project.ts";
import { entriesOf, RULES } from "../architecture/rules.ts";
import { type Gate, type GateResult, problemsOf, run, tool } from "./gate.ts";

/** Builds the package and packs it into `folder`; returns the path of the tarball. */
export async function pack(root: string, folder: string): Promise<string> {
  const built = await run(process.execPath, ["scripts/build.mjs", "--force"], { cwd: root });
  if (built.code !== 0) throw new Error(`the package does not compile\n${built.output}`);
  return packBuilt(root, folder);
}

/** Packs the package as it was built last. */
export async function packBuilt(root: string, folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const packed = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], { cwd: root });
  const file = /"filename": "([^"]+)"/.exec(packed.stdout)?.[1];
  if (packed.code !== 0 || file === undefined) throw new Error(packed.output);
  return join(folder, file);
}

export const packageChecks: Gate = {
  name: "package",
  async run({ root, tarball }) {
    const file = await tarball();
    const entries = entriesOf(readProject(root)).length;
    const [published, types, listed] = await Promise.all([
      tool(root, "publint", ["run", file, "--strict"]),
      tool(root, "attw", [file, "--profile", "esm-only", "--no-emoji", "--no-color", "--format", "json"]),
      listing(root, file),
    ]);
    return [
      {
        name: "package: publint",
        count: entries,
        unit: "entries",
        problems: publintProblems(published.output, problemsOf(published)),
      },
      typesResult(types.stdout, problemsOf(types)),
      listed,
      await importTime(root),
    ];
  },
};

function publintProblems(output: string, problems: readonly string[]): readonly string[] {
  return problems.length > 0 || /All good!/.test(output) ? problems : [output.trim()];
}

function typesResult(json: string, problems: readonly string[]): GateResult {
  const name = "package: are the types wrong";
  try {
    const { analysis } = JSON.parse(json) as {
      analysis: { entrypoints: object; problems: { kind: string; entrypoint?: string }[] };
    };
    const found = analysis.problems.map(({ kind, entrypoint = "" }) => `${kind} ${entrypoint}`);
    return {
      name,
      count: Object.keys(analysis.entrypoints).length,
      unit: "entries",
      problems: problems.length === 0 ? [] : found.concat(problems.slice(-1)),
    };
  } catch {
    return { name, count: 0, unit: "entries", problems: [json, ...problems] };
  }
}

const MOST_FILES = 150;
const MOST_BYTES = 3_000_000;

const PAPERS = ["package.json", "README.md", "CHANGELOG.md", "LICENSE", "docs/openapi.json"];
/** scripts/page.mjs makes the inspector's page. */
const PAGE = ["index.html", "icon.svg", "main.js", "style.css"].map((name) => `dist/page/${name}`);

/** The entries with their declarations, the chunks that these lead to, the page and the papers: nothing left over, nothing missing. */
async function listing(root: string, tarball: string): Promise<GateResult> {
  const listed = await run("tar", ["-tvzf", tarball]);
  const lines = listed.stdout.trim().split("\n");
  const found = lines.map((line) => line.replace(/^.* package\//, ""));
  const bytes = lines.reduce((sum, line) => sum + Number(/^\S+ +\S+ +(\d+)/.exec(line)?.[1] ?? Number.NaN), 0);
  const { exports, bin = {} } = readProject(root).manifest;
  const entries = Object.values(exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default, target.types],
  );
  const code = await withChunks(
    root,
    [...entries, ...Object.values(bin)].map((file) => file.replace(/^\.\//, "")),
  );
  const expected = new Set([...code, ...PAGE, ...PAPERS, "dist/third-party-licenses.txt"]);
  const problems = [
    ...problemsOf(listed),
    ...found.filter((file) => !expected.has(file)).map((file) => `${file} should not be in the package`),
    ...[...expected].filter((file) => !found.includes(file)).map((file) => `${file} is missing from the package`),
  ];
  if (found.length > MOST_FILES) problems.push(`${found.length} files are more than ${MOST_FILES}`);
  if (!(bytes <= MOST_BYTES)) problems.push(`${bytes} bytes are more than ${MOST_BYTES}`);
  const name = `package: listing (${(bytes / 1_000_000).toFixed(1)} MB)`;
  return { name, count: found.length, unit: "files", problems };
}

/** These files of dist/, and those that they import. A declaration names the code of its chunk. */
async function withChunks(root: string, entries: readonly string[]): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  const open = [...entries];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const text = await readFile(join(root, file), "utf8");
    for (const [, name = ""] of text.matchAll(/(?:\bfrom |\bimport\(|^import )["']\.\/([\w.-]+\.js)["']/gm))
      open.push(`dist/${file.endsWith(".d.ts") ? name.replace(/\.js$/, ".d.ts") : name}`);
  }
  return seen;
}

/** Rounds of the two imports below, in turns. */
const ROUNDS = 9;
/** Of the time that an import of zod alone takes, which the package contains most of. */
const MOST_OF_ZOD = 1.2;

/** The package with one adapter beside zod alone, each in a process of its own: a ratio, because machines differ. */
async function importTime(root: string): Promise<GateResult> {
  const own: number[] = [];
  const zod: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    own.push(await importMs(root, ["oncehook", "oncehook/express"]));
    zod.push(await importMs(root, ["zod"]));
  }
  const ratio = Math.min(...own) / Math.min(...zod);
  const name = `package: import of oncehook and oncehook/express (${ratio.toFixed(2)} of zod's)`;
  const problems = ratio <= MOST_OF_ZOD ? [] : [`${ratio.toFixed(2)} of an import of zod is more than ${MOST_OF_ZOD}`];
  return { name, count: own.length, unit: "imports", problems };
}

async function importMs(root: string, entries: readonly string[]): Promise<number> {
  const imports = entries.map((entry) => `await import("${entry}");`).join(" ");
  const script = `const start = performance.now(); ${imports} process.stdout.write(String(performance.now() - start));`;
  const finished = await run(process.execPath, ["--input-type=module", "-e", script], { cwd: root });
  return finished.code === 0 ? Number(finished.stdout) : Number.NaN;
}

export const architecture: Gate = {
  name: "architecture",
  async run({ root }) {
    const project = readProject(root);
    const results = RULES.map((rule) => ({ ...rule.check(project), name: `architecture: ${rule.name}` }));
    return [...results, await entryLoads(root, project), await lockHosts(root)];
  },
};

/** Imports each entry in a process of its own and looks at what was loaded. */
async function entryLoads(root: string, project: Project): Promise<GateResult> {
  const peers = Object.keys(project.manifest.peerDependencies ?? {});
  const entries = entriesOf(project);
  const reports = await Promise.all(
    entries.map(async (entry) => {
      const loaded = await run(process.execPath, [join(root, "scripts/trace-loads.mjs"), entry], { cwd: root });
      if (loaded.code !== 0) return { files: 0, problems: [`${entry}: ${loaded.output.trim().slice(-500)}`] };
      const files = loaded.stdout.trim().split("\n");
      const heavy = peers.filter((peer) => files.some((file) => file.includes(`/node_modules/${peer}/`)));
      return { files: files.length, problems: heavy.map((peer) => `importing ${entry} loads ${peer}`) };
    }),
  );
  return {
    name: `architecture: no entry loads a peer (${entries.length} entries)`,
    count: reports.some(({ files }) => files === 0) ? 0 : reports.reduce((sum, { files }) => sum + files, 0),
    unit: "modules",
    problems: reports.flatMap(({ problems }) => problems),
  };
}

/** A lock file that names hosts makes an install elsewhere ask a registry that its user did not choose. */
async function lockHosts(root: string): Promise<GateResult> {
  const folders = [".", "bench", "examples/nextjs", "test/proofs/hosts", "test/proofs/orms"];
  const files = folders.map((folder) => join(folder, "package-lock.json"));
  const present = files.filter((file) => existsSync(join(root, file)));
  const locks = await Promise.all(
    present.map(async (file) => ({ file, packages: await lockedPackages(join(root, file)) })),
  );
  const problems = locks.flatMap(({ file, packages }) =>
    packages
      .filter(([, { resolved }]) => resolved !== undefined)
      .map(([path, { resolved }]) => `${file}: ${path} is resolved to ${resolved}`),
  );
  const count = locks.reduce((sum, { packages }) => sum + packages.length, 0);
  return { name: `architecture: no lock file names a host (${locks.length} files)`, count, unit: "packages", problems };
}

async function lockedPackages(file: string): Promise<[string, { resolved?: string }][]> {
  const { packages } = JSON.parse(await readFile(file, "utf8")) as { packages: Record<string, { resolved?: string }> };
  return Object.entries(packages);
}
