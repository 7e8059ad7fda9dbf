/**
 * The figures of the house, and those written down in figures.json. This project has no other counter. What counts:
 *
 * - Code lines: of `.ts`, `.tsx`, `.js` and `.css` in src and adapters, each line with a token on it (lines.ts). Contracts are apart.
 * - One request: a delivery of the messaging service's event through Express until its end is stored. A function counts, with or without a
 *   name, if each of five deliveries in a row ran it: then no timer counts. A file counts if one of its functions does (request.ts). The
 *   lines of a function are those of its source, from the first to the last.
 * - Private fields: the class with the most, alone, and with its state objects, which surface.ts defines.
 * - Exports: names of all entries of package.json. Option fields: of types called `…Options` that exports lead to, where they are declared.
 * - Flags: names of options over all commands of the command, each name once, because a reader learns it once.
 * - Lines of tests: all lines of the code in test, blanks and comments too.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { program } from "../../src/tools/cli/program.ts";
import { readProject } from "../architecture/project.ts";
import { sumsOf } from "./lines.ts";
import { type Ran, type WrittenFunction, writtenFunctions } from "./ran.ts";
import { type ClassFields, readSurface } from "./surface.ts";

export interface Figure {
  readonly name: string;
  /** Null where it cannot be measured. */
  readonly value: number | null;
  /** What the figure is made of, a line each, or why it is missing. */
  readonly parts: readonly string[];
}

/** The only one that a gate holds down. */
export const CODE_LINES = "code lines of src and adapters";

/** Of a function of a request: longer ones are listed and counted. */
const LONG_LINES = 40;
const WRITTEN_DOWN = "scripts/house/figures.json";

/** Takes some seconds: a server answers deliveries on each store. */
export function measure(root: string): readonly Figure[] {
  const { code, contracts, tests } = sumsOf(texts(root));
  const surface = readSurface(root, Object.values(readProject(root).entries));
  const flags = [...new Set(flagsOf(program()))].sort();
  return [
    { name: CODE_LINES, value: code, parts: [] },
    { name: "code lines of the contracts", value: contracts, parts: [] },
    ...requestFigures(root, "SQLite"),
    ...requestFigures(root, "Postgres"),
    mostFields("private fields of a class", surface.fields, ({ own }) => own),
    mostFields("private fields of a class with its state objects", surface.fields, ({ withState }) => withState),
    { name: "exports of the entries", value: surface.exports, parts: [] },
    { name: "fields of options", value: surface.options.length, parts: surface.options },
    { name: "flags of the command", value: flags.length, parts: flags },
    { name: "lines of tests", value: tests, parts: [] },
  ];
}

export function writtenDown(root: string): Readonly<Record<string, number>> {
  return JSON.parse(readFileSync(join(root, WRITTEN_DOWN), "utf8")) as Record<string, number>;
}

/** Keeps a figure that cannot be measured here. */
export function writeDown(root: string, figures: readonly Figure[]): void {
  const before = writtenDown(root);
  const after = Object.fromEntries(figures.map(({ name, value }) => [name, value ?? before[name]]));
  writeFileSync(join(root, WRITTEN_DOWN), `${JSON.stringify(after, null, 2)}\n`);
}

/** `541 exports of the entries (2 more than written down)`. */
export function line({ name, value, parts }: Figure, before: number | undefined): string {
  if (value === null) return `${"-".padStart(7)} ${name}: ${parts.join(" ")}`;
  const change = value - (before ?? value);
  const compared = change === 0 ? "" : ` (${Math.abs(change)} ${change > 0 ? "more" : "fewer"} than written down)`;
  return `${String(value).padStart(7)} ${name}${compared}`;
}

/** What the gate refuses: more code than is written down. */
export function problemOf(figures: readonly Figure[], before: Readonly<Record<string, number>>): string | null {
  const now = figures.find(({ name }) => name === CODE_LINES)?.value ?? Number.NaN;
  const most = before[CODE_LINES] ?? Number.NaN;
  if (now <= most) return null;
  return `${now} code lines are more than the ${most} of ${WRITTEN_DOWN}. Remove some, or write the new sum down and say why in the commit: node scripts/run.mjs scripts/house.ts --write`;
}

/** What git knows or would add: generated files do not count. */
function texts(root: string): ReadonlyMap<string, string> {
  const args = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "src", "adapters", "test"];
  const listed = execFileSync("git", args, { cwd: root, encoding: "utf8" }).split("\n");
  const present = listed.filter((path) => path !== "" && existsSync(join(root, path)));
  return new Map(present.map((path) => [path, readFileSync(join(root, path), "utf8")]));
}

function requestFigures(root: string, store: "SQLite" | "Postgres"): readonly Figure[] {
  const names = ["functions", "files", `functions over ${LONG_LINES} lines`].map(
    (what) => `${what} of a request, ${store}`,
  );
  const traced = trace(root, store);
  if (typeof traced === "string") return names.map((name) => ({ name, value: null, parts: [traced] }));
  const places = traced.map(({ place, lines }) => `${place} (${lines} lines)`);
  const files = [...new Set(traced.map(({ file }) => file))].sort();
  const long = places.filter((_, index) => (traced[index]?.lines ?? 0) > LONG_LINES);
  return [places, files, long].map((parts, index) => ({ name: names[index] ?? "", value: parts.length, parts }));
}

/** Returns why not, where there is no such store. */
function trace(root: string, store: string): readonly WrittenFunction[] | string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [join(root, ".build/scripts/house/request.js"), store.toLowerCase()],
    { cwd: root, encoding: "utf8", maxBuffer: 1 << 26 },
  );
  if (status === 3) return `not measured, because there is no ${store}: ${stderr.trim()}`;
  if (status !== 0) throw new Error(`no request was traced on ${store}: ${stderr}`);
  return writtenFunctions(JSON.parse(stdout) as readonly Ran[], (path) => {
    const file = path.replace(/\.js$/, ".ts");
    const compiled = readFileSync(join(root, ".build", path), "utf8");
    return { file, compiled, source: readFileSync(join(root, file), "utf8") };
  });
}

function mostFields(name: string, classes: readonly ClassFields[], count: (each: ClassFields) => number): Figure {
  const sorted = [...classes].sort((a, b) => count(b) - count(a));
  const parts = sorted.slice(0, 10).map((each) => `${each.place}: ${count(each)}`);
  return { name, value: Math.max(...classes.map(count)), parts };
}

function flagsOf(command: Command): readonly string[] {
  return [...command.options.map(({ long, short }) => long ?? short ?? ""), ...command.commands.flatMap(flagsOf)];
}
