/** A Redis server of the benchmark's own, which keeps what it is given in a file, as the one of the machine may not. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../test/support/free-port.ts";

/** When what was written to the file is synced: before each answer, or once a second. */
export type Sync = "always" | "everysec";

export interface RedisServer {
  readonly url: string;
  stop(): Promise<unknown>;
}

/** Starts `redis-server` on an unused port with its files below `directory`; null where it is not installed. */
export async function startRedis(directory: string, sync: Sync): Promise<RedisServer | null> {
  const port = await freePort();
  const own = join(directory, `redis-${sync}`);
  mkdirSync(own);
  const place = ["--bind", "127.0.0.1", "--port", `${port}`, "--dir", own];
  const child = spawn("redis-server", [...place, "--save", "", "--appendonly", "yes", "--appendfsync", sync], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  // Rejects where there is no such programme.
  const exited = once(child, "exit").catch(() => {});
  if (child.pid === undefined) return null;
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (line.includes("Ready to accept connections")) break;
  }
  child.stdout.resume();
  if (child.exitCode !== null) throw new Error(`redis-server ended: ${lines.slice(-5).join("\n")}`);
  return {
    url: `redis://127.0.0.1:${port}`,
    stop() {
      child.kill();
      return exited;
    },
  };
}
