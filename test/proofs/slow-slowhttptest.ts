/** Debian's slowhttptest, in all of its modes at once: an attacker that others wrote. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

/** Slow headers, slow bodies, many ranges, slow reading through a tiny window. */
const MODES: readonly (readonly string[])[] = [
  ["-H", "-i", "1"],
  ["-B", "-i", "2", "-s", "8192", "-x", "8"],
  ["-R"],
  ["-X", "-k", "3", "-w", "1", "-y", "8", "-n", "1", "-z", "5"],
];

export const MODE_COUNT = MODES.length;

export function isInstalled(): boolean {
  return spawnSync("slowhttptest", ["-h"], { stdio: "ignore" }).error === undefined;
}

export class SlowHttpTest {
  readonly #processes: readonly { readonly process: ChildProcess; readonly exited: Promise<unknown> }[];

  /** @param connections - in each mode; none are begun for 0 */
  constructor(port: number, connections: number, forMs: number) {
    const common = ["-c", connections, "-r", connections, "-l", Math.ceil(forMs / 1_000), "-p", 3].map(String);
    this.#processes = (connections === 0 ? [] : MODES).map((mode) => {
      const args = [...mode, ...common, "-u", `http://127.0.0.1:${port}/webhooks`];
      const process = spawn("slowhttptest", args, { stdio: "ignore" });
      return { process, exited: once(process, "exit") };
    });
  }

  async stop(): Promise<void> {
    for (const { process } of this.#processes) process.kill();
    await Promise.all(this.#processes.map(({ exited }) => exited));
  }
}
