/** Loads better-sqlite3 when it is needed, after a look at its version. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { SetupError } from "../errors.ts";
import type { SqliteDriver } from "./sqlite-driver.ts";

const PACKAGE = "better-sqlite3";
export const INSTALL = "npm install better-sqlite3@12";

/** Reads the version first: 13 on Node 20 ends the process with a segmentation fault at open. */
export async function loadBetterSqlite3(version: string): Promise<SqliteDriver> {
  refuseIncompatible(version, process.versions.node);
  try {
    const loaded = await import("better-sqlite3");
    return loaded.default;
  } catch (cause) {
    throw new SetupError(
      "incompatible_peer",
      `better-sqlite3 is installed but does not load: run "npm rebuild better-sqlite3".`,
      {
        cause,
      },
    );
  }
}

/** Throws for a version of better-sqlite3 that is known to crash on this version of Node. */
export function refuseIncompatible(driverVersion: string, nodeVersion: string): void {
  const driverMajor = Number.parseInt(driverVersion, 10);
  const nodeMajor = Number.parseInt(nodeVersion, 10);
  if (driverMajor >= 12 && !(driverMajor >= 13 && nodeMajor < 22)) return;
  const message = `better-sqlite3 ${driverVersion} does not work on Node ${nodeVersion}: run "${INSTALL}".`;
  throw new SetupError("incompatible_peer", message, { fields: { driverVersion, nodeVersion } });
}

/** Null when it is not installed. */
export function installedVersion(): string | null {
  const require = createRequire(import.meta.url);
  try {
    const manifest = JSON.parse(readFileSync(manifestOf(require.resolve(PACKAGE)), "utf8"));
    return String(manifest.version);
  } catch {
    return null;
  }
}

/** Found from the package's main file: a later version may no longer export its manifest. */
function manifestOf(mainFile: string): string {
  const folder = mainFile.slice(0, mainFile.lastIndexOf(PACKAGE) + PACKAGE.length);
  return join(folder, "package.json");
}
