/** Ways in which a disk fails a process that has a file open on it: each begins, and ends when it is told to. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Database from "better-sqlite3";
import { straceIsMissing } from "./strace.ts";

const MIB = 1024 * 1024;
/** Of a disk that is to be full: much more than the log may hold before it is copied, as `minFreeBytes` sees to elsewhere. */
const DISK_BYTES = 192 * MIB;

/** What a fault is done to. */
export interface Victim {
  readonly pid: number;
  readonly path: string;
}

export interface Fault {
  readonly name: string;
  /** Why it cannot be done here; null when it can. */
  missing(): string | null;
  /** Resolves when it has begun, with what ends it. */
  begin(victim: Victim): Promise<() => Promise<void>>;
}

export const FAULTS: readonly Fault[] = [
  { name: "full disk", missing: noDisk, begin: fill },
  { name: "I/O errors", missing: straceIsMissing, begin: failing("EIO") },
  { name: "read-only disk", missing: straceIsMissing, begin: failing("EROFS") },
  { name: "foreign lock", missing: () => null, begin: lock },
];

/** A folder on a small disk of its own where that can be made, so that it can be full; else an ordinary one. */
export function makeFolder(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), "oncehook-disk-"));
  const isMounted = noDisk() === null && mount(folder);
  return {
    folder,
    remove() {
      if (isMounted) spawnSync("umount", [folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let missingDisk: string | null | undefined;

function noDisk(): string | null {
  if (missingDisk !== undefined) return missingDisk;
  const probe = mkdtempSync(join(tmpdir(), "oncehook-probe-"));
  missingDisk = mount(probe) ? null : "no disk of its own can be mounted (not root?)";
  spawnSync("umount", [probe]);
  rmSync(probe, { recursive: true, force: true });
  return missingDisk;
}

function mount(folder: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", folder]).status === 0;
}

async function fill({ path }: Victim): Promise<() => Promise<void>> {
  const filler = join(dirname(path), "filler");
  try {
    for (const chunk = Buffer.alloc(MIB); ; ) appendFileSync(filler, chunk);
  } catch {
    // What fitted in is kept, and nothing else fits in any more.
  }
  return async () => rmSync(filler);
}

/** By the kernel's word for it: each write and sync of the process fails, of all its files but the log of its commits' readers. */
function failing(error: "EIO" | "EROFS"): Fault["begin"] {
  return async ({ pid, path }) => {
    const calls = error === "EIO" ? "pwrite64,fdatasync,fsync" : "pwrite64,ftruncate";
    const files = [path, `${path}-wal`].flatMap((file) => ["-P", file]);
    const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}`, "-e", "signal=none"];
    const tracer = spawn("strace", ["-f", "-p", String(pid), ...files, ...inject, "-o", "/dev/null"], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    await attached(tracer);
    return async () => {
      const exited = once(tracer, "exit");
      tracer.kill("SIGINT");
      await exited;
    };
  };
}

async function attached(tracer: ChildProcess): Promise<void> {
  let said = "";
  tracer.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    said += chunk;
  });
  for (let waited = 0; waited < 200 && !said.includes("attached"); waited++) await sleep(25);
  if (!said.includes("attached")) throw new Error(`strace did not attach: ${said}`);
}

/** Another program's transaction that does not end. */
async function lock({ path }: Victim): Promise<() => Promise<void>> {
  const db = new Database(path, { timeout: 5_000 });
  db.exec("begin immediate");
  return async () => {
    db.exec("rollback");
    db.close();
  };
}
