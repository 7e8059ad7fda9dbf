import { existsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { Effect, InboxStore, Lease, Settle } from "../../src/inbox/store.ts";
import { driverOver } from "../../src/internal/sqlite-driver.ts";
import {
  type SqliteDatabase,
  type SqliteStatement,
  type SqliteStoreOptions,
  sqliteStore,
} from "../../src/stores/sqlite.ts";
import { nodeSqliteStandIn } from "../internal/node-sqlite-stand-in.ts";
import { makePath, open } from "./sqlite-place.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

type Store = InboxStore<SqliteDatabase>;

const write = (text: string) => (db: SqliteDatabase) => {
  db.prepare("insert into note (text) values (?)").run(text);
};

function makeNotes(path: string): Database.Database {
  const db = new Database(path);
  db.exec("create table note (text text not null unique)");
  return db;
}

const notesIn = (db: Database.Database) => db.prepare("select text from note order by rowid").pluck().all();

async function leases(store: Store, ...ids: readonly string[]): Promise<readonly Lease[]> {
  const accepts = ids.map((id) => event(id));
  return (await store.step(turn({ accepts, claim: { limit: ids.length } }))).leases;
}

function complete(lease: Lease, ...effects: readonly Effect<SqliteDatabase>[]): Settle<SqliteDatabase> {
  return { kind: "complete", lease, outcome: "handled", effects };
}

/** A table whose constraint is looked at when the transaction commits. */
function makeOwned(path: string): Database.Database {
  const db = makeNotes(path);
  db.exec(`create table owner (id integer primary key);
    create table owned (id integer references owner deferrable initially deferred)`);
  return db;
}

const orphan = (db: SqliteDatabase) => db.exec("insert into owned values (1)");

describe("effects", () => {
  it.each([
    ["an async function", async (db: SqliteDatabase) => write("early")(db)],
    ["a bound one", (async (text: string, db: SqliteDatabase) => write(text)(db)).bind(null, "early")],
  ])("refuses %s before it runs", async (_what, effect) => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    let ran = false;
    const before = () => {
      ran = true;
    };
    const { settled } = await store.step(turn({ settles: [complete(lease!, before, effect)] }));
    expect(settled).toMatchObject([{ status: "effect_failed", error: { code: "async_effect" } }]);
    expect(ran).toBe(false);
  });

  it("refuses a query builder that nobody ran, without running it", async () => {
    const store = await open(sqliteStore(makePath()));
    const [lease] = await leases(store, "m");
    let runs = 0;
    // biome-ignore lint/suspicious/noThenProperty: the kind under test
    const builder = () => ({ then: () => void runs++ });
    const { settled } = await store.step(turn({ settles: [complete(lease!, builder)] }));
    expect(settled).toMatchObject([{ status: "effect_failed", error: { code: "async_effect" } }]);
    await setImmediate();
    expect(runs).toBe(0);
  });

  it("refuses an effect that returns a promise, and takes back what it wrote before", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const later = (db: SqliteDatabase) => Promise.resolve(write("early")(db));
    const { settled } = await store.step(turn({ settles: [complete(lease!, later)] }));
    expect(settled).toMatchObject([{ status: "effect_failed", error: { code: "async_effect" } }]);
    expect(notesIn(notes)).toEqual([]);
    notes.close();
  });

  it("settles the neighbours of an effect that makes SQLite end the transaction", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    notes.exec("insert into note values ('taken')");
    const store = await open(sqliteStore(path));
    const [a, b, c] = await leases(store, "a", "b", "c");
    const fatal = (db: SqliteDatabase) => db.exec("insert or rollback into note values ('taken')");
    const settles = [complete(a!, write("a")), complete(b!, fatal), complete(c!, write("c"))];
    const { settled, accepted } = await store.step(turn({ settles, accepts: [event("d")] }));
    expect(settled.map(({ status }) => status)).toEqual(["settled", "effect_failed", "settled"]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(notesIn(notes)).toEqual(["taken", "a", "c"]);
    expect((await store.stats()).counters).toMatchObject({ handled: 2, accepted: 4 });
    notes.close();
  });

  it.each([
    ["the inbox's", () => ({ onOpen: (db: SqliteDatabase) => db.pragma("foreign_keys = ON") })],
    ["the user's", (effects: SqliteDatabase) => ({ effects })],
  ])(
    "settles the neighbours of one that breaks a deferred constraint, on %s connection (I9)",
    async (_whose, options) => {
      const path = makePath();
      const notes = makeOwned(path);
      const store = await open(sqliteStore(path, options(notes)));
      const [a, b, c] = await leases(store, "a", "b", "c");
      const settles = [complete(a!, write("a"), orphan), complete(b!, write("b")), complete(c!)];
      const { settled, accepted } = await store.step(turn({ settles, accepts: [event("d")] }));
      expect(settled).toMatchObject([
        { status: "effect_failed", error: { code: "SQLITE_CONSTRAINT_FOREIGNKEY" } },
        { status: "settled" },
        { status: "settled" },
      ]);
      expect(accepted).toMatchObject([{ outcome: "accepted" }]);
      expect(notesIn(notes)).toEqual(["b"]);
      expect((await store.stats()).counters).toMatchObject({ handled: 2, accepted: 4 });
      expect((await store.step(turn({ settles: [complete(a!, write("later"))] }))).settled).toEqual([
        { status: "settled" },
      ]);
      notes.close();
    },
  );

  it("are not told lost when they were committed apart and the rest of their turn failed", async () => {
    const path = makePath();
    const notes = makeOwned(path);
    const onOpen = (db: SqliteDatabase) => db.pragma("foreign_keys = ON");
    const store = await open(sqliteStore(path, { onOpen, busyTimeoutMs: 20 }));
    const [a, b] = await leases(store, "a", "b");
    let runs = 0;
    const lockAfterwards = () => {
      runs++;
      if (runs === 2) queueMicrotask(() => notes.exec("begin immediate"));
    };
    const settles = [complete(a!, orphan), complete(b!, write("b"), lockAfterwards)];
    await expect(store.step(turn({ settles }))).rejects.toMatchObject({ code: "store_unavailable" });
    notes.exec("rollback");
    const { settled } = await store.step(turn({ settles }));
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect([runs, notesIn(notes)]).toEqual([2, ["b"]]);
    notes.close();
  });

  it.each([
    ["the inbox's", () => ({})],
    ["the user's", (effects: SqliteDatabase) => ({ effects })],
  ])("leave their event claimed when they commit by themselves, on %s connection (I5)", async (_whose, options) => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path, options(notes)));
    const [a, b] = await leases(store, "a", "b");
    const settles = [complete(a!, write("a")), complete(b!, write("b"), (db) => db.exec("commit"))];
    const { settled } = await store.step(turn({ settles, accepts: [event("b", 2)] }));
    expect(settled[1]).toMatchObject({ status: "effect_failed" });
    expect(await store.stats()).toMatchObject({ gauges: { pending: 2 }, counters: { handled: 1 } });
    const failure = { code: "failed", message: "failed", durationMs: 1 };
    const retry: Settle<SqliteDatabase> = { kind: "retry", lease: b!, delayMs: 0, failure };
    expect((await store.step(turn({ settles: [retry] }))).settled).toEqual([{ status: "settled" }]);
    const next = await store.step(turn({ claim: { limit: 5 } }));
    expect(next.leases).toMatchObject([{ key: { messageId: "b" }, sequence: 1, attempt: 2 }]);
    notes.close();
  });

  it("count what their neighbours settled once, though each of them fails", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path));
    const [a, b, c, d] = await leases(store, "a", "b", "c", "d");
    const fail = () => {
      throw new Error("no");
    };
    const abort = (db: SqliteDatabase) => db.exec("rollback");
    const settles = [complete(a!), complete(b!, write("b")), complete(c!, write("c"), fail), complete(d!, abort)];
    const { settled } = await store.step(turn({ settles }));
    expect(settled.map(({ status }) => status)).toEqual(["settled", "settled", "effect_failed", "effect_failed"]);
    expect(await store.stats()).toMatchObject({ gauges: { pending: 2 }, counters: { handled: 2 } });
    expect(notesIn(notes)).toEqual(["b"]);
    notes.close();
  });

  it("hold up the store no longer than the rows that they left open are being read", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const rows: Iterator<unknown>[] = [];
    const leaves = (db: SqliteDatabase) => {
      write("half")(db);
      rows.push((db as Database.Database).prepare("select 1 union select 2").iterate());
      rows.at(-1)?.next();
    };
    await expect(store.step(turn({ settles: [complete(lease!, leaves)] }))).rejects.toThrow(/busy/);
    await expect(leases(store, "other")).rejects.toThrow(/busy/);
    for (const row of rows) row.return?.();
    expect(await leases(store, "other")).toHaveLength(1);
    expect(notesIn(notes)).toEqual([]);
    expect((await store.step(turn({ settles: [complete(lease!, write("whole"))] }))).settled).toEqual([
      { status: "settled" },
    ]);
    expect(notesIn(notes)).toEqual(["whole"]);
    notes.close();
  });

  it("fail alone when they begin a transaction of their own and throw (I9)", async () => {
    const store = await open(sqliteStore(makePath()));
    const [a, b] = await leases(store, "a", "b");
    const renew = (db: SqliteDatabase) => {
      db.exec("rollback; begin");
      throw new Error("no");
    };
    const { settled } = await store.step(turn({ settles: [complete(a!), complete(b!, renew)] }));
    expect(settled.map(({ status }) => status)).toEqual(["settled", "effect_failed"]);
  });

  it.each([
    ["the inbox's", () => ({})],
    ["the user's", (effects: SqliteDatabase) => ({ effects })],
  ])(
    "are refused what would end the transaction before it runs, however it is written, on %s connection",
    async (_whose, options) => {
      const path = makePath();
      const user = makeNotes(path);
      const store = (await open(sqliteStore(path, options(user)))) as Store;
      const [lease] = await leases(store, "m");
      const texts = [
        "commit",
        "COMMIT;",
        "/* so */ end",
        "-- so\nrollback",
        "select ';'; commit",
        "begin",
        "rollback transaction",
      ];
      for (const sql of texts) {
        for (const run of [(db: SqliteDatabase) => db.exec(sql), (db: SqliteDatabase) => db.prepare(sql).run()]) {
          const { settled } = await store.step(turn({ settles: [complete(lease!, write("half"), run)] }));
          expect(settled, sql).toMatchObject([{ status: "effect_failed" }]);
        }
      }
      expect(notesIn(user)).toEqual([]);
      const allowed = (db: SqliteDatabase) => {
        db.exec("savepoint a; insert into note values ('commit'); rollback to a; rollback transaction to a; release a");
        db.exec(
          "create trigger begins after insert on note begin select case 1 when 1 then 'commit' end; select 2; end; select 'commit'",
        );
      };
      expect((await store.step(turn({ settles: [complete(lease!, allowed, write("whole"))] }))).settled).toEqual([
        { status: "settled" },
      ]);
      expect(notesIn(user)).toEqual(["whole"]);
      user.close();
    },
  );

  it.each([
    ["the inbox's", () => ({})],
    ["the user's", (effects: SqliteDatabase) => ({ effects })],
  ])(
    "are refused settings that would outlive them, however they are written, on %s connection",
    async (_whose, options) => {
      const path = makePath();
      const user = makeNotes(path);
      const kept: { setting?: SqliteStatement; commit?: SqliteStatement; own?: SqliteDatabase } = {};
      const onOpen = (db: SqliteDatabase) => {
        kept.setting = db.prepare("pragma cell_size_check = 1");
        kept.commit = db.prepare("commit");
        kept.own = db;
      };
      const store = (await open(sqliteStore(path, { ...options(user), onOpen }))) as Store;
      const settings = () =>
        ["query_only", "busy_timeout", "locking_mode", "foreign_keys"].map((name) =>
          kept.own?.pragma(name, { simple: true }),
        );
      let before: unknown[] = [];
      const [lease] = await leases(store, "m");
      const looks = () => {
        before = settings();
      };
      const texts = [
        "pragma query_only = 1",
        "PRAGMA main.busy_timeout(60000);",
        "select 1; pragma locking_mode = exclusive",
        '/* so */ pragma "foreign_keys" = on',
        "attach ':memory:' as other",
        "detach other",
      ];
      const refused = {
        status: "effect_failed",
        error: { code: "invalid_argument", message: expect.stringContaining("last longer") },
      };
      const attempts = [
        ...texts.flatMap((sql) => [
          (db: SqliteDatabase) => db.exec(sql),
          (db: SqliteDatabase) => db.prepare(sql),
          { text: sql, values: [] },
        ]),
        (db: SqliteDatabase) => db.pragma("query_only = 1"),
        (db: SqliteDatabase) => db.pragma("main.busy_timeout(60000)"),
        (_db: SqliteDatabase) => kept.setting?.run(),
      ];
      for (const effect of attempts) {
        const { settled } = await store.step(turn({ settles: [complete(lease!, looks, write("half"), effect)] }));
        expect(settled, JSON.stringify(effect) ?? String(effect)).toMatchObject([refused]);
      }
      const committed = complete(lease!, write("half"), (_db) => kept.commit?.run());
      expect((await store.step(turn({ settles: [committed] }))).settled).toMatchObject([
        { status: "effect_failed", error: { message: expect.stringContaining("COMMIT") } },
      ]);
      expect(notesIn(user)).toEqual([]);
      const allowed = (db: SqliteDatabase) => {
        db.exec("pragma user_version = 7; pragma defer_foreign_keys = on; pragma main.table_info(note)");
        expect(db.pragma("table_info(note)")).toHaveLength(1);
        expect(settings()).toEqual(before);
      };
      expect((await store.step(turn({ settles: [complete(lease!, allowed, write("whole"))] }))).settled).toEqual([
        { status: "settled" },
      ]);
      expect([notesIn(user), user.pragma("user_version", { simple: true })]).toEqual([["whole"], 7]);
      await store.close();
      user.close();
    },
  );

  it.each(["commit", "commit; begin"])("says what an effect that runs %j does wrong", async (sql) => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const { settled } = await store.step(turn({ settles: [complete(lease!, (db) => db.exec(sql))] }));
    expect(settled).toMatchObject([{ status: "effect_failed", error: { message: expect.stringContaining("COMMIT") } }]);
  });
});

const NODE = driverOver(nodeSqliteStandIn({ tellsTransactions: true }));

/** What an effect that goes on after its end does, and how often it is refused. */
function lateWrites() {
  const refusals: unknown[] = [];
  const attempt = (act: () => unknown) => () => {
    try {
      act();
    } catch (error) {
      refusals.push(error);
    }
  };
  return { refusals, attempt };
}

describe.each<[string, SqliteStoreOptions]>([
  ["better-sqlite3", {}],
  ["node:sqlite", { driver: NODE }],
])("the connection that effects get of %s", (_driver, options) => {
  const refusal = expect.objectContaining({ name: "SetupError", message: expect.stringMatching(/has returned/) });

  it("is dead after the effect returned: after an await, in a timer, in a callback", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path, options));
    const [a, b] = await leases(store, "a", "b");
    const { refusals, attempt } = lateWrites();
    const goesOn = (db: SqliteDatabase) => {
      const insert = db.prepare("insert into note values (?)");
      const insertOne = attempt(() => insert.run("statement"));
      queueMicrotask(insertOne);
      setTimeout(insertOne);
      setTimeout(attempt(() => db.exec("insert into note values ('exec')")));
      return Promise.resolve().then(attempt(() => write("prepared")(db)));
    };
    const leavesBehind = (db: SqliteDatabase) =>
      void Promise.resolve().then(attempt(() => db.pragma("user_version = 7")));
    const { settled } = await store.step(
      turn({ settles: [complete(a!, goesOn), complete(b!, write("b"), leavesBehind)] }),
    );
    await new Promise((resolve) => setTimeout(resolve));
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect(refusals).toEqual(Array(5).fill(refusal));
    expect([notesIn(notes), notes.pragma("user_version", { simple: true })]).toEqual([["b"], 0]);
    notes.close();
  });

  it("and its statements may be kept for later effects", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const seen = new Set<SqliteDatabase>();
    let insert: ReturnType<SqliteDatabase["prepare"]> | undefined;
    const onOpen = (db: SqliteDatabase) => {
      insert = db.prepare("insert into note values (?)");
      seen.add(db);
    };
    const store = await open(sqliteStore(path, { ...options, onOpen }));
    expect(() => insert?.run("between")).toThrow(refusal);
    const [a, b] = await leases(store, "a", "b");
    const kept = (text: string) => (db: SqliteDatabase) => {
      seen.add(db);
      insert?.run(text);
    };
    await store.step(turn({ settles: [complete(a!, kept("a"))] }));
    await store.step(turn({ settles: [complete(b!, kept("b"))] }));
    expect([notesIn(notes), seen.size]).toEqual([["a", "b"], 1]);
    notes.close();
  });

  it("cannot be closed by one", async () => {
    const store = await open(sqliteStore(makePath(), options));
    const [lease] = await leases(store, "m");
    const { settled } = await store.step(turn({ settles: [complete(lease!, (db) => db.close())] }));
    expect(settled).toMatchObject([
      { status: "effect_failed", error: { message: expect.stringMatching(/not close it/) } },
    ]);
    expect((await store.step(turn({ settles: [complete(lease!)] }))).settled).toEqual([{ status: "settled" }]);
  });

  it("knows what the driver's own does", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path, options));
    const [lease] = await leases(store, "m");
    const seen: unknown[] = [];
    const looks = (db: SqliteDatabase) => {
      seen.push(db.name, db.open, db.inTransaction, db.pragma("foreign_keys", { simple: true }));
      seen.push(db.prepare("select ? as n").get(1), db.prepare("select 2 as n").all());
    };
    expect((await store.step(turn({ settles: [complete(lease!, looks)] }))).settled).toEqual([{ status: "settled" }]);
    expect(seen).toEqual([path, true, true, 0, { n: 1 }, [{ n: 2 }]]);
  });
});

describe("what ORMs do with better-sqlite3's connection", () => {
  type Own = Database.Database;

  it("is a Database to them, and chains as one", async () => {
    const store = await open(sqliteStore(makePath()));
    const [lease] = await leases(store, "m");
    const seen: unknown[] = [];
    const looks = (lent: SqliteDatabase) => {
      const db = lent as Own;
      seen.push(db instanceof Database, db.constructor === Database, db.exec("select 1") === db, db.memory);
      seen.push(db.prepare("select 1, 2").raw().all(), db.prepare("select 3").pluck().get());
      seen.push([...db.prepare("select 4 union select 5").pluck().iterate()]);
    };
    expect((await store.step(turn({ settles: [complete(lease!, looks)] }))).settled).toEqual([{ status: "settled" }]);
    expect(seen).toEqual([true, true, true, false, [[1, 2]], 3, [4, 5]]);
  });

  it("makes a savepoint of their transaction, and writes nothing through one that they kept", async () => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const kept: (() => unknown)[] = [];
    const nests = (lent: SqliteDatabase) => {
      const db = lent as Own;
      const insert = db.transaction((text: string, fails: boolean) => {
        write(text)(db);
        if (fails) throw new Error("no");
      });
      insert("whole", false);
      expect(() => insert.immediate("half", true)).toThrow("no");
      kept.push(
        () => insert("late", false),
        () => insert.immediate("late", false),
      );
      const rows = db.prepare("insert into note values ('late') returning text").iterate();
      kept.push(() => rows.next());
      rows.return?.();
    };
    expect((await store.step(turn({ settles: [complete(lease!, nests)] }))).settled).toEqual([{ status: "settled" }]);
    for (const late of kept) expect(late).toThrow(/has returned/);
    expect(notesIn(notes)).toEqual(["whole"]);
    notes.close();
  });
});

describe("better-sqlite3's other ways from a statement to its connection", () => {
  type Own = Database.Database;
  /** As better-sqlite3 names them; its types leave out the second. */
  const ways: [string, (db: Own) => unknown][] = [
    ["statement.database", (db) => db.prepare("select 1").database],
    ["transaction().database", (db) => (db.transaction(() => {}) as unknown as { readonly database: Own }).database],
    ["exec()", (db) => db.exec("select 1")],
    ["function()", (db) => db.function("oncehook_one", () => 1)],
    ["raw().database", (db) => db.prepare("select 1").raw().database],
  ];

  it.each(ways)("lead back to the guarded one: %s", async (_way, from) => {
    const path = makePath();
    const notes = makeNotes(path);
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const kept: Own[] = [];
    const leaves = (lent: SqliteDatabase) => {
      write("half")(lent);
      const found = from(lent as Own) as Own;
      expect(found === lent).toBe(true);
      kept.push(found);
      found.exec("commit");
    };
    const { settled } = await store.step(turn({ settles: [complete(lease!, leaves)] }));
    expect(settled).toMatchObject([{ status: "effect_failed", error: { message: expect.stringContaining("COMMIT") } }]);
    expect(notesIn(notes)).toEqual([]);
    for (const db of kept) expect(() => write("late")(db as SqliteDatabase)).toThrow(/has returned/);
    notes.close();
  });

  it.each<[string, (db: Own) => unknown]>([
    ["defaultSafeIntegers()", (db) => db.defaultSafeIntegers()],
    ["unsafeMode()", (db) => db.unsafeMode()],
  ])("do not change how the inbox's own statements work: %s", async (_what, change) => {
    const path = makePath();
    const onOpen = (db: SqliteDatabase) => void change(db as Own);
    await expect(sqliteStore(path, { onOpen }).open(contextOf())).rejects.toMatchObject({ code: "invalid_argument" });
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const effect = (db: SqliteDatabase) => void change(db as Own);
    expect((await store.step(turn({ settles: [complete(lease!, effect)] }))).settled).toMatchObject([
      { status: "effect_failed", error: { code: "invalid_argument" } },
    ]);
    expect(await store.find({ limit: 1 })).toMatchObject({ items: [{ id: 1 }] });
  });

  it("do not begin a backup, which would go on after the effect and hold what is rolled back", async () => {
    const path = makePath();
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const copy = makePath();
    const effect = (db: SqliteDatabase) => void (db as Own).backup(copy);
    expect((await store.step(turn({ settles: [complete(lease!, effect)] }))).settled).toMatchObject([
      { status: "effect_failed", error: { message: expect.stringContaining("backup()") } },
    ]);
    expect(existsSync(copy)).toBe(false);
  });
});

describe("an effect that writes through another connection", () => {
  class Wrapped extends Error {}

  it.each([
    ["as the driver throws it", (act: () => unknown) => act()],
    [
      "as an ORM wraps it",
      (act: () => unknown) => {
        try {
          act();
        } catch (cause) {
          throw new Wrapped("Failed query", { cause });
        }
      },
    ],
  ])("is told so with the fix, %s", async (_how, run) => {
    const path = makePath();
    const other = makeNotes(path);
    other.pragma("busy_timeout = 1");
    const store = await open(sqliteStore(path));
    const [lease] = await leases(store, "m");
    const elsewhere = () => run(() => other.prepare("insert into note values ('m')").run());
    const { settled } = await store.step(turn({ settles: [complete(lease!, elsewhere)] }));
    expect(settled).toMatchObject([
      {
        status: "effect_failed",
        error: { code: "invalid_argument", message: expect.stringMatching(/SQLITE_BUSY.*option "effects"/) },
      },
    ]);
    expect(notesIn(other)).toEqual([]);
    other.close();
  });
});

describe("effects on the user's own connection", () => {
  it("write nothing after they returned, though the connection is the application's and an ORM has it", async () => {
    const path = makePath();
    const user = makeNotes(path);
    const store = (await open(sqliteStore(path, { effects: user }))) as Store;
    const [a, b] = await leases(store, "a", "b");
    const { refusals, attempt } = lateWrites();
    const insert = user.prepare("insert into note values (?)");
    // As an ORM's query does that is asynchronous by its interface only.
    const orm = async (text: string) => {
      await null;
      attempt(() => user.prepare("insert into note values (?)").run(text))();
      attempt(() => user.exec("insert into note values ('exec')"))();
      await setImmediate();
      attempt(() => insert.run(text))();
    };
    const settles = [complete(a!, () => orm("a")), complete(b!, () => void orm("b"), write("b"))];
    const { settled } = await store.step(turn({ settles }));
    write("meanwhile")(user);
    await setImmediate();
    await setImmediate();
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect(refusals).toHaveLength(6);
    expect(notesIn(user)).toEqual(["b", "meanwhile"]);
    user.close();
  });

  it("leave the inbox its own work that began in what follows from them", async () => {
    const path = makePath();
    const user = makeNotes(path);
    const store = (await open(sqliteStore(path, { effects: user }))) as Store;
    const [a, b] = await leases(store, "a", "b");
    let second: ReturnType<Store["step"]> | undefined;
    const begins = () =>
      void queueMicrotask(() => {
        second = store.step(turn({ settles: [complete(b!, write("b"))] }));
      });
    await store.step(turn({ settles: [complete(a!, begins)] }));
    expect((await second)?.settled).toEqual([{ status: "settled" }]);
    expect(notesIn(user)).toEqual(["b"]);
    user.close();
  });

  it("run on it, with its settings left alone, and commit with the completion", async () => {
    const path = makePath();
    const user = makeNotes(path);
    user.pragma("synchronous = OFF");
    user.defaultSafeIntegers(true);
    const store = await open(sqliteStore(path, { effects: user }));
    const [lease] = await leases(store as Store, "m");
    await store.step(turn<Database.Database>({ accepts: [event("m", 2)] }));
    let seen: unknown;
    const effect = (db: Database.Database) => {
      seen = db;
      db.prepare("insert into note values ('m')").run();
    };
    const settles: Settle<Database.Database>[] = [
      { kind: "complete", lease: lease!, outcome: "handled", effects: [effect] },
    ];
    expect((await store.step(turn<Database.Database>({ settles }))).settled).toEqual([{ status: "settled" }]);
    expect(seen).toBe(user);
    expect(Number(user.pragma("synchronous", { simple: true }))).toBe(0);
    expect(notesIn(user)).toEqual(["m"]);
    user.close();
  });

  it.each(["", "insert into note values ('mine')"])(
    "are unfinished until the user's own transaction is over: %j",
    async (sql) => {
      const path = makePath();
      const user = makeNotes(path);
      const store = (await open(sqliteStore(path, { effects: user }))) as Store;
      const [lease] = await leases(store, "m");
      const settles = [complete(lease!, write("theirs"))];
      user.exec(`begin; ${sql}`);
      const during = store.step(turn({ settles }));
      await setImmediate();
      user.exec("rollback");
      expect((await during).settled).toEqual([{ status: "unfinished" }]);
      expect((await store.step(turn({ settles }))).settled).toEqual([{ status: "settled" }]);
      expect(notesIn(user)).toEqual(["theirs"]);
      user.close();
    },
  );

  it("are unfinished while the user reads from it row by row", async () => {
    const path = makePath();
    const user = makeNotes(path);
    user.exec("insert into note values ('mine'), ('too')");
    const store = (await open(sqliteStore(path, { effects: user }))) as Store;
    const [a, b] = await leases(store, "a", "b");
    const settles = [complete(a!, write("a")), complete(b!)];
    const rows = user.prepare("select text from note").iterate();
    rows.next();
    const { settled, accepted } = await store.step(turn({ settles, accepts: [event("c")] }));
    expect(settled).toEqual([{ status: "unfinished" }, { status: "settled" }]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    rows.return?.();
    expect((await store.step(turn({ settles: settles.slice(0, 1) }))).settled).toEqual([{ status: "settled" }]);
    expect(notesIn(user)).toEqual(["mine", "too", "a"]);
    user.close();
  });

  it("hold up no delivery while the user's own transaction lasts (I9)", async () => {
    const path = makePath();
    const user = makeNotes(path);
    const store = (await open(sqliteStore(path, { effects: user, busyTimeoutMs: 20 }))) as Store;
    const [lease] = await leases(store, "m");
    user.exec("begin; select * from note");
    const settles = [complete(lease!, write("theirs"))];
    const { settled, accepted } = await store.step(turn({ settles, accepts: [event("n")] }));
    expect(settled).toEqual([{ status: "unfinished" }]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    user.close();
  });

  it("are not told lost when only the rest of their turn failed", async () => {
    const path = makePath();
    const user = makeNotes(path);
    let locks = 0;
    const store = (await open(sqliteStore(path, { effects: user, busyTimeoutMs: 20 }))) as Store;
    const [lease] = await leases(store, "m");
    const other = new Database(path);
    const lockAfterwards = () => {
      locks++;
      queueMicrotask(() => other.exec("begin immediate"));
    };
    const settles = [complete(lease!, write("m"), lockAfterwards)];
    await expect(store.step(turn({ settles }))).rejects.toMatchObject({ code: "store_unavailable" });
    other.exec("rollback");
    expect((await store.step(turn({ settles }))).settled).toEqual([{ status: "settled" }]);
    expect([locks, notesIn(user)]).toEqual([1, ["m"]]);
    for (const db of [user, other]) db.close();
  });

  it("refuses a connection to another file", async () => {
    const user = new Database(makePath());
    await expect(sqliteStore(makePath(), { effects: user }).open(contextOf())).rejects.toMatchObject({
      code: "invalid_option",
    });
    user.close();
  });
});
