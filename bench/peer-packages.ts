/** The packages that are compared with: from this folder's own package.json, installed by the first row that needs them. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// The program runs from .build/bench; the package.json lies beside its source.
const HOME = join(import.meta.dirname, "..", "..", "bench");
export const PACKAGE = join(HOME, "package.json");

/** Installs what is missing, and returns what loads them. */
export function peerPackages(): NodeJS.Require {
  const packages = Object.keys(JSON.parse(readFileSync(PACKAGE, "utf8")).dependencies);
  if (!packages.every((name) => existsSync(join(HOME, "node_modules", name)))) install();
  return createRequire(PACKAGE);
}

/** Loads a module that cannot be required, by its path in `node_modules`. */
export async function importPeer(path: string): Promise<Readonly<Record<string, unknown>>> {
  peerPackages();
  return import(pathToFileURL(join(HOME, "node_modules", path)).href);
}

function install(): void {
  console.log("Installing the packages to compare with …");
  const arguments_ = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  const { status } = spawnSync("npm", arguments_, { cwd: HOME, stdio: ["ignore", "ignore", "inherit"] });
  if (status !== 0) throw new Error(`npm ci in bench/ ended with ${status}.`);
}
