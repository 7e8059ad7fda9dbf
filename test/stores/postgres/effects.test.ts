/** Effects in the transaction of their event's completion, and what they must not do with it. */
import pg from "pg";
import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import type { EffectFunction } from "../../../src/inbox/store.ts";
import { type PgClient, type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { outbound } from "../../receiver/events.ts";
import { event, turn } from "../sqlite-turns.ts";
import { complete, failed, makeNotes, openDesk, openHandling, SETTLED } from "./desk.ts";
import { newPool, serve, sql } from "./place.ts";

/** pg's older way, which some libraries use. */
interface CallbackClient {
  query(...asked: readonly unknown[]): void;
}

/** As pg-cursor does it: a class of its own that writes itself to the connection. */
class Cursor {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  submit(): void {
    throw new Error("It was sent.");
  }
}

async function send(client: PgClient, query: unknown): Promise<void> {
  await (client as unknown as CallbackClient).query(query);
}

describe("ctx.commit() on Postgres", () => {
  it.each([
    ["a commit", "commit", /cannot commit or roll back/],
    ["one of several", "commit; begin", /each in a query of its own/],
    ["a query with a text", { text: "-- done\nABORT" }, /cannot commit or roll back/],
    ["a prepared query", { name: "end", text: "rollback", values: [] }, /cannot commit or roll back/],
    ["a prepared query without its text", { name: "a statement that was prepared before" }, /give the query its text/],
    ["a query object", new pg.Query("commit"), /cannot commit or roll back/],
    ["a cursor", new Cursor("commit"), /cannot commit or roll back/],
    ["another isolation", "begin isolation level serializable", /READ COMMITTED/],
  ])(
    "refuses what would end its transaction before it is sent, also if that is caught: %s",
    async (_name, query, message) => {
      const { leases, settle, notes, write } = await openDesk(newPool({ max: 1 }));
      const [a, b] = await leases("a", "b");
      const effect = async (client: PgClient) => {
        await write("before")(client);
        await send(client, query);
      };
      const caught = async (client: PgClient) => {
        await effect(client).catch(() => {});
        await write("after")(client);
      };
      for (const wrong of [effect, caught]) {
        const error = { name: "SetupError", message: expect.stringMatching(message) };
        expect(await settle(complete(a, wrong))).toMatchObject([failed(error)]);
      }
      expect(await notes()).toEqual([]);
      // The only connection is as good as before, and the lease still held.
      expect(await settle(complete(a, write("a")), complete(b, write("b")))).toEqual([SETTLED, SETTLED]);
      expect(await notes()).toEqual(["a", "b"]);
    },
  );

  it("reports that a statement's error was caught, which leaves the transaction unusable", async () => {
    const { end } = await openHandling();
    const caught = async (client: PgClient) => void (await client.query("select 1 / 0").catch(() => {}));
    expect(await end(caught)).toMatchObject([
      failed({ message: expect.stringMatching(/failed and its error was caught/) }),
    ]);
  });

  it("keeps its connection when an effect releases it, and refuses to end it", async () => {
    const { end, notes, write } = await openHandling(newPool({ max: 1 }));
    const ends = async (client: PgClient) => (client as unknown as PgPool).end();
    expect(await end(ends)).toMatchObject([failed({ message: expect.stringMatching(/do not end it/) })]);
    const releases = async (client: PgClient) => {
      client.release();
      await write("after")(client);
      client.release(true);
    };
    expect(await end(releases)).toEqual([SETTLED]);
    expect(await notes()).toEqual(["after"]);
  });

  it("refuses what an effect returned that nobody runs or waits for, and takes back what it wrote", async () => {
    const { leases, settle, notes, write } = await openDesk();
    const [a, b] = await leases("a", "b");
    const forgets = async (client: PgClient) => [await write("a")(client), write("a too")(client)];
    expect(await settle(complete(a, forgets))).toMatchObject([failed({ code: "async_effect" })]);
    const generates = function* (client: PgClient) {
      yield write("b")(client);
    };
    expect(await settle(complete(b, generates))).toMatchObject([{ status: "effect_failed" }]);
    expect(await notes()).toEqual([]);
  });

  it.each(["stored", "handled"] as const)(
    "lets an ORM begin and commit, once for each handling: ack %s",
    async (ack) => {
      const { schema, notes, write } = await makeNotes();
      const { receiver, post } = await serve(postgresStore(newPool(), { schema }), { ack });
      let runs = 0;
      receiver.onAny((_event, ctx) => {
        ctx.commit(async (client) => {
          await client.query("begin");
          await write(`run ${++runs}`)(client);
          await client.query("commit");
        });
      });
      expect(await post(outbound("queued"))).toBe(200);
      await receiver.drain();
      expect(await post(outbound("queued"))).toBe(200);
      await receiver.drain();
      expect(await notes()).toEqual(["run 1"]);
      const { items } = await receiver.inbox.find({});
      for (const { id } of items) await receiver.inbox.replay(id);
      await receiver.drain();
      expect(await notes()).toEqual(["run 1", "run 2"]);
    },
  );

  describe("makes a savepoint of a transaction within an effect", () => {
    /** In the way of an ORM: committed if `work` succeeds. */
    async function transaction(client: PgClient, work: EffectFunction<PgClient>, begin = "begin"): Promise<void> {
      await client.query(begin);
      try {
        await work(client);
        await client.query("commit");
      } catch (error) {
        await client.query("rollback");
        throw error;
      }
    }
    const undo = () => Promise.reject(new Error("undo"));

    it("and keeps what it commits, and takes back what it rolls back, also after a statement that failed", async () => {
      const { end, notes, write } = await openHandling();
      const nested = async (client: PgClient) => {
        await write("before")(client);
        await transaction(client, write("first"), "START TRANSACTION;");
        await transaction(client, () => client.query("select 1 / 0")).catch(() => {});
        const undone = async () => {
          await write("undone")(client);
          await undo();
        };
        await transaction(client, undone).catch(() => {});
        await transaction(client, write("second"));
      };
      expect(await end(nested)).toEqual([SETTLED]);
      expect(await notes()).toEqual(["before", "first", "second"]);
    });

    it("and takes back what it has committed when the effect throws after it", async () => {
      const { end, notes, write } = await openHandling();
      const nested = async (client: PgClient) => {
        await transaction(client, write("first"));
        await undo();
      };
      expect(await end(nested)).toMatchObject([{ status: "effect_failed" }]);
      expect(await notes()).toEqual([]);
    });

    it("and leaves a read-only one that: the completion writes after it", async () => {
      const { end, notes, write } = await openHandling();
      const codes: unknown[] = [];
      const nested = async (client: PgClient) => {
        await transaction(client, write("refused"), "begin read only").catch((error) => codes.push(error.code));
        await transaction(client, () => client.query("select 1"), "begin read only");
        await write("after")(client);
      };
      expect(await end(nested)).toEqual([SETTLED]);
      expect(codes).toEqual(["25006"]);
      expect(await notes()).toEqual(["after"]);
    });

    it("for callers with callbacks, with queries that are objects, and without waiting in between", async () => {
      const { end, notes, write } = await openHandling();
      const nested = async (client: PgClient) => {
        const called = client as unknown as CallbackClient;
        const answers = await Promise.all([
          new Promise((resolve) => called.query({ text: "begin", values: [] }, resolve)),
          write("undone")(client),
          new Promise((resolve) => called.query("rollback", [], resolve)),
          new Promise((resolve) => called.query({ text: "begin", callback: resolve })),
          write("kept")(client),
          client.query({ name: "named", text: "commit" }),
        ]);
        expect(answers.filter((answer) => answer === null)).toHaveLength(3);
        await client.query("savepoint mine");
        const error = await new Promise((resolve) => called.query("select 1 / 0", resolve));
        expect(error).toMatchObject({ code: "22012" });
        expect(await new Promise((resolve) => called.query("begin", resolve))).toMatchObject({ code: "25P02" });
        await client.query("rollback to savepoint mine");
      };
      expect(await end(nested)).toEqual([SETTLED]);
      expect(await notes()).toEqual(["kept"]);
    });

    it.each([
      ["one in another at the same time", ["begin", "begin", "commit", "commit"], /already open/],
      ["one more end than beginnings", ["begin", "commit", "commit"], /cannot commit or roll back/],
      ["one that is left open", ["begin"], /left a transaction open/],
      ["one whose savepoint the effect released", ["begin", "release savepoint oncehook_nested", "commit"], /left a/],
    ])("but not of %s", async (_name, texts, message) => {
      const { end, notes, write } = await openHandling();
      const nested = async (client: PgClient) => {
        await write("m")(client);
        await client.query("savepoint mine");
        for (const text of texts) await client.query(text).catch(() => client.query("rollback to mine"));
      };
      const error = { message: expect.stringMatching(message) };
      expect(await end(nested)).toMatchObject([failed(error)]);
      expect(await notes()).toEqual([]);
      expect(await end(write("later"))).toEqual([SETTLED]);
    });

    it("and notices a commit that was sent past the connection", async () => {
      const pool = newPool({ max: 1 });
      let own: PgClient | undefined;
      pool.on("acquire", (client: PgClient) => {
        own = client;
      });
      const { end, write } = await openHandling(pool);
      const commits = async (client: PgClient) => {
        await write("m")(client);
        await own?.query("commit");
      };
      const error = { message: expect.stringMatching(/ended the transaction/) };
      expect(await end(commits)).toMatchObject([failed(error)]);
    });

    it("not in one effect for the next, which belongs to somebody else", async () => {
      const { end, notes, write } = await openHandling();
      const opens = (client: PgClient) => client.query("begin");
      const closes = (client: PgClient) => client.query("commit");
      const error = { message: expect.stringMatching(/left a transaction open/) };
      expect(await end(opens, write("m"), closes)).toMatchObject([failed(error)]);
      expect(await notes()).toEqual([]);
    });
  });

  it("runs an effect again after a conflict with another transaction, and fails one that conflicts each time", async () => {
    const { leases, settle, notes, write } = await openDesk();
    const [once, always] = await leases("once", "always");
    let runs = 0;
    const contended = async (client: PgClient) => {
      await write(`run ${++runs}`)(client);
      if (runs === 1) await client.query("do $$ begin raise exception sqlstate '40001'; end $$");
    };
    expect(await settle(complete(once, contended))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["run 2"]);
    const locked = (client: PgClient) => client.query("do $$ begin raise exception sqlstate '55P03'; end $$");
    expect(await settle(complete(always, locked))).toMatchObject([failed({ code: "55P03" })]);
  });

  it("fails an effect that breaks a deferred constraint, and no other event", async () => {
    const { schema, leases, settle, notes, write } = await openDesk();
    await sql(`create table ${schema}.owner (id int primary key);
      create table ${schema}.owned (id int references ${schema}.owner deferrable initially deferred)`);
    const [a, b] = await leases("a", "b");
    const orphan = (client: PgClient) => client.query(`insert into ${schema}.owned values (1)`);
    const settled = await settle(complete(a, orphan), complete(b, write("b")));
    expect(settled).toMatchObject([failed({ code: "23503" }), SETTLED]);
    expect(await notes()).toEqual(["b"]);
  });

  it("leaves what an effect has set for its transaction to that effect: a role, limits, how to commit", async () => {
    const { schema, leases, settle, notes, write } = await openDesk();
    const role = `tenant_${schema}`;
    await sql(`create role ${role}; grant insert on public.${schema}_note to ${role}`);
    onTestFinished(() => sql(`drop owned by ${role}; drop role ${role}`).then(() => {}));
    const names = ["role", "lock_timeout", "statement_timeout", "enable_seqscan", "plan_cache_mode", "jit"];
    const values = `array[${[...names, "synchronous_commit", "search_path"].map((name) => `current_setting('${name}')`)}]`;
    await sql(`create table ${schema}.seen (during text[], after text[]);
      create function ${schema}.look() returns trigger language plpgsql as $$ begin
        update ${schema}.seen set after = ${values}; return new; end $$;
      create trigger look after update on ${schema}.event for each row execute function ${schema}.look()`);
    const [lease] = await leases("m");
    const look = async (client: PgClient) => {
      await client.query("set local lock_timeout = 7; set local statement_timeout = 8; set local enable_seqscan = on");
      await client.query(`set local synchronous_commit = off; set local search_path = ${schema}`);
      await client.query(`insert into seen select ${values}; set local role ${role}`);
    };
    expect(await settle(complete(lease, look, write("as the tenant")))).toEqual([SETTLED]);
    expect(await notes()).toEqual(["as the tenant"]);
    expect(await sql(`select during, after from ${schema}.seen`)).toEqual([
      {
        during: ["none", "7ms", "8ms", "on", "auto", "on", "off", schema],
        after: ["none", "0", "0", "off", "force_generic_plan", "off", "on", '"$user", public'],
      },
    ]);
  });

  it("finishes its event after the effects, by the server's clock", async () => {
    const { schema, end } = await openHandling();
    let ended = Number.NaN;
    const takesTime = async (client: PgClient) => {
      await client.query("select pg_sleep(0.02)");
      const { rows } = await client.query("select extract(epoch from clock_timestamp())::float8 * 1000 as now");
      ended = Math.floor(Number(rows[0]?.now));
    };
    expect(await end(takesTime)).toEqual([SETTLED]);
    const [stored] = await sql(`select finished::float8 as at from ${schema}.event`);
    expect(stored?.at).toBeGreaterThanOrEqual(ended);
  });

  it("reads with the application's own type parsers, and returns rows of the query's type parameter", async () => {
    const types = { getTypeParser: () => (value: string) => `own ${value}` };
    const { store, end } = await openHandling(newPool({ types }));
    let seen: unknown;
    const look = async (client: PgClient) => {
      const { rows } = await client.query<{ is: string }>("select true as is");
      expectTypeOf(rows[0]).toEqualTypeOf<{ is: string } | undefined>();
      seen = rows;
    };
    await end(look);
    expect(seen).toEqual([{ is: "own t" }]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 0 } });
  });

  it("commits to the disk whatever the role's default says, as do turns with and without a transaction", async () => {
    const { store, schema, leases, settle, write } = await openDesk(newPool({ options: "-c synchronous_commit=off" }));
    // At the end of the transaction: a setting may come with a later statement of it.
    await sql(`create table ${schema}.mode (kind text, at_commit text);
      create function ${schema}.note() returns trigger language plpgsql as $$ begin
        insert into ${schema}.mode values (tg_op, current_setting('synchronous_commit')); return null; end $$;
      create constraint trigger note after insert or update on ${schema}.event deferrable initially deferred for each row
        execute function ${schema}.note()`);
    const [lease] = await leases("m");
    // Its names are known, so one statement accepts it.
    await store.step(turn<PgClient>({ accepts: [event("n")] }));
    await settle(complete(lease, write("m")));
    expect(await sql(`select kind, at_commit from ${schema}.mode`)).toEqual([
      { kind: "INSERT", at_commit: "on" },
      { kind: "INSERT", at_commit: "on" },
      { kind: "UPDATE", at_commit: "on" },
    ]);
  });
});
