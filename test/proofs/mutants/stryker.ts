/** Runs Stryker, which npx brings, on a copy of the repository: it writes into the files that it mutates. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { LEFT_OUT, type Room } from "./rooms.ts";
import type { Report } from "./verdict.ts";

const run = promisify(execFile);

/** Of Stryker 10 none runs on Node 20; its runner has to find the very vitest that the tests import. */
const PACKAGES = ["@stryker-mutator/core@9.6.1", "@stryker-mutator/vitest-runner@9.6.1", "vitest@4.1.12"];
/** These come from where npx put them, all else from the repository. */
const FROM_NPX = ["vitest", "@vitest", "@stryker-mutator"];
const COPIED = ["src", "adapters", "test", "docs", "package.json", "tsconfig.json"];
const TESTS = "vitest.mutants.mjs";
const LONGEST_OUTPUT = 64 * 1024 * 1024;

/** The folder of packages that holds Stryker. Rejects when it can not be fetched. */
export async function fetchStryker(): Promise<string> {
  const empty = mkdtempSync(join(tmpdir(), "oncehook-npx-"));
  const packages = PACKAGES.flatMap((name) => ["--package", name]);
  try {
    const { stdout } = await run("npx", ["--yes", ...packages, "-c", "command -v stryker"], { cwd: empty });
    return join(stdout.trim(), "..", "..");
  } finally {
    rmSync(empty, { recursive: true, force: true });
  }
}

export interface StrykerTerms {
  /** Of the repository. */
  readonly root: string;
  /** As `fetchStryker` found it. */
  readonly packages: string;
  /** Also mutants of what runs once, when a module is loaded: each of them takes a new start of everything. */
  readonly withStatic: boolean;
}

/** Mutates a room's sources in a copy, which is gone afterwards. */
export async function mutate(room: Room, { root, packages, withStatic }: StrykerTerms): Promise<Report> {
  const copy = mkdtempSync(join(tmpdir(), `oncehook-mutants-${room.name}-`));
  try {
    for (const name of COPIED) cpSync(join(root, name), join(copy, name), { recursive: true });
    linkPackages(copy, { root, packages });
    writeFileSync(join(copy, TESTS), testsOf(room, copy));
    writeFileSync(join(copy, "stryker.json"), JSON.stringify(settingsOf(room, withStatic)));
    const stryker = join(packages, ".bin", "stryker");
    const env = { ...process.env, FULL: "1" };
    await run(stryker, ["run", "stryker.json"], { cwd: copy, env, maxBuffer: LONGEST_OUTPUT }).catch(
      (error: { readonly stdout?: string }) => {
        // Such as a test that fails before anything is mutated, because it takes too long.
        throw new Error(`Stryker gave up on ${room.name}: ${error.stdout?.slice(-2_000)}`, { cause: error });
      },
    );
    return JSON.parse(readFileSync(join(copy, "mutants.json"), "utf8")) as Report;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function linkPackages(copy: string, { root, packages }: { readonly root: string; readonly packages: string }): void {
  const modules = join(copy, "node_modules");
  mkdirSync(modules);
  const own = readdirSync(join(root, "node_modules")).filter((name) => !FROM_NPX.includes(name));
  for (const name of own) symlinkSync(join(root, "node_modules", name), join(modules, name));
  for (const name of FROM_NPX) symlinkSync(join(packages, name), join(modules, name));
}

function settingsOf({ sources }: Room, withStatic: boolean): object {
  return {
    ...{ mutate: [...sources, "!**/*.d.ts"], testRunner: "vitest", plugins: ["@stryker-mutator/vitest-runner"] },
    vitest: { configFile: TESTS, related: false },
    // TypeScript 7 has no compiler in JavaScript for it to ask.
    ...{ tsconfigFile: "none.json", checkers: [], disableTypeChecks: true, inPlace: true },
    ...{ coverageAnalysis: "perTest", ignoreStatic: !withStatic, concurrency: availableParallelism() },
    ...{ reporters: ["json"], jsonReporter: { fileName: "mutants.json" }, warnings: { slow: false } },
  };
}

/** As vitest.config.ts, for one room: `oncehook/x` is the source that a test also imports by its path. */
function testsOf({ tests }: Room, copy: string): string {
  const { compilerOptions } = JSON.parse(readFileSync(join(copy, "tsconfig.json"), "utf8")) as {
    readonly compilerOptions: { readonly paths: Readonly<Record<string, readonly [string]>> };
  };
  const aliases = Object.entries(compilerOptions.paths).map(
    ([entry, [source]]) =>
      `{ find: /^${entry.replaceAll("/", "\\/")}$/, replacement: ${JSON.stringify(join(copy, source))} }`,
  );
  return `export default {
    resolve: { alias: [${aliases.join(", ")}] },
    test: {
      include: ${JSON.stringify(tests)}, exclude: ${JSON.stringify(LEFT_OUT)},
      tags: [{ name: "full" }], isolate: false, testTimeout: 10_000,
    },
  };`;
}
