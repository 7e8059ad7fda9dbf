// Runs a TypeScript programme of this repository: `node scripts/run.mjs bench/run.ts --only verify`.
// Builds what is stale first, then loads the compiled file into this very process, so that signals reach the programme.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, root } from "./build.mjs";

const [name, ...rest] = process.argv.slice(2);
if (name === undefined) {
  process.stderr.write("usage: node scripts/run.mjs FILE.ts [arguments]\n");
  process.exit(2);
}
// Checks report a broken build themselves; everything else would run an older package without saying so.
const built = [build("dist"), build("tools")].every(Boolean);
if (!built && !name.startsWith("scripts/")) process.exit(1);
const compiled = join(root, ".build", name.replace(/\.ts$/, ".js"));
if (!existsSync(compiled)) {
  process.stderr.write(`${name} does not exist.\n`);
  process.exit(1);
}
process.argv = [process.argv[0], compiled, ...rest];
await import(pathToFileURL(compiled).href);
