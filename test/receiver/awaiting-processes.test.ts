/** What a process awaits keeps it alive, also when nothing else does. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { newInboxFile, sqliteBench } from "./bench.ts";
import { inbound } from "./events.ts";

/** Compiled by the tests' global set-up. */
const CHILD = fileURLToPath(new URL("../../.build/test/receiver/awaiting-child.js", import.meta.url));
const LOCKED_MS = 1_500;

async function run(
  mode: "drain" | "start" | "waitFor" | "work",
  file: string,
): Promise<{ code: unknown; said: string }> {
  const child = spawn(process.execPath, [CHILD, mode, file], { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const [code] = await once(child, "close");
  return { code, said };
}

describe("a process that only awaits", () => {
  it("start() goes on once another process lets go of the inbox", async () => {
    const { file, receiver } = sqliteBench();
    await receiver.inbox.stats();
    const other = new Database(file);
    other.exec("begin exclusive");
    setTimeout(() => other.exec("commit"), LOCKED_MS);
    const start = performance.now();
    expect(await run("start", file)).toEqual({ code: 0, said: "started" });
    expect(performance.now() - start).toBeGreaterThan(LOCKED_MS - 100);
    other.close();
  });

  it("a started worker stays without a server beside it, until it is stopped", { tags: "full" }, async () => {
    expect(await run("work", newInboxFile())).toEqual({ code: 0, said: "started, stopped" });
  });

  it("drain() writes what it handled once a store that failed is back, and then tells of it", {
    tags: "full",
  }, async () => {
    const { file, receiver, deliver } = sqliteBench();
    await deliver(inbound());
    expect(await run("drain", file)).toEqual({ code: 0, said: "down for a moment" });
    expect((await receiver.inbox.find()).items).toMatchObject([{ outcome: "handled", attempts: 1 }]);
  });

  it("waitFor() rejects when its time is over", { tags: "full" }, async () => {
    expect(await run("waitFor", newInboxFile())).toEqual({ code: 0, said: "wait_timeout" });
  });
});
