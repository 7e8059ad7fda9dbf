/** What examples and tutorials are tried out with: the packed package, a newcomer's environment, and processes that end as a group. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../../scripts/gates/gate.ts";
import { packBuilt } from "../../../scripts/gates/package.ts";

// The programmes run from .build/test/first-steps.
export const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
export const SECRET = "a-secret-for-a-newcomer-of-41-characters";
const DRIVER = join(ROOT, "node_modules/better-sqlite3");
const LOOK_EVERY_MS = 20;
const ENDS_WITHIN_MS = 15_000;

/** A machine that has what a newcomer's has: Node.js, npm, a registry, and binaries of better-sqlite3 that need no compiler. */
export interface Machine {
  readonly tarball: string;
  /** A folder on it that goes with it. */
  folder(name: string): string;
  readonly environment: Readonly<Record<string, string>>;
  dispose(): void;
}

/** `ONLY=lambda npm run prove -- tutorials` tries those whose name contains it. */
export const isChosen = (name: string): boolean => name.includes(process.env.ONLY ?? "");

/** What became of one trial. */
export interface Tried {
  readonly checks: number;
  readonly problems: readonly string[];
}

/** Packs the package as it was built. */
export async function prepareMachine(): Promise<Machine> {
  const home = mkdtempSync(join(tmpdir(), "oncehook-newcomer-"));
  const tarball = await packBuilt(ROOT, join(home, "package"));
  const binaries = join(home, "binaries");
  await packDriver(binaries);
  return {
    tarball,
    folder(name) {
      const folder = join(home, name);
      mkdirSync(folder);
      return folder;
    },
    environment: environmentWith(binaries),
    dispose: () => rmSync(home, { recursive: true, force: true }),
  };
}

/**
 * better-sqlite3's installation downloads its binary, and compiles it for a minute where it cannot. This is the binary that this
 * project compiled, packed as the download is, where the installation looks first. Another version is downloaded or compiled.
 */
async function packDriver(folder: string): Promise<void> {
  const compiled = "build/Release/better_sqlite3.node";
  if (!existsSync(join(DRIVER, compiled))) return;
  const { version } = JSON.parse(readFileSync(join(DRIVER, "package.json"), "utf8"));
  const { platform, arch, versions } = process;
  const name = `better-sqlite3-v${version}-node-v${versions.modules}-${platform}-${arch}.tar.gz`;
  mkdirSync(folder);
  const packed = await run("tar", ["-czf", join(folder, name), "-C", DRIVER, compiled]);
  if (packed.code !== 0) throw new Error(packed.output);
}

function environmentWith(binaries: string): Record<string, string> {
  const { PATH = "", HOME = "" } = process.env;
  // `npm run` puts the tools of this project there, which a newcomer does not have.
  const path = PATH.split(delimiter).filter((folder) => !folder.includes("node_modules"));
  return {
    PATH: path.join(delimiter),
    HOME,
    npm_config_audit: "false",
    npm_config_fund: "false",
    npm_config_update_notifier: "false",
    npm_config_better_sqlite3_local_prebuilds: binaries,
    NEXT_TELEMETRY_DISABLED: "1",
    CHECKPOINT_DISABLE: "1",
    // Prisma's command would download an engine, which `generate` does not use: it accepts any file in its place.
    PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
  };
}

/** Copies an example, as a user takes it out of the repository, with the packed package in place of the repository's own. */
export function copyExample(name: string, { folder, tarball }: Machine): string {
  const leftOut = /^(?:node_modules|\.next|generated|package-lock\.json|next-env\.d\.ts|.*\.db.*|.*\.tsbuildinfo)$/;
  const to = folder(name);
  cpSync(join(ROOT, "examples", name), to, { recursive: true, filter: (path) => !leftOut.test(basename(path)) });
  const path = join(to, "package.json");
  const manifest = JSON.parse(readFileSync(path, "utf8"));
  if (manifest.dependencies.oncehook !== "file:../..") throw new Error(`${name} does not install this repository`);
  manifest.dependencies.oncehook = `file:${tarball}`;
  writeFileSync(path, JSON.stringify(manifest));
  return to;
}

/** A command in a shell, in a process group of its own. */
export class Running {
  /** What it has printed so far, on either stream. */
  readonly lines: string[] = [];
  /** The code, or the signal that ended it; set once all it printed was read. */
  ending: string | null = null;
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(commands: string, cwd: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn("bash", ["-euo", "pipefail", "-c", commands], {
      cwd,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const input of [this.#child.stdout, this.#child.stderr])
      if (input !== null) createInterface({ input }).on("line", (line) => this.lines.push(line));
    process.once("exit", this.#kill);
    this.#closed = once(this.#child, "close").then(([code, signal]) => {
      process.off("exit", this.#kill);
      this.ending = String(code ?? signal);
    });
  }

  /** Resolves with its code, or the signal that ended it; `late` if it had to be ended. */
  async ends(withinMs: number): Promise<string> {
    if (await this.#closesWithin(withinMs)) return String(this.ending);
    await this.end();
    return "late";
  }

  /** Whether `isThere` becomes true of its lines in time, and before it ends. */
  async shows(isThere: (lines: readonly string[]) => boolean, withinMs = 30_000): Promise<boolean> {
    for (const until = performance.now() + withinMs; ; await sleep(LOOK_EVERY_MS)) {
      if (isThere(this.lines)) return true;
      if (this.ending !== null || performance.now() > until) return isThere(this.lines);
    }
  }

  /** Sends SIGTERM to all of the group, as a terminal sends SIGINT; a problem if that does not end it. */
  async end(): Promise<readonly string[]> {
    this.#signal("SIGTERM");
    const isEnded = await this.#closesWithin(ENDS_WITHIN_MS);
    this.#kill();
    await this.#closed;
    return isEnded ? [] : ["SIGTERM did not end it"];
  }

  #closesWithin(ms: number): Promise<boolean> {
    return Promise.race([this.#closed.then(() => true), sleep(ms, false, { ref: false })]);
  }

  /** The last lines, for a problem. */
  get tail(): string {
    return this.lines.slice(-30).join("\n");
  }

  readonly #kill = () => this.#signal("SIGKILL");

  #signal(signal: NodeJS.Signals): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    } catch {
      // Nothing of the group is left.
    }
  }
}
