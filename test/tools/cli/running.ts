/** The built command as a real process, in an empty folder and with nothing but a path in its environment. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Fixtures } from "../../../src/messaging/emulator/index.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const MANIFEST: { version: string; bin: { oncehook: string } } = JSON.parse(
  readFileSync(join(ROOT, "package.json"), "utf8"),
);

export const VERSION = MANIFEST.version;
/** Compiled by the tests' global set-up. */
export const COMMAND = join(ROOT, MANIFEST.bin.oncehook);

/** How long an end may take before it is asked for more firmly. */
const PATIENCE_MS = 1_000;

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly output: string;
  readonly errors: string;
}

/** The first line with `--json`. */
export interface Announced {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly webhookSecret: string;
  readonly fixtures: Fixtures;
}

export class Running {
  /** Where it runs; gone with the test. */
  readonly folder = mkdtempSync(join(tmpdir(), "oncehook-command-"));
  readonly #child: ChildProcess;
  readonly #exit: Promise<Exit>;
  #output = "";
  #errors = "";
  #look: () => void = () => {};

  /** `oncehook` with these arguments; ended with the test if it still runs. What it prints is read here, or goes to the file `stdout`. */
  constructor(args: readonly string[], environment: NodeJS.ProcessEnv = {}, stdout: "pipe" | number = "pipe") {
    const { PATH, HOME } = process.env;
    this.#child = spawn(process.execPath, [COMMAND, ...args], {
      cwd: this.folder,
      env: { PATH, HOME, ...environment },
      stdio: ["pipe", stdout, "pipe"],
    });
    this.#child.stdout?.on("data", (chunk) => {
      this.#output += chunk;
      this.#look();
    });
    this.#child.stderr?.on("data", (chunk) => (this.#errors += chunk));
    this.#exit = once(this.#child, "close").then(([code, signal]) => {
      this.#look();
      return { code, signal, output: this.#output, errors: this.#errors };
    });
    onTestFinished(async () => {
      await this.end();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** Ends it with all that it started, however stubborn: SIGKILL, which leaves the command beside it running, comes last. */
  async end(): Promise<void> {
    const groups = this.#hasEnded() ? [] : groupsUnder(this.#child.pid);
    for (const name of ["SIGTERM", "SIGTERM", "SIGKILL"] as const) {
      if (this.#hasEnded()) return;
      if (name === "SIGKILL") groups.forEach(killGroup);
      this.#child.kill(name);
      await Promise.race([this.#exit, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref())]);
    }
  }

  #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  get output(): string {
    return this.#output;
  }

  /** How it ended, once it has. */
  get exit(): Promise<Exit> {
    return this.#exit;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Resolves with what `pattern` finds in the output, as soon as it does. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.#output);
      if (found !== null) return found;
      if (this.#hasEnded()) throw new Error(`It ended without ${pattern}: ${this.#output}${this.#errors}`);
      await new Promise<void>((resolve) => {
        this.#look = resolve;
      });
    }
  }

  /** The first line, parsed. */
  async announced(): Promise<Announced> {
    const [, line = ""] = await this.printed(/^(.*)\n/);
    return JSON.parse(line);
  }
}

/** `oncehook` with these arguments, to its end. */
export function runToEnd(args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Exit> {
  return new Running(args, environment).exit;
}

/** The process groups of what a process started that are not its own. */
function groupsUnder(pid: number | undefined): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "ppid=,pid=,pgid="], { encoding: "utf8" });
  const rows = (stdout ?? "").split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  return rows.flatMap(([parent, child, group]) => (parent === pid && child === group ? [child as number] : []));
}

function killGroup(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Whether a process runs. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A dead one that nobody has reaped yet does not.
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return process.platform !== "linux";
  }
}
