/** What tells this process from others of this machine, and from a later one with the same pid. */
import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** The facts of a process that survive it in a shared inbox. */
export interface ProcessIdentity {
  /** Unique per call. */
  readonly id: string;
  /** Host name, boot and process namespace: only there does `pid` mean anything. */
  readonly host: string;
  readonly pid: number;
  /** Empty where the system does not tell. */
  readonly pidStartedAt: string;
}

/** Identifies this process. */
export function thisInstance(): ProcessIdentity {
  const boot = tryRead(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  const namespace = tryRead(() => readlinkSync("/proc/self/ns/pid"));
  const host = [hostname(), boot, namespace].filter((part) => part !== "").join("/");
  return { id: randomUUID(), host, pid: process.pid, pidStartedAt: processStartedAt(process.pid) };
}

/** When process `pid` started, in clock ticks since boot; empty when it is gone or the system does not tell (not Linux). */
export function processStartedAt(pid: number): string {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The second field is the program's name in parentheses and may hold spaces; the start is field 22.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Whether the process that was `pid`, started at `startedAt`, still runs on this host. */
export function processRuns(pid: number, startedAt: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Anything else than "no such process", such as a process of another user's, is alive.
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false;
  }
  const now = processStartedAt(pid);
  return startedAt === "" || now === "" || now === startedAt;
}

function tryRead(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
