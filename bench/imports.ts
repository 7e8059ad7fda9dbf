/** How long a process takes to load the package with the Express adapter. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { type Group, type Limit, median, row } from "./rows.ts";

const LIMIT: Limit = { name: "import of oncehook and oncehook/express", target: 60, bound: "at most", unit: "ms" };
const ROUNDS = 11;
const ROOT = join(import.meta.dirname, "..", "..");
const SCRIPT = `
  const start = performance.now();
  await import("oncehook");
  await import("oncehook/express");
  process.stdout.write(String(performance.now() - start));
`;

export const importGroup: Group = {
  names: [LIMIT.name],
  async run() {
    const times = Array.from({ length: ROUNDS }, importOnce);
    return [row(LIMIT, median(times), `fastest ${Math.min(...times).toFixed(0)} ms of ${ROUNDS}`)];
  },
};

function importOnce(): number {
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", SCRIPT], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`The package could not be imported: ${stderr}`);
  return Number(stdout);
}
