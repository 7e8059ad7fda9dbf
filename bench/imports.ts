/** How long a process takes to load the package with the Express adapter, and whether that loads a framework or a driver. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { median } from "../test/support/statistics.ts";
import { type Group, type Limit, row } from "./rows.ts";

const LIMIT: Limit = { name: "import of oncehook and oncehook/express", target: 60, bound: "at most", unit: "ms" };
const ENTRIES = ["oncehook", "oncehook/express"];
const ROUNDS = 11;
const ROOT = join(import.meta.dirname, "..", "..");
const SCRIPT = `
  const start = performance.now();
  ${ENTRIES.map((entry) => `await import("${entry}");`).join(" ")}
  process.stdout.write(String(performance.now() - start));
`;

export const importGroup: Group = {
  names: [LIMIT.name],
  async run() {
    const times = Array.from({ length: ROUNDS }, importOnce);
    const peers = peersLoaded();
    const loaded = peers.length === 0 ? "no peer is loaded" : `loads ${peers.join(", ")}`;
    const timed = row(LIMIT, median(times), `fastest ${Math.min(...times).toFixed(0)} ms of ${ROUNDS}; ${loaded}`);
    return [{ ...timed, ok: timed.ok && peers.length === 0 }];
  },
};

function importOnce(): number {
  return Number(run("--input-type=module", "-e", SCRIPT));
}

function peersLoaded(): readonly string[] {
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const files = ENTRIES.flatMap((entry) => run(join(ROOT, "scripts", "trace-loads.mjs"), entry).split("\n"));
  if (!files.some((file) => file.endsWith("/dist/express.js"))) throw new Error("What is loaded was not seen.");
  return Object.keys(peerDependencies).filter((peer) => files.some((file) => file.includes(`/node_modules/${peer}/`)));
}

function run(...args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new Error(`The package could not be imported: ${stderr}`);
  return stdout;
}
