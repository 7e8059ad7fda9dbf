/**
 * `npm run bench:page`: measures everything, keeps the result and writes docs/benchmarks.md with its pictures;
 * `npm run bench:page -- FILE` takes a result that was saved before: what `npm run bench -- --json` printed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { benchmarksPage } from "./benchmarks/page.ts";
import { readResult } from "./benchmarks/result.ts";

const DOCS = "docs";

const [file] = process.argv.slice(2);
const result = readResult(file === undefined ? await measure() : readFileSync(file, "utf8"));
mkdirSync(join(DOCS, "benchmarks"), { recursive: true });
writeFileSync(join(DOCS, "benchmarks", "result.json"), `${JSON.stringify(result)}\n`);
for (const [name, content] of benchmarksPage(result)) {
  if (content === null) rmSync(join(DOCS, name), { force: true });
  else writeFileSync(join(DOCS, name), content);
}
console.log(`${DOCS}/benchmarks.md: ${result.rows.length} rows`);

/** Shows what the run prints, and returns it. A missed row ends it with 1, and belongs on the page. */
async function measure(): Promise<string> {
  const child = spawn(process.execPath, [".build/bench/run.js", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    output += chunk;
    process.stdout.write(chunk);
  });
  await ended;
  return output;
}
