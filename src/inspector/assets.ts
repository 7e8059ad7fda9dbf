/** The page's files, read once. Only what is listed here can be asked for, so no path leads anywhere else. */
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join, relative, sep } from "node:path";
import { SetupError } from "../errors.ts";
import { ownFile, resolveFrom } from "../internal/package.ts";
import { type HeaderSource, readHeader } from "../signature/verify.ts";
import type { InspectorAnswer } from "./http.ts";

export interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
  /** Strong: of exactly these bytes. */
  readonly etag: string;
}

export interface Assets {
  readonly page: Asset;
  /** By what follows `assets/` in the path: `parts/format.js`. */
  readonly files: ReadonlyMap<string, Asset>;
}

const PAGE = "index.html";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * @param path - where the inspector is mounted, which stands in the page for `{{path}}`; `{{modules}}` stands for all that it imports
 * @throws SetupError where the files are not: a bundler has taken the code away from them
 */
export function loadAssets(path: string, folder = pageFolder()): Assets {
  const files = new Map<string, Asset>();
  for (const name of namesIn(folder)) {
    const type = TYPES[extname(name)];
    if (type !== undefined) files.set(name, assetOf(type, readFileSync(join(folder, name))));
  }
  const page = files.get(PAGE);
  if (page === undefined) throw missing();
  files.delete(PAGE);
  const text = page.bytes
    .toString()
    .replace("{{modules}}", preloadsOf([...files.keys()]))
    .replaceAll("{{path}}", path);
  return { page: assetOf(page.type, Buffer.from(text)), files };
}

/** Beside this file. A bundle has no such folder: there, the one of the installed package. */
function pageFolder(): string {
  const file = ownFile();
  const beside = join(dirname(file), "page");
  if (existsSync(join(beside, PAGE))) return beside;
  try {
    return join(dirname(resolveFrom(file, "oncehook/inspector")), "page");
  } catch {
    return beside;
  }
}

/** Without them a browser learns of a module only from the one that imports it, one round trip after the other. */
function preloadsOf(names: readonly string[]): string {
  const modules = names.filter((name) => name.endsWith(".js")).toSorted();
  return modules.map((name) => `<link rel="modulepreload" href="{{path}}/assets/${name}" />`).join("\n    ");
}

/** With slashes, on every system. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join("/"));
  } catch {
    throw missing();
  }
}

function missing(): SetupError {
  const message =
    'The inspector\'s page is not beside its code: keep oncehook out of the bundle, or install it where the bundle runs (in Next.js: serverExternalPackages: ["oncehook"]).';
  return new SetupError("incomplete_package", message);
}

function assetOf(type: string, bytes: Buffer): Asset {
  return { type, bytes, etag: `"${hash("sha256", bytes, "base64url").slice(0, 27)}"` };
}

// The answers that carry the page and its files.

/** Never from a cache: it is small, and who may see it is asked each time. */
export function pageAnswer(page: Asset): InspectorAnswer {
  return { status: 200, headers: headersOf(page), body: page.bytes };
}

/** A browser may keep a file, if it asks each time whether that is still the one. */
export function fileAnswer(file: Asset, headers: HeaderSource): InspectorAnswer {
  const caching = { "cache-control": "no-cache", etag: file.etag };
  if (isNamed(file.etag, readHeader(headers, "if-none-match"))) return { status: 304, headers: caching, body: "" };
  return { status: 200, headers: { ...headersOf(file), ...caching }, body: file.bytes };
}

/** The same head, and nothing behind it. */
export function headOnly(answer: InspectorAnswer): InspectorAnswer {
  return { ...answer, body: "" };
}

function headersOf({ type, bytes }: Asset): Record<string, string> {
  return { "content-type": type, "content-length": `${bytes.length}` };
}

/** Proxies that compress make a weak one of it, which names the same file (RFC 9110, 13.1.2). */
function isNamed(etag: string, ifNoneMatch: string | undefined): boolean {
  const names = ifNoneMatch?.split(",").map((name) => name.trim().replace(/^W\//, "")) ?? [];
  return names.includes(etag) || names.includes("*");
}
