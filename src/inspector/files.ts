/** The answers that carry the page and its files. */
import { type HeaderSource, readHeader } from "../signature/headers.ts";
import type { Asset } from "./assets.ts";
import type { InspectorAnswer } from "./http.ts";

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
