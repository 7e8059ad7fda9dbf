/** The page's files, read once. Only these files are served, so a path cannot lead anywhere else. */
import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { SetupError } from "../../errors.ts";
import { ownFile, resolveFrom } from "../../internal/package.ts";
import { type HeaderSource, readHeader } from "../../sources/headers.ts";
import type { InspectorAnswer } from "./http.ts";

export interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
  /** Strong: it changes with every byte. */
  readonly etag: string;
}

export interface Assets {
  readonly page: Asset;
  /** By what follows `assets/` in the path: `main.js`. */
  readonly files: ReadonlyMap<string, Asset>;
}

const PAGE = "index.html";
const SCRIPT = "main.js";
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * @param path - where the inspector is mounted; replaces `{{path}}` in the page
 * @throws SetupError if the files are missing: a bundler has moved the code away from them
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
  const text = page.bytes.toString().replaceAll("{{path}}", path);
  return { page: assetOf(page.type, Buffer.from(text)), files };
}

/** The built page: next to this file. An application's bundle has no such folder; then it is that of the installed package. */
function pageFolder(): string {
  const file = ownFile();
  const beside = join(dirname(file), "page");
  if (existsSync(join(beside, SCRIPT))) return beside;
  try {
    return join(dirname(resolveFrom(file, "oncehook/inspector")), "page");
  } catch {
    return beside;
  }
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    throw missing();
  }
}

function missing(): SetupError {
  const message =
    'The files of the inspector\'s page are missing: keep oncehook out of the bundle, or install it where the bundle runs (in Next.js: serverExternalPackages: ["oncehook"]).';
  return new SetupError("incomplete_package", message);
}

function assetOf(type: string, bytes: Buffer): Asset {
  return { type, bytes, etag: `"${hash("sha256", bytes, "base64url").slice(0, 27)}"` };
}

/** Never from a cache: it is small, and the right to see it is checked each time. */
export function pageAnswer(page: Asset): InspectorAnswer {
  return { status: 200, headers: headersOf(page), body: page.bytes };
}

/** A browser may keep a file, but must ask each time whether it has changed. */
export function fileAnswer(file: Asset, headers: HeaderSource): InspectorAnswer {
  const caching = { "cache-control": "no-cache", etag: file.etag };
  if (isNamed(file.etag, readHeader(headers, "if-none-match"))) return { status: 304, headers: caching, body: "" };
  return { status: 200, headers: { ...headersOf(file), ...caching }, body: file.bytes };
}

/** The same headers without the body. */
export function headOnly(answer: InspectorAnswer): InspectorAnswer {
  return { ...answer, body: "" };
}

function headersOf({ type, bytes }: Asset): Record<string, string> {
  return { "content-type": type, "content-length": `${bytes.length}` };
}

/** Proxies that compress make the ETag a weak one, which names the same file (RFC 9110, 13.1.2). */
function isNamed(etag: string, ifNoneMatch: string | undefined): boolean {
  const names = ifNoneMatch?.split(",").map((name) => name.trim().replace(/^W\//, "")) ?? [];
  return names.includes(etag) || names.includes("*");
}
