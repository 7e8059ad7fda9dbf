/** The gates of docs/openapi.json: foreign tools hold it against OpenAPI's own schema, lint it, and generate types that must be ours. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Gate, type GateResult, problemsOf, run, tool } from "./gate.ts";

/** By npx, as the linter is: none of them is needed to work on the package. */
const VALIDATOR = "@seriousme/openapi-schema-validator@2.11.0";
const LINTER = "@redocly/cli@2.77.0";
const GENERATOR = "openapi-typescript@7.13.0";

const DOCUMENT = "docs/openapi.json";
const TYPES_FOLDER = ".build/openapi";
const DRIFT = "test/consumers/openapi-types.ts";

export const openapi: Gate = {
  name: "openapi",
  async run({ root, temp }) {
    const operations = operationCount(await readFile(join(root, DOCUMENT), "utf8"));
    return Promise.all([validated(root, operations), linted(root, operations), generated(root, temp)]);
  },
};

/** Of paths and webhooks. */
function operationCount(text: string): number {
  const { paths, webhooks } = JSON.parse(text) as Record<"paths" | "webhooks", Record<string, object>>;
  return [...Object.values(paths), ...Object.values(webhooks)].flatMap((methods) => Object.keys(methods)).length;
}

/** It prints what it found as JSON. */
async function validated(root: string, operations: number): Promise<GateResult> {
  const finished = await run("npx", ["--yes", `--package=${VALIDATOR}`, "validate-api", DOCUMENT], { cwd: root });
  const valid = /^\{\s*"valid": true\s*\}$/.test(finished.stdout.trim());
  const problems = valid ? problemsOf(finished) : [finished.output.trim().slice(0, 4_000)];
  return { name: "openapi: schema", count: valid ? operations : 0, unit: "operations", problems };
}

async function linted(root: string, operations: number): Promise<GateResult> {
  const args = ["lint", DOCUMENT, "--config", "scripts/gates/redocly.yaml", "--format", "stylish"];
  const env = { ...process.env, NO_COLOR: "1", REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const finished = await run("npx", ["--yes", LINTER, ...args], { cwd: root, env });
  const looked = finished.output.includes(`${DOCUMENT}: validated`);
  const problems = problemsOf(finished).filter((line) => !/[║╔╚]/.test(line));
  return { name: "openapi: lint", count: looked ? operations : 0, unit: "operations", problems };
}

/** The generated types must compile with our compiler, and the comparison with our own types as well. */
async function generated(root: string, temp: string): Promise<GateResult> {
  const name = "openapi: generated types";
  await mkdir(join(root, TYPES_FOLDER), { recursive: true });
  const made = await run("npx", ["--yes", GENERATOR, DOCUMENT, "-o", `${TYPES_FOLDER}/types.ts`], { cwd: root });
  if (made.code !== 0) return { name, count: 0, unit: "comparisons", problems: problemsOf(made) };
  const project = join(temp, "tsconfig.openapi.json");
  const compilerOptions = { noEmit: true, rootDir: root, typeRoots: [join(root, "node_modules/@types")] };
  const config = { extends: join(root, "tsconfig.json"), compilerOptions, include: [], files: [join(root, DRIFT)] };
  await writeFile(project, JSON.stringify(config));
  const checked = await tool(root, "tsc", ["-p", project, "--listFiles"]);
  const read = [DRIFT, `${TYPES_FOLDER}/types.ts`].every((file) => checked.stdout.includes(join(root, file)));
  const comparisons = (await readFile(join(root, DRIFT), "utf8")).match(/^true satisfies /gm) ?? [];
  const errors = checked.stdout.split("\n").filter((line) => line !== "" && !line.startsWith("/"));
  return {
    name,
    count: read ? comparisons.length : 0,
    unit: "comparisons",
    problems: checked.code === 0 ? [] : errors,
  };
}
