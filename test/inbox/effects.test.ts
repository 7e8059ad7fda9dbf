import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, it, onTestFinished } from "vitest";
import { PermanentError } from "../../src/errors.ts";
import { PROBE_MS } from "../../src/inbox/worker.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { Bench, type Handlers, rounds } from "./bench.ts";

type Tx = SqliteDatabase;
/** A bench on an inbox file with a table of the application's own. */
async function sqliteBench(register: (on: Handlers<Tx>) => void) {
  const directory = await mkdtemp(join(tmpdir(), "oncehook-"));
  const path = join(directory, "inbox.db");
  const user = new Database(path);
  user.exec("create table note (text text unique not null)");
  const store = sqliteStore(path);
  const bench = await new Bench<Tx>(store, { register }).open();
  onTestFinished(async () => {
    await store.close();
    user.close();
    await rm(directory, { recursive: true });
  });
  const notes = () =>
    user
      .prepare("select text from note order by rowid")
      .all()
      .map((row) => (row as { text: string }).text);
  return { bench, notes, orm: () => user };
}

const write = (text: string | null) => (db: Tx) => db.prepare("insert into note (text) values (?)").run(text);

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  for (let round = 0; round < 2_000 && !(await condition()); round++) await rounds(1);
}

describe("ctx.commit() with the worker", () => {
  it("has no effect of an attempt in which a later handler failed", async () => {
    const { bench, notes } = await sqliteBench((on) => {
      on.onAny((_, ctx) => ctx.commit(write(`attempt ${ctx.attempt}`)));
      on.onAny((_, ctx) => {
        if (ctx.attempt === 1) throw new Error("x");
      });
    });
    await bench.accept("a");
    await bench.worker.drain({});
    await bench.clock.advance(1_000);
    await bench.worker.drain({});
    expect(notes()).toEqual(["attempt 2"]);
  });

  it("retries when an effect throws: nothing of it happened, and its neighbours' did", async () => {
    const { bench, notes } = await sqliteBench((on) =>
      on.onAny((_, ctx) => {
        ctx.commit(write(`${ctx.meta.lane} ${ctx.attempt}`));
        if (ctx.meta.lane === "bad" && ctx.attempt === 1) ctx.commit(write(null));
      }),
    );
    await Promise.all([bench.accept("good"), bench.accept("bad"), bench.accept("fine")]);
    await bench.worker.drain({});
    expect(notes().toSorted()).toEqual(["fine 1", "good 1"]);
    expect(await bench.lane("bad")).toMatchObject({
      ...{ status: "backoff", attempts: [{ attempt: 1, errorCode: "SQLITE_CONSTRAINT_NOTNULL" }] },
    });
    expect(bench.failures).toMatchObject([{ attempt: 1, error: { code: "SQLITE_CONSTRAINT_NOTNULL" } }]);
    await bench.clock.advance(1_000);
    await bench.worker.drain({});
    expect(notes()).toContain("bad 2");
    await bench.expectAllHandled(3);
  });

  it("dead-letters at once when an effect throws a PermanentError", async () => {
    const { bench, notes } = await sqliteBench((on) =>
      on.onAny((_, ctx) => {
        ctx.commit(write("before"));
        ctx.commit((_db) => {
          throw new PermanentError("no such order");
        });
      }),
    );
    await bench.accept("a");
    await bench.worker.drain({});
    expect(notes()).toEqual([]);
    expect(await bench.states()).toEqual(["dead"]);
    expect(bench.dead).toMatchObject([{ attempts: 1, code: "permanent_failure" }]);
  });

  it("refuses an effect that takes no connection, as with an ORM of its own, before it runs", async () => {
    const refused: unknown[] = [];
    const { bench, notes, orm } = await sqliteBench((on) =>
      on.onAny((_, ctx) => {
        try {
          ctx.commit(() => orm().exec("insert into note values ('past')"));
        } catch (error) {
          refused.push(error);
          throw error;
        }
      }),
    );
    await bench.accept("a");
    await bench.worker.drain({});
    expect(refused).toMatchObject([{ code: "invalid_argument", message: expect.stringMatching(/option "effects"/) }]);
    expect((await bench.lane("a")).attempts).toMatchObject([{ errorCode: "invalid_argument" }]);
    expect(notes()).toEqual([]);
  });

  it("goes on at once after a probe whose effect is committed (I9)", async () => {
    let broken = true;
    const { bench, notes } = await sqliteBench((on) =>
      on.onAny((_, ctx) => ctx.commit(write(broken ? null : `${ctx.meta.eventId}`))),
    );
    bench.worker.start();
    await bench.acceptMany(20);
    await until(() => bench.worker.isTripped);
    await bench.acceptMany(5, "waiting");
    broken = false;
    await bench.clock.advance(PROBE_MS);
    await until(() => notes().length === 25);
    expect(notes()).toHaveLength(25);
  });
});
