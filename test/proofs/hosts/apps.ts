/** The applications of `npm run prove -- hosts`: what the guide tells people to write for each host, compiled as it stands there. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { examplesOf } from "../../../scripts/docs/blocks.ts";

// The programme runs from .build/test/proofs/hosts; the packages lie beside its source.
const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
const HOME = join(ROOT, "test", "proofs", "hosts");
const PACKAGES = join(HOME, "node_modules");
const FOLDER = join(ROOT, ".build", "hosts");
const GUIDE = "docs/guides/receiving.md";
/** What names of examples in the guide begin with. */
const PREFIX = "docs-guides-receiving-md-";
const MODULES = { "package.json": { type: "module" }, "tsconfig.json": tsconfig() };

/** An application whose author did not follow the guide; the right answers do not depend on it. */
interface Variant {
  readonly of: string;
  readonly replaced: readonly (readonly [before: string, after: string])[];
}

const VARIANTS: Readonly<Record<string, Variant>> = {
  "nestjs-passthrough": { of: "nestjs-controller", replaced: [["@Res()", "@Res({ passthrough: true })"]] },
  "koa-responding": { of: "koa", replaced: [["ctx.respond = false; // the receiver answers", ""]] },
};
/** The control: the host answers first. */
export const CARELESS = "koa-not-awaited";
const CONTROL: Variant = {
  of: "koa",
  replaced: [
    ["ctx.respond = false; // the receiver answers", ""],
    ["await hook(", "void hook("],
  ],
};

export interface Apps {
  readonly servers: readonly string[];
  readonly functions: readonly string[];
  /** What the compiler has against them, or the installation. */
  readonly problems: readonly string[];
}

/** Installs the hosts where one is missing, and compiles the applications. */
export function prepareApps(say: (line: string) => void): Apps {
  const sources = sourcesFrom(readFileSync(join(ROOT, GUIDE), "utf8"));
  const names = [...sources.keys()].filter((name) => name !== "receiver" && name !== CARELESS);
  const problems = install(say);
  if (problems.length === 0) problems.push(...compile(sources));
  const isFunction = (name: string) => name.startsWith("lambda-");
  return { servers: names.filter((name) => !isFunction(name)), functions: names.filter(isFunction), problems };
}

/** The compiled file of an application. */
export function compiledOf(name: string): string {
  return join(FOLDER, "out", `${name}.js`);
}

function sourcesFrom(guide: string): Map<string, string> {
  const isOurs = (name: string) => name === `${PREFIX}receiver`;
  const examples = examplesOf(GUIDE, guide).filter(({ name, isForHosts }) => isForHosts === true || isOurs(name));
  const sources = new Map(examples.map(({ name, code }) => [name.slice(PREFIX.length), code]));
  for (const [name, variant] of Object.entries({ ...VARIANTS, [CARELESS]: CONTROL }))
    sources.set(name, changed(sources.get(variant.of) ?? "", variant));
  // Two majors of one package: the older is installed under another name.
  sources.set("h3-1", (sources.get("h3-1") ?? "").replace('from "h3"', 'from "h3-1"'));
  return sources;
}

function changed(code: string, { of, replaced }: Variant): string {
  return replaced.reduce((text, [before, after]) => {
    if (!text.includes(before)) throw new Error(`The guide's example "${of}" has no "${before}" to change.`);
    return text.replace(before, after);
  }, code);
}

function install(say: (line: string) => void): string[] {
  const packages = Object.keys(JSON.parse(readFileSync(join(HOME, "package.json"), "utf8")).dependencies);
  if (!packages.every((name) => existsSync(join(PACKAGES, name)))) {
    say("Installing the hosts …");
    const arguments_ = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
    const { status } = spawnSync("npm", arguments_, { cwd: HOME, stdio: ["ignore", "ignore", "inherit"] });
    if (status !== 0) return [`npm ci in test/proofs/hosts ended with ${status}`];
  }
  // A copy and no link: what it imports of a framework is then the host's own, as in a real application.
  const own = join(PACKAGES, "oncehook");
  rmSync(own, { recursive: true, force: true });
  mkdirSync(own);
  for (const part of ["package.json", "dist"]) cpSync(join(ROOT, part), join(own, part), { recursive: true });
  return [];
}

function compile(sources: ReadonlyMap<string, string>): string[] {
  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  symlinkSync(PACKAGES, join(FOLDER, "node_modules"), "dir");
  for (const [name, content] of Object.entries(MODULES)) writeFileSync(join(FOLDER, name), JSON.stringify(content));
  for (const [name, code] of sources) writeFileSync(join(FOLDER, `${name}.ts`), code);
  const tsc = join(createRequire(import.meta.url).resolve("typescript/package.json"), "..", "bin", "tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-p", FOLDER], { encoding: "utf8" });
  return status === 0 ? [] : [`the guide's examples do not compile: ${stdout}`];
}

/** A user's: strict, and with the decorators that NestJS needs. */
function tsconfig() {
  const compilerOptions = {
    target: "ES2023",
    lib: ["ES2023", "DOM"],
    module: "NodeNext",
    types: ["node"],
    strict: true,
    noUncheckedIndexedAccess: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    skipLibCheck: true,
    rootDir: ".",
    outDir: "out",
  };
  return { compilerOptions, include: ["*.ts"] };
}
