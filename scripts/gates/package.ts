/** The gates on what is published: the packed tarball, its listing, its types, and what its entries load. */
import { existsSync } from "node:fs";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Project, readProject } from "../architecture/project.ts";
import { entriesOf, RULES } from "../architecture/rules.ts";
import { linksOf } from "../docs/links.ts";
import { filesUnder, type Gate, type GateResult, problemsOf, run, tool } from "./gate.ts";

/** Builds the package and packs it into `folder`; returns the path of the tarball. */
export async function pack(root: string, folder: string): Promise<string> {
  const built = await run(process.execPath, ["scripts/build.mjs", "--force"], { cwd: root });
  if (built.code !== 0) throw new Error(`the package does not compile\n${built.output}`);
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

/** What is read beside the code: the README and the pages it leads to. */
const PAPERS = [
  "package.json",
  "README.md",
  "CHANGELOG.md",
  "LICENSE",
  "docs/architecture.md",
  "docs/benchmarks.md",
  "docs/cli.md",
  "docs/deploy/Dockerfile",
  "docs/deploy/oncehook.service",
  "docs/emulator.md",
  "docs/forwarding.md",
  "docs/inbox.md",
  "docs/inspector.md",
  "docs/moving-to-postgres.md",
  "docs/openapi.json",
  "docs/operations.md",
  "docs/reliability.md",
  "docs/scaling.md",
  "docs/sidecar.md",
  "docs/spec/conformance.md",
  "docs/telemetry.md",
  "docs/telemetry/alerts.yml",
  "docs/telemetry/grafana-dashboard.json",
  "docs/writing-a-store.md",
];

/** The inspector's page: scripts/page.mjs makes these files of its sources. */
const PAGE = "src/inspector/page/";
const BUILT = ["index.html", "icon.svg", "main.js", "style.css"].map((name) => `dist/${PAGE}${name}`);

/** Exactly the compiled sources, the sources their maps lead to, and the papers: nothing left over, nothing missing. */
async function listing(root: string, tarball: string): Promise<GateResult> {
  const listed = await run("tar", ["-tzf", tarball]);
  const found = listed.stdout
    .trim()
    .split("\n")
    .map((line) => line.replace(/^package\//, ""));
  const sources = ["src", "adapters"].flatMap((folder) =>
    filesUnder(join(root, folder)).map((file) => `${folder}/${file}`),
  );
  const compiled = sources.flatMap((source) => {
    // Declarations of a foreign module compile to nothing.
    if (source.endsWith(".d.ts")) return [];
    if (source.startsWith(PAGE)) return [];
    const base = `dist/${source.replace(/\.ts$/, "")}`;
    return [".js", ".js.map", ".d.ts", ".d.ts.map"].map((ending) => base + ending);
  });
  const guides = ["docs/guides", "docs/inspector", "docs/benchmarks"]
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) => filesUnder(join(root, folder)).map((file) => `${folder}/${file}`));
  const expected = new Set([...sources, ...compiled, ...BUILT, ...PAPERS, ...guides]);
  const strays = found.filter((file) => !expected.has(file)).map((file) => `${file} should not be in the package`);
  const missing = [...expected]
    .filter((file) => !found.includes(file))
    .map((file) => `${file} is missing from the package`);
  return {
    name: "package: listing",
    count: found.length,
    unit: "files",
    problems: [...problemsOf(listed), ...strays, ...missing, ...(await linksOutside(root, found))],
  };
}

/** Links of the packed pages that lead to nothing in the package. */
async function linksOutside(root: string, packed: readonly string[]): Promise<readonly string[]> {
  const pages = packed.filter((file) => file.endsWith(".md"));
  const links = await Promise.all(pages.map(async (page) => linksOf(page, await readFile(join(root, page), "utf8"))));
  const outside = links.flat().filter(({ path }) => !packed.includes(path));
  return outside.map(({ place, path }) => `${place} links to ${path}, which is not packed`);
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
  const folders = [".", "bench", "examples/nextjs", "test/hosts", "test/orms"];
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
