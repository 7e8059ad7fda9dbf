import { describe, expect, it } from "vitest";
import { createReceiver } from "../../src/index.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { deliver, fixtures, TEST_SECRET } from "../../src/tools/testing/index.ts";
import { connect, makePath } from "./sqlite-place.ts";

function receiverWith(onOpen: (db: SqliteDatabase) => unknown, path = makePath()) {
  return createReceiver({ secrets: TEST_SECRET, store: sqliteStore(path, { onOpen }) }).onAny((event, ctx) => {
    ctx.commit((db) => db.prepare("insert into seen values (?)").run(event.eventType));
  });
}

describe("sqliteStore({ onOpen })", () => {
  it("makes the tables that effects write to, at each open", async () => {
    const opened: unknown[] = [];
    const path = makePath();
    for (const round of [1, 2]) {
      const receiver = receiverWith((db) => {
        db.exec("create table if not exists seen (type text)");
        opened.push(db.prepare("select count(*) as count from seen").get());
      }, path);
      await deliver(receiver, fixtures.queued({ messageId: `msg_${round}` }));
      await receiver.stop();
    }
    expect(opened).toEqual([{ count: 0 }, { count: 1 }]);
  });

  it("may use a transaction of its own, as ORMs' migrations do", async () => {
    const receiver = receiverWith((db) => {
      db.exec("begin");
      db.prepare("create table if not exists seen (type text)").run();
      db.exec("commit");
    });
    expect((await deliver(receiver, fixtures.queued())).state).toBe("handled");
    await receiver.stop();
  });

  it("fails the open with what it throws, and the next open tries again", async () => {
    const error = new Error("no such extension");
    let times = 0;
    const receiver = receiverWith((db) => {
      times += 1;
      if (times === 1) throw error;
      db.exec("create table seen (type text)");
    });
    await expect(receiver.start()).rejects.toBe(error);
    expect((await deliver(receiver, fixtures.queued())).state).toBe("handled");
    await receiver.stop();
  });

  it.each(["", "begin; create table half (made text)"])(
    "leaves no process behind when it fails, after %j",
    async (sql) => {
      const path = makePath();
      const receiver = receiverWith((db) => {
        db.exec(sql);
        throw new Error("no such extension");
      }, path);
      await expect(receiver.start()).rejects.toThrow("no such extension");
      expect(connect(path).prepare("select * from oncehook_instance").all()).toEqual([]);
      await receiver.stop();
    },
  );

  it.each([
    ["resolves", async () => {}],
    ["rejects", () => Promise.reject(new Error("too late"))],
  ])("refuses a promise, which nothing would wait for, also one that %s", async (_what, onOpen) => {
    const receiver = receiverWith(onOpen);
    const refused = { name: "SetupError", code: "invalid_option", message: expect.stringMatching(/"onOpen".*promise/) };
    await expect(receiver.start()).rejects.toMatchObject(refused);
    await receiver.stop();
  });

  it("refuses anything but a function", () => {
    expect(() => sqliteStore("inbox.db", { onOpen: "create table t" as never })).toThrow(/"onOpen" must be a function/);
  });
});
