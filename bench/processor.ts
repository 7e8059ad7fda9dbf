/** How much processor time has been used: by a Postgres server, and on the whole machine. */
import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import type { PostgresServer } from "../test/stores/postgres/server.ts";

/** Linux counts in hundredths of a second on every machine that Node runs on. */
const TICKS_PER_SECOND = 100;

/** Seconds since the server started, of all its processes, also of those that have ended. NaN where the system is not Linux. */
export function processorOf({ directory }: PostgresServer): number {
  if (process.platform !== "linux") return Number.NaN;
  const [first = ""] = readFileSync(join(directory, "data", "postmaster.pid"), "utf8").split("\n");
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && statOf(name)?.parent === first);
  const ticks = children.reduce((sum, pid) => sum + (statOf(pid)?.own ?? 0), 0);
  const server = statOf(first);
  return (ticks + (server?.own ?? Number.NaN) + (server?.ended ?? 0)) / TICKS_PER_SECOND;
}

/** Seconds since the machine started, of all cores and whoever used them. */
export function processorOfAll(): number {
  const busy = cpus().map(({ times }) => times.user + times.nice + times.sys + times.irq);
  return busy.reduce((sum, ms) => sum + ms, 0) / 1000;
}

/** Null for a process that has just ended. */
function statOf(pid: string): { readonly parent: string; readonly own: number; readonly ended: number } | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return null;
  }
  // The program's name, in parentheses, may hold anything.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [user, system, endedUser, endedSystem] = fields.slice(11, 15).map(Number);
  return {
    parent: fields[1] ?? "",
    own: (user ?? 0) + (system ?? 0),
    ended: (endedUser ?? 0) + (endedSystem ?? 0),
  };
}
