/** The inbox's file is restored under a running receiver. */
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { restoredUnderHandler } from "../support/restored.ts";
import { newInboxFile, sqliteBench, until } from "./bench.ts";
import { inbound } from "./events.ts";

/** As `sqlite3 inbox.db ".restore backup.db"` does. */
async function copyInto(from: string, to: string): Promise<void> {
  const db = new Database(from);
  await db.backup(to);
  db.close();
}

describe("an inbox that is restored under a running receiver", () => {
  it("loses and completes no event for another one, and takes again what its sender repeats (I2, I3)", async () => {
    const bench = sqliteBench();
    const backup = newInboxFile();
    const begun = await restoredUnderHandler(bench, async () => {
      await copyInto(bench.file, backup);
      return () => copyInto(backup, bench.file);
    });
    expect(begun.filter((message) => message === "c").length).toBeGreaterThan(0);
    expect(begun.at(-1)).toBe("b");
  });

  it("is opened anew once, whatever else was under way", async () => {
    const bench = sqliteBench();
    const backup = newInboxFile();
    const deliver = (messageId: string) => bench.deliver(inbound({ messageId }));
    await deliver("a");
    await copyInto(bench.file, backup);
    await Promise.all(["b", "c", "d"].map(deliver));
    await copyInto(backup, bench.file);
    const answers = await Promise.all(["e", "f", "g", "h"].map(deliver));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await until(async () => (await deliver("i")).status === 200);
    expect(bench.codes().filter((code) => code === "inbox_replaced")).toEqual(["inbox_replaced"]);
  });

  it.each([
    ["handles nothing while it is paused, and all of it once it goes on", true],
    ["goes on at once where it was not paused", false],
  ])("leaves its worker as it was: it %s", async (_, isPaused) => {
    const { receiver, file, deliver, codes, clock } = sqliteBench();
    const backup = newInboxFile();
    const handled: string[] = [];
    receiver.onAny(({ data }) => void handled.push((data as { messageId: string }).messageId));
    await receiver.start();
    await deliver(inbound({ messageId: "a" }));
    await until(() => handled.length === 1);
    await copyInto(file, backup);
    if (isPaused) receiver.pause();
    await deliver(inbound({ messageId: "lost" }));
    await copyInto(backup, file);
    await deliver(inbound({ messageId: "b" }));
    await until(() => codes().includes("inbox_replaced"));
    await until(async () => (await deliver(inbound({ messageId: "c" }))).status === 200);
    await clock.advance(60_000);
    expect(handled.filter((message) => message !== "lost")).toEqual(isPaused ? ["a"] : ["a", "b", "c"]);
    expect((await receiver.health()).reasons.includes("worker_paused")).toBe(isPaused);
    receiver.resume();
    await until(() => handled.includes("c"));
  });

  it("is not seen where ids only grow, in whatever order deliveries are answered", async () => {
    const { deliver, codes } = sqliteBench();
    await Promise.all(Array.from({ length: 50 }, (_, index) => deliver(inbound({ messageId: `${index}` }))));
    for (let index = 0; index < 5; index++) await deliver(inbound({ messageId: `later ${index}` }));
    expect(codes()).not.toContain("inbox_replaced");
  });
});
