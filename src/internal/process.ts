/** This process: its identity among others on this machine, and whether it builds or develops the application. */

import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** What a shared inbox records about a process. */
export interface ProcessIdentity {
  /** Unique per call. */
  readonly id: string;
  /** Host name, boot id and process namespace: `pid` is meaningful only within them. */
  readonly host: string;
  readonly pid: number;
  /** Empty on systems that do not report it. */
  readonly pidStartedAt: string;
}

/** Identifies this process. */
export function thisInstance(): ProcessIdentity {
  const boot = tryRead(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  const namespace = tryRead(() => readlinkSync("/proc/self/ns/pid"));
  const host = [hostname(), boot, namespace].filter((part) => part !== "").join("/");
  return { id: randomUUID(), host, pid: process.pid, pidStartedAt: processStartedAt(process.pid) };
}

/** When process `pid` started, in clock ticks since boot; empty when it has ended or the system does not report it (not Linux). */
export function processStartedAt(pid: number): string {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // Field 2 is the program's name in parentheses and may contain spaces; the start time is field 22.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

/** Whether the process with `pid` that started at `startedAt` still runs on this host. */
export function processRuns(pid: number, startedAt: string): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // Any other error means that the process exists, for example as another user's.
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

/** True in `next build`. */
export function isBuilding(): boolean {
  return process.env.NEXT_PHASE === "phase-production-build";
}

/**
 * True when `NODE_ENV` is `development`, or when it is not set and standard error is a terminal. False in tests: vitest and Jest set
 * `NODE_ENV` to `test`, and `node --test` sets a variable of its own.
 */
export function isDevelopment(): boolean {
  const { NODE_ENV, NODE_TEST_CONTEXT } = process.env;
  if (NODE_ENV === "development") return true;
  return !NODE_ENV && NODE_TEST_CONTEXT === undefined && process.stderr.isTTY === true;
}

/** True in a build for undefined, null and `""`, which an unset variable becomes in `process.env.NAME ?? ""`. */
export function isUnsetInBuild(value: unknown): boolean {
  return (value ?? "") === "" && isBuilding();
}

/**
 * Runs `make` now, so that a mistake fails at construction. Only in a build, and only when one of `values` is unset, `make` runs at
 * each use instead and fails there.
 */
export function atFirstUse<T>(values: readonly unknown[], make: () => T): () => T {
  if (values.some(isUnsetInBuild)) return make;
  const made = make();
  return () => made;
}
