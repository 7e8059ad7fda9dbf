import { existsSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import type { Effect, EffectFunction, InboxStore, Lease, Settle } from "../../src/inbox/store.ts";
import { driverOver } from "../../src/internal/sqlite-driver.ts";
import {
  type SqliteDatabase,
  type SqliteStatement,
  type SqliteStoreOptions,
  sqliteStore,
} from "../../src/stores/sqlite.ts";
import { nodeSqliteStandIn } from "../internal/node-sqlite-stand-in.ts";
import { connect, makePath, open } from "./sqlite-place.ts";
import { contextOf, event, turn } from "./sqlite-turns.ts";

type Own = Database.Database;
type Effects = EffectFunction<SqliteDatabase>;

const write =
  (text: string): Effects =>
  (db) =>
    void db.prepare("insert into note (text) values (?)").run(text);

function complete(lease: Lease | undefined, ...effects: readonly Effect<SqliteDatabase>[]): Settle<SqliteDatabase> {
  if (lease === undefined) throw new Error("There is no lease.");
  return { kind: "complete", lease, outcome: "handled", effects };
}

type DeskOptions = SqliteStoreOptions | ((user: Own) => SqliteStoreOptions);

/** A store, and the application's connection to its file, with a table of notes that effects write to. */
async function openDesk(options: DeskOptions = {}) {
  const path = makePath();
  const user = connect(path);
  user.exec("create table note (text text not null unique)");
  const made = typeof options === "function" ? options(user) : options;
  const store = (await open(sqliteStore(path, made))) as InboxStore<SqliteDatabase>;
  return {
    ...{ path, user, store },
    notes: () => user.prepare("select text from note order by rowid").pluck().all(),
    leases: async (...ids: readonly string[]) =>
      (await store.step(turn({ accepts: ids.map((id) => event(id)), claim: { limit: ids.length } }))).leases,
    settle: async (...settles: readonly Settle<SqliteDatabase>[]) => (await store.step(turn({ settles }))).settled,
  };
}

/** A desk whose event of message `m` is being handled. `end` completes it with effects. */
async function openHandling(options: DeskOptions = {}) {
  const desk = await openDesk(options);
  const [lease] = await desk.leases("m");
  return {
    ...desk,
    lease,
    end: (...effects: readonly Effect<SqliteDatabase>[]) => desk.settle(complete(lease, ...effects)),
  };
}

const SETTLED = { status: "settled" };
const failed = (error: object) => ({ status: "effect_failed", error });

/** The connections on which effects can run. */
const CONNECTIONS: readonly (readonly [string, (user: Own) => SqliteStoreOptions])[] = [
  ["the inbox's", () => ({})],
  ["the user's", (effects) => ({ effects })],
];

/** Its constraint is looked at when the transaction commits. */
const OWNED = `create table owner (id integer primary key);
  create table owned (id integer references owner deferrable initially deferred)`;
const orphan: Effects = (db) => void db.exec("insert into owned values (1)");
const withForeignKeys = { onOpen: (db: SqliteDatabase) => db.pragma("foreign_keys = ON") };

describe("effects", () => {
  it.each<[string, Effects, boolean]>([
    ["an async function, before anything runs", async (db) => write("early")(db), false],
    ["what returns a promise, and take back what was written", (db) => Promise.resolve(write("early")(db)), true],
  ])("refuse %s", async (_what, effect, begins) => {
    const { end, notes } = await openHandling();
    let hasBegun = false;
    const before: Effects = () => {
      hasBegun = true;
    };
    expect(await end(before, effect)).toMatchObject([failed({ code: "async_effect" })]);
    expect([hasBegun, notes()]).toEqual([begins, []]);
  });

  it("settles the neighbours of an effect that makes SQLite end the transaction", async () => {
    const { user, store, leases, notes } = await openDesk();
    user.exec("insert into note values ('taken')");
    const [a, b, c] = await leases("a", "b", "c");
    const fatal: Effects = (db) => void db.exec("insert or rollback into note values ('taken')");
    const settles = [complete(a, write("a")), complete(b, fatal), complete(c, write("c"))];
    const { settled, accepted } = await store.step(turn({ settles, accepts: [event("d")] }));
    expect(settled.map(({ status }) => status)).toEqual(["settled", "effect_failed", "settled"]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(notes()).toEqual(["taken", "a", "c"]);
    expect((await store.stats()).counters).toMatchObject({ handled: 2, accepted: 4 });
  });

  it.each([
    ["the inbox's", () => withForeignKeys],
    ["the user's", (effects: Own) => ({ effects })],
  ])("settle the neighbours of one that breaks a deferred constraint, on %s connection (I9)", async (_, options) => {
    const { user, store, leases, settle, notes } = await openDesk(options);
    user.exec(OWNED);
    const [a, b, c] = await leases("a", "b", "c");
    const settles = [complete(a, write("a"), orphan), complete(b, write("b")), complete(c)];
    const { settled, accepted } = await store.step(turn({ settles, accepts: [event("d")] }));
    expect(settled).toMatchObject([failed({ code: "SQLITE_CONSTRAINT_FOREIGNKEY" }), SETTLED, SETTLED]);
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(notes()).toEqual(["b"]);
    expect((await store.stats()).counters).toMatchObject({ handled: 2, accepted: 4 });
    expect(await settle(complete(a, write("later")))).toEqual([SETTLED]);
  });

  it("are not told lost when they were committed apart and the rest of their turn failed", async () => {
    const { user, leases, settle, notes } = await openDesk({ ...withForeignKeys, busyTimeoutMs: 20 });
    user.exec(OWNED);
    const [a, b] = await leases("a", "b");
    let runs = 0;
    const lockAfterwards: Effects = () => {
      runs++;
      if (runs === 2) queueMicrotask(() => user.exec("begin immediate"));
    };
    const settles = [complete(a, orphan), complete(b, write("b"), lockAfterwards)];
    await expect(settle(...settles)).rejects.toMatchObject({ code: "store_unavailable" });
    user.exec("rollback");
    expect((await settle(...settles)).map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect([runs, notes()]).toEqual([2, ["b"]]);
  });

  it("hold up the store no longer than the rows that they left open are being read", async () => {
    const { leases, settle, notes } = await openDesk();
    const [lease] = await leases("m");
    const rows: Iterator<unknown>[] = [];
    const leaves: Effects = (db) => {
      write("half")(db);
      rows.push((db as Own).prepare("select 1 union select 2").iterate());
      rows.at(-1)?.next();
    };
    await expect(settle(complete(lease, leaves))).rejects.toThrow(/busy/);
    await expect(leases("other")).rejects.toThrow(/busy/);
    for (const row of rows) row.return?.();
    expect(await leases("other")).toHaveLength(1);
    expect(notes()).toEqual([]);
    expect(await settle(complete(lease, write("whole")))).toEqual([SETTLED]);
    expect(notes()).toEqual(["whole"]);
  });

  it.each(CONNECTIONS)(
    "are refused what would end the transaction before it runs, however it is written, on %s connection",
    async (_whose, options) => {
      const { end, notes } = await openHandling(options);
      const texts = [
        ...["commit", "COMMIT;", "/* so */ end", "-- so\nrollback", "select ';'; commit", "begin"],
        ...["rollback transaction", "commit; begin"],
      ];
      for (const sql of texts) {
        const ways: Effects[] = [(db) => void db.exec(sql), (db) => void db.prepare(sql).run()];
        for (const run of ways) {
          const settled = await end(write("half"), run);
          expect(settled, sql).toMatchObject([failed({ message: expect.stringMatching(/COMMIT|one statement/) })]);
        }
      }
      expect(notes()).toEqual([]);
      const allowed: Effects = (db) => {
        db.exec("savepoint a; insert into note values ('commit'); rollback to a; rollback transaction to a; release a");
        db.exec(`create trigger begins after insert on note begin
          select case 1 when 1 then 'commit' end; select 2; end; select 'commit'`);
      };
      expect(await end(allowed, write("whole"))).toEqual([SETTLED]);
      expect(notes()).toEqual(["whole"]);
    },
  );

  it.each(CONNECTIONS)(
    "are refused settings that would outlive them, however they are written, on %s connection",
    async (_whose, options) => {
      const kept: { setting?: SqliteStatement; commit?: SqliteStatement; own?: SqliteDatabase } = {};
      const onOpen = (db: SqliteDatabase) => {
        kept.setting = db.prepare("pragma cell_size_check = 1");
        kept.commit = db.prepare("commit");
        kept.own = db;
      };
      const { user, leases, settle, notes } = await openDesk((own) => ({ ...options(own), onOpen }));
      const settings = () =>
        ["query_only", "busy_timeout", "locking_mode", "foreign_keys"].map((name) =>
          kept.own?.pragma(name, { simple: true }),
        );
      let before: unknown[] = [];
      const looks: Effects = () => {
        before = settings();
      };
      const [lease] = await leases("m");
      const texts = [
        ...["pragma query_only = 1", "PRAGMA main.busy_timeout(60000);", "select 1; pragma locking_mode = exclusive"],
        ...['/* so */ pragma "foreign_keys" = on', "attach ':memory:' as other", "detach other"],
      ];
      const attempts: Effect<SqliteDatabase>[] = [
        ...texts.flatMap((sql): Effect<SqliteDatabase>[] => [
          (db) => void db.exec(sql),
          (db) => void db.prepare(sql),
          { text: sql, values: [] },
        ]),
        (db) => db.pragma("query_only = 1"),
        (db) => db.pragma("main.busy_timeout(60000)"),
        (_db) => kept.setting?.run(),
      ];
      const refused = failed({ code: "invalid_argument", message: expect.stringContaining("last longer") });
      for (const effect of attempts) {
        const settled = await settle(complete(lease, looks, write("half"), effect));
        expect(settled, JSON.stringify(effect) ?? String(effect)).toMatchObject([refused]);
      }
      const committed = complete(lease, write("half"), (_db) => kept.commit?.run());
      expect(await settle(committed)).toMatchObject([failed({ message: expect.stringContaining("COMMIT") })]);
      expect(notes()).toEqual([]);
      const allowed: Effects = (db) => {
        db.exec("pragma user_version = 7; pragma defer_foreign_keys = on; pragma main.table_info(note)");
        expect(db.pragma("table_info(note)")).toHaveLength(1);
        expect(settings()).toEqual(before);
      };
      expect(await settle(complete(lease, allowed, write("whole")))).toEqual([SETTLED]);
      expect([notes(), user.pragma("user_version", { simple: true })]).toEqual([["whole"], 7]);
    },
  );
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
    const { user, leases, settle, notes } = await openDesk(options);
    const [a, b] = await leases("a", "b");
    const { refusals, attempt } = lateWrites();
    const goesOn: Effects = (db) => {
      const insert = db.prepare("insert into note values (?)");
      const insertOne = attempt(() => insert.run("statement"));
      queueMicrotask(insertOne);
      setTimeout(insertOne);
      setTimeout(attempt(() => db.exec("insert into note values ('exec')")));
      return Promise.resolve().then(attempt(() => write("prepared")(db)));
    };
    const leavesBehind: Effects = (db) => void Promise.resolve().then(attempt(() => db.pragma("user_version = 7")));
    const settled = await settle(complete(a, goesOn), complete(b, write("b"), leavesBehind));
    await new Promise((resolve) => setTimeout(resolve));
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect(refusals).toEqual(Array(5).fill(refusal));
    expect([notes(), user.pragma("user_version", { simple: true })]).toEqual([["b"], 0]);
  });

  it("and its statements may be kept for later effects", async () => {
    const seen = new Set<SqliteDatabase>();
    let insert: SqliteStatement | undefined;
    const onOpen = (db: SqliteDatabase) => {
      insert = db.prepare("insert into note values (?)");
      seen.add(db);
    };
    const { leases, settle, notes } = await openDesk({ ...options, onOpen });
    expect(() => insert?.run("between")).toThrow(refusal);
    const [a, b] = await leases("a", "b");
    const kept =
      (text: string): Effects =>
      (db) => {
        seen.add(db);
        insert?.run(text);
      };
    await settle(complete(a, kept("a")));
    await settle(complete(b, kept("b")));
    expect([notes(), seen.size]).toEqual([["a", "b"], 1]);
  });

  it("knows what the driver's own does", async () => {
    const { end, path } = await openHandling(options);
    const seen: unknown[] = [];
    const looks: Effects = (db) => {
      seen.push(db.name, db.open, db.inTransaction, db.pragma("foreign_keys", { simple: true }));
      seen.push(db.prepare("select ? as n").get(1), db.prepare("select 2 as n").all());
    };
    expect(await end(looks)).toEqual([SETTLED]);
    expect(seen).toEqual([path, true, true, 0, { n: 1 }, [{ n: 2 }]]);
  });
});

describe("what ORMs do with better-sqlite3's connection", () => {
  it("is a Database to them, and chains as one", async () => {
    const { end } = await openHandling();
    const seen: unknown[] = [];
    const looks: Effects = (lent) => {
      const db = lent as Own;
      seen.push(db instanceof Database, db.constructor === Database, db.exec("select 1") === db, db.memory);
      seen.push(db.prepare("select 1, 2").raw().all(), db.prepare("select 3").pluck().get());
      seen.push([...db.prepare("select 4 union select 5").pluck().iterate()]);
    };
    expect(await end(looks)).toEqual([SETTLED]);
    expect(seen).toEqual([true, true, true, false, [[1, 2]], 3, [4, 5]]);
  });

  it("makes a savepoint of their transaction, and writes nothing through one that they kept", async () => {
    const { end, notes } = await openHandling();
    const kept: (() => unknown)[] = [];
    const nests: Effects = (lent) => {
      const db = lent as Own;
      const insert = db.transaction((text: string, fails: boolean) => {
        write(text)(db);
        if (fails) throw new Error("no");
      });
      insert("whole", false);
      expect(() => insert.immediate("half", true)).toThrow("no");
      const rows = db.prepare("insert into note values ('late') returning text").iterate();
      kept.push(() => insert("late", false));
      kept.push(() => insert.immediate("late", false));
      kept.push(() => rows.next());
      rows.return?.();
    };
    expect(await end(nests)).toEqual([SETTLED]);
    for (const late of kept) expect(late).toThrow(/has returned/);
    expect(notes()).toEqual(["whole"]);
  });
});

describe("better-sqlite3's other ways from a statement to its connection", () => {
  /** As better-sqlite3 names them; its types leave out the second. */
  const ways: [string, (db: Own) => unknown][] = [
    ["statement.database", (db) => db.prepare("select 1").database],
    ["transaction().database", (db) => (db.transaction(() => {}) as unknown as { readonly database: Own }).database],
    ["exec()", (db) => db.exec("select 1")],
    ["function()", (db) => db.function("oncehook_one", () => 1)],
    ["raw().database", (db) => db.prepare("select 1").raw().database],
  ];

  it.each(ways)("lead back to the guarded one: %s", async (_way, from) => {
    const { end, notes } = await openHandling();
    const kept: Own[] = [];
    const leaves: Effects = (lent) => {
      write("half")(lent);
      const found = from(lent as Own) as Own;
      expect(found === lent).toBe(true);
      kept.push(found);
      found.exec("commit");
    };
    const refused = failed({ message: expect.stringContaining("COMMIT") });
    expect(await end(leaves)).toMatchObject([refused]);
    expect(notes()).toEqual([]);
    for (const db of kept) expect(() => write("late")(db as SqliteDatabase)).toThrow(/has returned/);
  });

  it.each<[string, (db: Own) => unknown, RegExp]>([
    ["defaultSafeIntegers()", (db) => db.defaultSafeIntegers(), /./],
    ["unsafeMode()", (db) => db.unsafeMode(), /./],
    ["close()", (db) => db.close(), /not close it/],
  ])("do not change how the inbox's own statements work, or end them: %s", async (_what, change, message) => {
    const wrong = (db: SqliteDatabase) => void change(db as Own);
    const refused = { code: "invalid_argument", message: expect.stringMatching(message) };
    await expect(sqliteStore(makePath(), { onOpen: wrong }).open(contextOf())).rejects.toMatchObject(refused);
    const { end, store } = await openHandling();
    expect(await end(wrong)).toMatchObject([failed(refused)]);
    expect(await store.find({ limit: 1 })).toMatchObject({ items: [{ id: 1 }] });
  });

  it("do not begin a backup, which would go on after the effect and hold what is rolled back", async () => {
    const { end } = await openHandling();
    const copy = makePath();
    const refused = failed({ message: expect.stringContaining("backup()") });
    expect(await end((db) => void (db as Own).backup(copy))).toMatchObject([refused]);
    expect(existsSync(copy)).toBe(false);
  });
});

describe("an effect that writes through another connection", () => {
  const wrapped = (act: () => unknown) => {
    try {
      act();
    } catch (cause) {
      throw new Error("Failed query", { cause });
    }
  };

  it.each([
    ["as the driver throws it", (act: () => unknown) => act()],
    ["as an ORM wraps it", wrapped],
  ])("is told so with the fix, %s", async (_how, run) => {
    const { end, user, notes } = await openHandling();
    user.pragma("busy_timeout = 1");
    const elsewhere = () => run(() => user.prepare("insert into note values ('m')").run());
    const message = expect.stringMatching(/SQLITE_BUSY.*option "effects"/);
    const refused = failed({ code: "invalid_argument", message });
    expect(await end(elsewhere)).toMatchObject([refused]);
    expect(notes()).toEqual([]);
  });
});

describe("effects on the user's own connection", () => {
  const openOwn = (options: SqliteStoreOptions = {}) => openDesk((effects) => ({ effects, ...options }));
  const handlingOwn = (options: SqliteStoreOptions = {}) => openHandling((effects) => ({ effects, ...options }));

  it("write nothing after they returned, though the connection is the application's and an ORM has it", async () => {
    const { user, leases, settle, notes } = await openOwn();
    const [a, b] = await leases("a", "b");
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
    const settled = await settle(
      complete(a, () => orm("a")),
      complete(b, () => void orm("b"), write("b")),
    );
    write("meanwhile")(user);
    await setImmediate();
    await setImmediate();
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect(refusals).toHaveLength(6);
    expect(notes()).toEqual(["b", "meanwhile"]);
  });

  it("leave the inbox its own work that began in what follows from them", async () => {
    const { leases, settle, notes } = await openOwn();
    const [a, b] = await leases("a", "b");
    let second: ReturnType<typeof settle> | undefined;
    const begins = () =>
      void queueMicrotask(() => {
        second = settle(complete(b, write("b")));
      });
    await settle(complete(a, begins));
    expect(await second).toEqual([SETTLED]);
    expect(notes()).toEqual(["b"]);
  });

  it("run on it, with its settings left alone, and commit with the completion", async () => {
    const { end, user, store, notes } = await handlingOwn();
    user.pragma("synchronous = OFF");
    user.defaultSafeIntegers(true);
    await store.step(turn({ accepts: [event("m", 2)] }));
    let seen: unknown;
    const looks: Effects = (db) => {
      seen = db;
    };
    expect(await end(looks, write("m"))).toEqual([SETTLED]);
    expect(seen).toBe(user);
    expect(Number(user.pragma("synchronous", { simple: true }))).toBe(0);
    expect(notes()).toEqual(["m"]);
  });

  it.each(["", "insert into note values ('mine')"])(
    "are unfinished until the user's own transaction is over: %j",
    async (sql) => {
      const { end, user, notes } = await handlingOwn();
      user.exec(`begin; ${sql}`);
      const during = end(write("theirs"));
      await setImmediate();
      user.exec("rollback");
      expect(await during).toEqual([{ status: "unfinished" }]);
      expect(await end(write("theirs"))).toEqual([SETTLED]);
      expect(notes()).toEqual(["theirs"]);
    },
  );

  it("are unfinished while the user reads from it row by row or in a transaction, and hold up no delivery (I9)", async () => {
    const { user, store, leases, settle, notes } = await openOwn({ busyTimeoutMs: 20 });
    user.exec("insert into note values ('mine'), ('too')");
    const [a, b] = await leases("a", "b");
    const rows = user.prepare("select text from note").iterate();
    rows.next();
    const first = await store.step(turn({ settles: [complete(a, write("a")), complete(b)], accepts: [event("c")] }));
    expect(first.settled).toEqual([{ status: "unfinished" }, SETTLED]);
    rows.return?.();
    user.exec("begin; select * from note");
    const second = await store.step(turn({ settles: [complete(a, write("a"))], accepts: [event("d")] }));
    expect(second.settled).toEqual([{ status: "unfinished" }]);
    expect([...first.accepted, ...second.accepted]).toMatchObject([{ outcome: "accepted" }, { outcome: "accepted" }]);
    user.exec("rollback");
    expect(await settle(complete(a, write("a")))).toEqual([SETTLED]);
    expect(notes()).toEqual(["mine", "too", "a"]);
  });

  it("are not told lost when only the rest of their turn failed", async () => {
    const { lease, path, settle, notes } = await handlingOwn({ busyTimeoutMs: 20 });
    const other = connect(path);
    let locks = 0;
    const lockAfterwards = () => {
      locks++;
      queueMicrotask(() => other.exec("begin immediate"));
    };
    const completion = complete(lease, write("m"), lockAfterwards);
    await expect(settle(completion)).rejects.toMatchObject({ code: "store_unavailable" });
    other.exec("rollback");
    expect(await settle(completion)).toEqual([SETTLED]);
    expect([locks, notes()]).toEqual([1, ["m"]]);
  });

  it("refuses a connection to another file", async () => {
    const opening = sqliteStore(makePath(), { effects: connect(makePath()) }).open(contextOf());
    await expect(opening).rejects.toMatchObject({ code: "invalid_option" });
  });
});
