// Vitest, without any configuration.
import { spawnSync } from "node:child_process";

const { status, stdout, stderr } = spawnSync("node_modules/.bin/vitest", ["run"], { encoding: "utf8" });
if (status !== 0 || !/Tests\s.*1 passed/.test(stdout)) throw new Error(stdout + stderr);
console.log("ok the test of the guide passes");
