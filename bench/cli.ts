/** The command as a person meets it: how soon it explains itself, and how soon it shows the newest of a million events. */
import { spawnSync } from "node:child_process";
import { closeSync, fsyncSync, openSync } from "node:fs";
import { join } from "node:path";
import { median } from "../test/support/statistics.ts";
import { fillInbox } from "./filled.ts";
import { inDirectory } from "./http.ts";
import { type Group, type Limit, type Row, row } from "./rows.ts";

const EVENTS = 1_000_000;
const ROUNDS = 11;
const COMMAND = join(import.meta.dirname, "..", "..", "dist", "cli.js");

const HELP: Limit = { name: "command: --help", target: 150, bound: "at most", unit: "ms" };
const LIST: Limit = { name: "command: inbox ls on 1,000,000 events", target: 300, bound: "at most", unit: "ms" };

export const cliGroup: Group = {
  names: [HELP.name, LIST.name],
  async run(wanted) {
    const rows: Row[] = [];
    if (wanted.has(HELP.name)) rows.push(measured(HELP, ["--help"], "Usage: oncehook"));
    if (wanted.has(LIST.name)) rows.push(await inDirectory(list));
    return rows;
  },
};

async function list(directory: string): Promise<Row> {
  const path = join(directory, "inbox.db");
  await fillInbox(path, { handled: EVENTS, parked: 0, ids: "ordered" });
  // The command ends with an fsync, which is not to wait for the disk to take what the filling left in memory.
  const file = openSync(path, "r+");
  fsyncSync(file);
  closeSync(file);
  return measured(LIST, ["inbox", "ls", "--store", path], `\n${EVENTS + 2} `);
}

/** From the start of the process to its end. */
function measured(limit: Limit, args: readonly string[], expected: string): Row {
  const times = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    const { stdout, stderr, status } = spawnSync(process.execPath, [COMMAND, ...args], { encoding: "utf8" });
    if (status !== 0 || !stdout.includes(expected)) throw new Error(`"${args.join(" ")}" failed: ${stdout}${stderr}`);
    return performance.now() - startedAt;
  });
  return row(limit, median(times), `fastest ${Math.min(...times).toFixed(0)} ms of ${ROUNDS}`);
}
