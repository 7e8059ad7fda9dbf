/** What the architecture rules look at: the sources with their imports, the manifest and the index of the reference. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { type Scan, scan } from "./scan.ts";

export interface SourceFile extends Scan {
  /** From the root of the project, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

export interface Project {
  readonly files: readonly SourceFile[];
  readonly manifest: Manifest;
  /** The source of each name that a user imports: `oncehook/express` is adapters/express.ts. */
  readonly entries: Readonly<Record<string, string>>;
  readonly reference: string;
  /** The text of docs/reliability.md, which names what proves each promise. */
  readonly promises: string;
  /** The pages of docs/, from the root. */
  readonly pages: readonly string[];
}

const FOLDERS = ["src", "adapters", "test", "bench", "scripts", "examples"];
const LEFT_OUT = new Set(["node_modules", ".next", "dist"]);

/** Reads the project that lies in `root`. */
export function readProject(root: string): Project {
  const paths = FOLDERS.flatMap((folder) => filesUnder(root, folder));
  const texts = Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
  const page = (path: string) => (existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : "");
  return projectFrom(texts, {
    entries: readEntries(root),
    manifest: JSON.parse(readFileSync(join(root, "package.json"), "utf8")),
    reference: page("docs/reference/README.md"),
    promises: page("docs/reliability.md"),
    pages: filesUnder(root, "docs", /\.md$|^[^.]+\.(?:yml|service)$/),
  });
}

/** From `paths` of tsconfig.json, where the compiler, the bundler and the tests find them too. */
function readEntries(root: string): Readonly<Record<string, string>> {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, "tsconfig.json"), "utf8")) as {
    readonly compilerOptions: { readonly paths: Readonly<Record<string, readonly [string]>> };
  };
  return Object.fromEntries(
    Object.entries(compilerOptions.paths).map(([entry, [source]]) => [entry, posix.normalize(source)]),
  );
}

/** A project made of `texts`, by path. */
export function projectFrom(texts: Readonly<Record<string, string>>, rest: Omit<Project, "files">): Project {
  const files = Object.entries(texts).map(([path, text]) => ({ path, text, ...scan(text) }));
  return { files, ...rest };
}

const SHIPPED = ["src/", "adapters/", "test/contracts/"];

/** The sources that end up in the package. */
export function shipped(project: Project): readonly SourceFile[] {
  return project.files.filter(({ path }) => SHIPPED.some((folder) => path.startsWith(folder)));
}

/** The inspector's page: the only sources that run in a browser. */
export const PAGE = "src/tools/inspector/page/";

/** The sources that run in Node.js. */
export function onServer(project: Project): readonly SourceFile[] {
  return shipped(project).filter(({ path }) => !path.startsWith(PAGE));
}

export function linesOf({ text }: Pick<SourceFile, "text">): number {
  return text.split("\n").length - 1;
}

/** The path an import leads to, from the root; undefined for a package. */
export function targetOf(file: SourceFile, specifier: string): string | undefined {
  return specifier.startsWith(".") ? posix.join(posix.dirname(file.path), specifier) : undefined;
}

/** The package a specifier names: `next` for `next/server`; undefined for a relative path or a Node module. */
export function packageOf(specifier: string): string | undefined {
  if (specifier.startsWith(".") || specifier.startsWith("node:")) return undefined;
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function filesUnder(root: string, folder: string, wanted = /\.(m?ts|mjs|tsx)$/): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (LEFT_OUT.has(entry.name)) return [];
    const path = posix.join(folder, entry.name);
    if (entry.isDirectory()) return filesUnder(root, path, wanted);
    return wanted.test(entry.name) ? [path] : [];
  });
}
