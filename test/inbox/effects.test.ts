import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { LeaseLost, PermanentError } from "../../src/errors.ts";
import type { HandlerContext } from "../../src/inbox/handlers.ts";
import { PROBE_MS } from "../../src/inbox/worker.ts";
import { type SqliteDatabase, sqliteStore } from "../../src/stores/sqlite.ts";
import { Bench, type BenchOptions, type Handlers, rounds } from "./bench.ts";

type Tx = SqliteDatabase;
const cleanUps: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp();
});

/** A bench on an inbox file with a table of the application's own. */
async function sqliteBench(register: (on: Handlers<Tx>) => void, options: Omit<BenchOptions<Tx>, "register"> = {}) {
  const directory = await mkdtemp(join(tmpdir(), "oncehook-"));
  const path = join(directory, "inbox.db");
  const user = new Database(path);
  user.exec("create table note (text text unique not null)");
  const store = sqliteStore(path);
  const bench = await new Bench<Tx>(store, { ...options, register }).open();
  cleanUps.push(async () => {
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
  it("commits the effects of all handlers in order, with the completion", async () => {
    const { bench, notes } = await sqliteBench((on) => {
      on.onAny((_, ctx) => ctx.commit(write(`${ctx.meta.eventId} first`)));
      on.onAny(async (_, ctx) => {
        await rounds(2);
        ctx.commit(write(`${ctx.meta.eventId} second`));
      });
    });
    await Promise.all([bench.accept("a"), bench.accept("b")]);
    expect(await bench.worker.drain({})).toEqual({ claimed: 2, complete: true });
    expect(notes().toSorted()).toEqual(["1 first", "1 second", "2 first", "2 second"]);
    expect(await bench.states()).toEqual(["handled", "handled"]);
    await bench.expectNothingLeaked();
  });

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
        ctx.commit(write(`${ctx.meta.lane.messageId} ${ctx.attempt}`));
        if (ctx.meta.lane.messageId === "bad" && ctx.attempt === 1) ctx.commit(write(null));
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
    expect(await bench.states()).toEqual(["handled", "handled", "handled"]);
    await bench.expectNothingLeaked();
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

  it("refuses an effect that returns a promise, and one that comes after the event is settled", async () => {
    const contexts: HandlerContext<Tx>[] = [];
    const { bench } = await sqliteBench((on) =>
      on.onAny((_, ctx) => {
        contexts.push(ctx);
        if (ctx.attempt === 1) ctx.commit(async () => {});
      }),
    );
    await bench.accept("a");
    await bench.worker.drain({});
    expect((await bench.lane("a")).attempts).toMatchObject([{ errorCode: "async_effect" }]);
    for (const ctx of contexts) expect(() => ctx.commit(write("late"))).toThrow(LeaseLost);
  });

  it.each([
    [
      "whose driver works synchronously",
      (orm: Database.Database) => () => orm.exec("insert into note values ('past')"),
    ],
    [
      "whose interface is asynchronous",
      (orm: Database.Database) => () => Promise.resolve().then(() => orm.exec("insert into note values ('past')")),
    ],
  ])("refuses an effect that takes no connection, as with an ORM of its own %s, before it runs", async (_how, past) => {
    const refused: unknown[] = [];
    const { bench, notes, orm } = await sqliteBench((on) =>
      on.onAny((_, ctx) => {
        try {
          ctx.commit(past(orm()));
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

  it("has its effects once when the turn that carries them fails at first (I3)", async () => {
    const { bench, notes } = await sqliteBench((on) => on.onAny((_, ctx) => ctx.commit(write("once"))));
    bench.worker.start();
    await bench.accept("a");
    bench.recorder.failNextTurns = 3;
    for (let round = 0; round < 20; round++) await bench.clock.advance(100);
    await until(async () => (await bench.states())[0] === "handled");
    expect(notes()).toEqual(["once"]);
    await bench.expectNothingLeaked();
  });

  it("has no effect when another process took the lease over meanwhile (I3)", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { bench, notes } = await sqliteBench((on) =>
      on.onAny(async (_, ctx) => {
        await gate;
        ctx.commit(write("zombie"));
      }),
    );
    const drained = bench.worker.drain({});
    await drained;
    await bench.accept("a");
    const second = bench.worker.drain({});
    await until(() => bench.recorder.outstanding.size === 1);
    bench.clock.set(bench.clock.now() + 31_000);
    const turn = { settles: [], accepts: [], quarantines: [] } as const;
    const claim = {
      limit: 1,
      leaseMs: 30_000,
      maxAttempts: 9,
      onDead: "continue",
      takes: () => true,
      mode: "recover",
    } as const;
    const { step } = bench.recorder.store;
    const taken = await step({ ...turn, quarantineQuota: { maxRows: 1, maxBytes: 1 }, claim });
    expect(taken.leases).toHaveLength(1);
    release();
    await second;
    expect(notes()).toEqual([]);
    expect(bench.endings).toEqual([[1, "put_back"]]);
    expect((await bench.events())[0]).toMatchObject({ state: "pending", attempts: 2 });
  });

  it("counts failing effects as failing handlers, and a committed one as success", async () => {
    let broken = true;
    const { bench, notes } = await sqliteBench(
      (on) => on.onAny((_, ctx) => ctx.commit(write(broken ? null : `${ctx.meta.eventId}`))),
      { worker: { concurrency: 4 } },
    );
    await bench.acceptMany(40);
    await bench.worker.drain({});
    expect(bench.worker.isTripped).toBe(true);
    broken = false;
    await bench.clock.advance(5_000);
    await bench.worker.drain({});
    expect(bench.worker.isTripped).toBe(false);
    await bench.clock.advance(60_000);
    await bench.worker.drain({});
    expect(notes()).toHaveLength(40);
    await bench.expectNothingLeaked();
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

  it("does not pause while some effects commit among many failures", async () => {
    const { bench } = await sqliteBench(
      (on) =>
        on.onAny((_, ctx) => {
          if (ctx.meta.eventId % 2 === 0) throw new Error("always");
          ctx.commit(write(`${ctx.meta.eventId}`));
        }),
      { worker: { concurrency: 64 } },
    );
    await bench.acceptMany(64);
    await bench.worker.drain({});
    expect(bench.worker.isTripped).toBe(false);
    expect(bench.lines.map((line) => line.fields.code)).not.toContain("worker_paused");
  });
});
