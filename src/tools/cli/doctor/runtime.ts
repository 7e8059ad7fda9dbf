/** Whether Node and the packages next to oncehook are of versions that it works with. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OncehookError } from "../../../errors.ts";
import { refuseIncompatible } from "../../../internal/sqlite-driver.ts";
import { type Finding, ok, problem } from "./finding.ts";

/** What of a package.json is looked at. */
export interface Manifest {
  readonly engines: { readonly node: string };
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** Where oncehook runs. */
export interface Runtime {
  readonly node: string;
  readonly manifest: Manifest;
  /** The version of an installed package; null when it is not. */
  readonly installed: (name: string) => string | null;
}

export function thisRuntime(): Runtime {
  const own = fileURLToPath(import.meta.resolve("oncehook/package.json"));
  return {
    node: process.versions.node,
    manifest: JSON.parse(readFileSync(own, "utf8")),
    installed: installedBeside(own),
  };
}

/** Looks where `file` would load a package from. */
export function installedBeside(file: string): Runtime["installed"] {
  const { resolve } = createRequire(file);
  return (name) => {
    // A package need not export its manifest, nor a main file.
    for (const folder of resolve.paths(name) ?? []) {
      try {
        return String(JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")).version);
      } catch {
        // Not there: the next folder.
      }
    }
    return null;
  };
}

export function runtimeFindings({ node, manifest, installed }: Runtime): Finding[] {
  return [nodeFinding(node, manifest.engines.node), ...peerFindings({ node, manifest, installed })];
}

function nodeFinding(node: string, engines: string): Finding {
  const oldest = versionOf(engines);
  if (isWithin(node, { from: oldest })) return ok("node", `Node ${node}`);
  return problem("node_too_old", `This is Node ${node}; oncehook needs ${oldest.join(".")}.`, "Upgrade Node.");
}

function peerFindings({ node, manifest, installed }: Runtime): Finding[] {
  const found: string[] = [];
  const problems: Finding[] = [];
  for (const [name, ranges] of Object.entries(manifest.peerDependencies)) {
    const version = installed(name);
    if (version === null) continue;
    found.push(`${name} ${version}`);
    const wrong = rangeProblem(name, version, ranges) ?? (name === "better-sqlite3" ? crash(version, node) : null);
    if (wrong !== null) problems.push(wrong);
  }
  return problems.length > 0 ? problems : [ok("packages", found.join(", ") || "no framework or driver is installed")];
}

function rangeProblem(name: string, version: string, ranges: string): Finding | null {
  const all = ranges.split("||").map((range) => caretRange(range.trim()));
  if (all.some((range) => isWithin(version, range))) return null;
  return problem(
    "package_out_of_range",
    `${name} ${version} is installed; oncehook works with ${ranges.replaceAll("||", "or")}.`,
    `npm install "${name}@${ranges.split("||")[0]?.trim()}"`,
  );
}

function crash(version: string, node: string): Finding | null {
  try {
    refuseIncompatible(version, node);
    return null;
  } catch (error) {
    if (!(error instanceof OncehookError)) throw error;
    const [, what = error.message, fix = ""] = /^(.*): run "(.*)"\.$/.exec(error.message) ?? [];
    return problem("package_crashes", `${what}.`, fix);
  }
}

// Versions of packages, and the one kind of range that our manifest has: `^1.2.3`.

export type Version = readonly [major: number, minor: number, patch: number];

export interface VersionRange {
  readonly from: Version;
  /** Not included. */
  readonly below?: Version;
}

/** The first version in a text: of `>=20.19.0`, 20.19.0. A pre-release counts as what it comes before. */
export function versionOf(text: string): Version {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return [Number(major), Number(minor), Number(patch)];
}

/** What `^1.2.3` allows: everything up to the next first number that is not 0. */
export function caretRange(text: string): VersionRange {
  const from = versionOf(text);
  const [major, minor, patch] = from;
  if (major > 0) return { from, below: [major + 1, 0, 0] };
  return { from, below: minor > 0 ? [0, minor + 1, 0] : [0, 0, patch + 1] };
}

export function isWithin(version: string, { from, below }: VersionRange): boolean {
  const given = versionOf(version);
  return order(given, from) >= 0 && (below === undefined || order(given, below) < 0);
}

function order(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
