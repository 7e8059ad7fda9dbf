import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { fixtures, signedRequest } from "../../src/testing/index.ts";
import { judge } from "./trace.ts";

const hasStrace = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
const COUNT = 200;

describe("durable acceptance", () => {
  it.skipIf(!hasStrace)(
    "syncs the row of every delivery before its 2xx leaves, by the kernel's account (I2, RCV-3) [skipped without a working strace]",
    async () => {
      const lines = await tracedRun();
      const { synced, unsynced } = judge(lines);
      expect({ synced: new Set(synced).size, unsynced }).toEqual({ synced: COUNT, unsynced: [] });
    },
    120_000,
  );

  it.skipIf(!hasStrace).each(["NORMAL", "OFF"] as const)(
    "is not believed of a driver that says FULL and sets %s: the kernel's account tells [skipped without a working strace]",
    async (pretence) => {
      const { synced, unsynced } = judge(await tracedRun(pretence));
      expect({ synced, unsynced: new Set(unsynced).size }).toEqual({ synced: [], unsynced: COUNT });
    },
    120_000,
  );
});

/** Starts the server, attaches strace, sends deliveries over eight connections, and returns the calls in their order. */
async function tracedRun(...pretence: readonly ("NORMAL" | "OFF")[]): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "oncehook-strace-"));
  const log = join(folder, "calls");
  const calls = "read,readv,write,writev,pwrite64,pwritev,fsync,fdatasync";
  const command = ["-f", "-qq", "-s", "9000", "-e", `trace=${calls}`, "-e", "signal=none", "-o", log];
  const server = spawn(
    "strace",
    [...command, process.execPath, ".build/test/durability/server.js", join(folder, "inbox.db"), ...pretence],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  try {
    const port = await portOf(server);
    await sendAll(port);
    spawnSync("pkill", ["-TERM", "-P", String(server.pid)]);
    await once(server, "exit");
    return joined((await readFile(log, "utf8")).split("\n"));
  } finally {
    server.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true });
  }
}

async function portOf(server: ChildProcess): Promise<number> {
  const [first] = (await once(server.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
  return Number(first.toString().trim());
}

async function sendAll(port: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const statuses = await Promise.all(Array.from({ length: COUNT }, (_, index) => send(port, agent, index)));
  agent.destroy();
  expect(new Set(statuses)).toEqual(new Set([200]));
}

function send(port: number, agent: Agent, index: number): Promise<number | undefined> {
  const { method, headers, body } = signedRequest(
    fixtures.queued({ messageId: `row-${String(index).padStart(5, "0")}` }),
  );
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { port, agent, method, headers: { ...headers, "content-length": body.length }, path: "/" },
      (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      },
    );
    outgoing.once("error", reject).end(body);
  });
}

/** Puts a call that strace shows in two pieces ("unfinished", "resumed") together at its end. */
function joined(lines: readonly string[]): string[] {
  const unfinished = new Map<string, string>();
  return lines.flatMap((line) => {
    const [pid = "", rest = ""] = [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" "))];
    if (rest.includes("<unfinished ...>")) {
      unfinished.set(pid, rest.replace("<unfinished ...>", ""));
      return [];
    }
    const resumed = /<\.\.\. \w+ resumed>(.*)/.exec(rest);
    return [resumed === null ? rest : `${unfinished.get(pid) ?? ""}${resumed[1]}`];
  });
}
