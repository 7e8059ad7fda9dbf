/** The part that is guided by coverage: jsfuzz, which npx brings, in a folder of its own with the sources as it can read them. */
import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { signedPool } from "./signed.ts";

const run = promisify(execFile);

/** From where this file is compiled to. */
const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const JSFUZZ = ["--yes", "--package", "jsfuzz@1.0.15"];
/** How many requests an input becomes in guided-child.ts, which is loaded by jsfuzz only. */
const WAYS = 20;
const TARGET = "test/proofs/fuzz/guided-child";
/** Its statistics, for hours. */
const LONGEST_OUTPUT = 256 * 1024 * 1024;

export interface GuidedOutcome {
  readonly cases: number;
  readonly slowestMs: number;
  readonly growthMib: number;
  readonly problems: readonly string[];
}

/** Runs about so many cases; a text says why there were none. */
export async function fuzzGuided(cases: number): Promise<GuidedOutcome | string> {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-guided-"));
  try {
    const missing = await run("npx", [...JSFUZZ, "-c", "command -v jsfuzz"], { cwd: folder }).then(
      () => null,
      () => "npx can not fetch jsfuzz",
    );
    if (missing !== null) return missing;
    await compile(folder);
    writeSeeds(join(folder, "corpus"));
    const env = {
      ...process.env,
      FUZZ_INPUTS: `${Math.ceil(cases / WAYS)}`,
      FUZZ_OUTCOME: join(folder, "outcome.json"),
    };
    // Its other way to make inputs, the versifier, makes them so large from JSON that its own memory ends.
    const command = `jsfuzz --versifier=false --timeout 120 lib/${TARGET}.js corpus`;
    const ended = await run("npx", [...JSFUZZ, "-c", command], { cwd: folder, env, maxBuffer: LONGEST_OUTPUT }).catch(
      (error: { readonly stdout?: string }) => ({ stdout: error.stdout ?? String(error) }),
    );
    if (!existsSync(env.FUZZ_OUTCOME))
      return { ...NOTHING, problems: [`jsfuzz ended early: ${ended.stdout.slice(-2_000)}`] };
    return JSON.parse(readFileSync(env.FUZZ_OUTCOME, "utf8")) as GuidedOutcome;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const NOTHING = { cases: 0, slowestMs: 0, growthMib: 0 };

/** jsfuzz counts what is reached in what `require` loads: CommonJS. */
async function compile(folder: string): Promise<void> {
  const flags = ["--module", "commonjs", "--moduleResolution", "bundler", "--target", "es2023", "--types", "node"];
  const places = ["--rootDir", ROOT, "--outDir", join(folder, "lib")];
  const others = ["--ignoreConfig", "--noCheck", "--rewriteRelativeImportExtensions"];
  const compiler = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  await run(process.execPath, [compiler, `${TARGET}.ts`, ...flags, ...places, ...others], { cwd: ROOT });
  copyZod(join(folder, "node_modules", "zod"));
}

/** Counting what is reached in zod, a hundred times as much code as ours, would take nearly all of the time. */
function copyZod(to: string): void {
  const from = join(ROOT, "node_modules", "zod");
  cpSync(from, to, { recursive: true, filter: (file) => !/\.(?:[cm]?ts|js|md)$/.test(file) });
  for (const file of readdirSync(to, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".cjs")) continue;
    const text = readFileSync(join(to, file), "utf8");
    writeFileSync(join(to, file), `/* istanbul ignore file */\n${text}`);
  }
}

/** What it starts from: bodies, timestamps and signatures as they are. */
function writeSeeds(corpus: string): void {
  mkdirSync(corpus);
  const parts = signedPool().flatMap(({ body, timestamp, signature }) => [body, timestamp, signature]);
  parts
    .filter(({ length }) => length > 0)
    .forEach((part, index) => {
      writeFileSync(join(corpus, `${index}`), part);
    });
}
