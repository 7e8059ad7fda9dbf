/** Where a path lies, and whose error shape its answers have. */
import type { Contract } from "./responses.ts";
import { TOKEN_PATH } from "./route.ts";

export interface ApiPlace {
  readonly contract: Contract;
  /** Behind the base path; null outside of it. */
  readonly path: string | null;
}

export type Place = ApiPlace | { readonly contract: "control"; readonly path: string };

export function placeOf(pathname: string, basePath: string): Place {
  if (pathname !== basePath && !pathname.startsWith(`${basePath}/`)) return { contract: "core", path: null };
  const path = pathname.slice(basePath.length);
  if (path === "/_emulator" || path.startsWith("/_emulator/")) return { contract: "control", path };
  return { contract: path === TOKEN_PATH ? "token" : "core", path };
}
