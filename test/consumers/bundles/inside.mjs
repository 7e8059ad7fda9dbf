// better-sqlite3 inside of a bundle: the message says what to do, and what it says works.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { build } from "esbuild";

const banner = 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);';
const options = { bundle: true, platform: "node", logLevel: "error" };
const env = { PATH: process.env.PATH, WEBHOOK_SECRET: "a-consumer-secret-of-32-characters" };
const run = (file) => spawnSync(process.execPath, [file], { encoding: "utf8", env, timeout: 30_000 });

for (const [format, js] of [
  ["cjs", ""],
  ["esm", banner],
]) {
  const outfile = `out/inside.${format === "cjs" ? "cjs" : "mjs"}`;
  await build({ ...options, entryPoints: ["app.js"], format, outfile, banner: { js } });
  const { status, stderr } = run(outfile);
  assert.match(stderr, /keep better-sqlite3 external or pass `driver`/);
  assert.equal(status, 1);
  console.log(`ok ${outfile} says what to do`);
}

copyFileSync("node_modules/better-sqlite3/build/Release/better_sqlite3.node", "better_sqlite3.node");
await build({ ...options, entryPoints: ["inside.js"], format: "cjs", outfile: "out/driver.cjs" });
const { stdout, stderr } = run("out/driver.cjs");
assert.equal(stdout.trim(), "opened", stderr);
console.log("ok a driver of one's own opens from inside of the bundle");
