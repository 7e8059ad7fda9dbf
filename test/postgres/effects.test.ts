/** Effects in the transaction of their event's completion, and what they must not do with it. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { Effect, InboxStore, Lease, Settle } from "../../src/inbox/store.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { outbound } from "../receiver/events.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { newPool, newSchema, serve, sql } from "./place.ts";

type Store = InboxStore<PgClient>;

interface Desk {
  readonly store: Store;
  readonly notes: () => Promise<unknown[]>;
  readonly write: (text: string) => Effect<PgClient>;
}

async function makeNotes(): Promise<Omit<Desk, "store"> & { readonly schema: string }> {
  const schema = newSchema();
  await sql(`create table public.${schema}_note (text text not null unique)`);
  onTestFinished(() => sql(`drop table public.${schema}_note`).then(() => {}));
  return {
    schema,
    notes: async () => (await sql(`select text from public.${schema}_note order by text`)).map(({ text }) => text),
    write: (text) => (client) => client.query(`insert into public.${schema}_note values ($1)`, [text]),
  };
}

async function openDesk(options = {}): Promise<Desk> {
  const { schema, ...desk } = await makeNotes();
  const store = postgresStore(newPool(options), { schema, listen: false });
  await store.open(contextOf());
  onTestFinished(() => store.close());
  return { store, ...desk };
}

async function leases(store: Store, ...ids: readonly string[]): Promise<readonly Lease[]> {
  const accepts = ids.map((id) => event(id));
  return (await store.step(turn<PgClient>({ accepts, claim: { limit: ids.length } }))).leases;
}

function complete(lease: Lease | undefined, ...effects: readonly Effect<PgClient>[]): Settle<PgClient> {
  if (lease === undefined) throw new Error("There is no lease.");
  return { kind: "complete", lease, outcome: "handled", effects };
}

const settle = async (store: Store, ...settles: readonly Settle<PgClient>[]) =>
  (await store.step(turn<PgClient>({ settles }))).settled;

describe("ctx.commit() on Postgres", () => {
  it("writes exactly once, together with the completion, though its handler runs twice", async () => {
    const { schema, notes, write } = await makeNotes();
    const { receiver, post } = await serve(postgresStore(newPool(), { schema }));
    let runs = 0;
    receiver.onAny((_event, ctx) => {
      ctx.commit(write(`run ${++runs}`));
      if (runs === 1) throw new Error("after it was registered");
    });
    expect(await post(outbound("queued"))).toBe(200);
    await receiver.drain();
    await sql(`update ${schema}.lane set ready_at = 0 where ready_at is not null`);
    await receiver.drain();
    expect(await post(outbound("queued"))).toBe(200);
    await receiver.drain();
    expect(await notes()).toEqual(["run 2"]);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ accepted: 1, handled: 1 });
  });

  it("settles the neighbours of an effect that throws, and takes back what it wrote before", async () => {
    const { store, notes, write } = await openDesk();
    const [a, b, c] = await leases(store, "a", "b", "c");
    const rejects = async (client: PgClient) => {
      await write("b")(client);
      throw new Error("no");
    };
    const settled = await settle(store, complete(a, write("a")), complete(b, rejects), complete(c, write("c")));
    expect(settled).toMatchObject([
      { status: "settled" },
      { status: "effect_failed", error: { message: "no" } },
      { status: "settled" },
    ]);
    expect(await notes()).toEqual(["a", "c"]);
    expect(await settle(store, complete(b, write("later")))).toEqual([{ status: "settled" }]);
  });

  it.each([
    [
      "caught",
      /failed and its error was caught/,
      async (client: PgClient) => void (await client.query("select 1 / 0").catch(() => {})),
    ],
    ["commit", /ended the transaction/, (client: PgClient) => client.query("commit")],
    ["commit; begin", /ended the transaction/, (client: PgClient) => client.query("commit; begin")],
    ["rollback", /ended the transaction/, (client: PgClient) => client.query("rollback")],
    ["release", /do not release it/, async (client: PgClient) => client.release()],
  ])("says what an effect does wrong with its transaction: %s", async (_name, message, effect) => {
    const { store, notes, write } = await openDesk({ max: 1 });
    const [lease] = await leases(store, "m");
    const [failed] = await settle(store, complete(lease, effect));
    expect(failed).toMatchObject({ status: "effect_failed", error: { name: "SetupError" } });
    expect(String(failed?.status === "effect_failed" && failed.error)).toMatch(message);
    // The only connection is as good as before, and the lease still held.
    expect(await settle(store, complete(lease, write("later")))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual(["later"]);
  });

  it("refuses a query after the effect has ended", async () => {
    const { store } = await openDesk();
    const [lease] = await leases(store, "m");
    let kept: PgClient | null = null;
    const keep = (client: PgClient) => {
      kept = client;
    };
    expect(await settle(store, complete(lease, keep))).toEqual([{ status: "settled" }]);
    expect(() => kept?.query("select 1")).toThrow(/effect has ended/);
  });

  it("lets an effect go on after its own savepoint", async () => {
    const { store, notes, write } = await openDesk();
    const [lease] = await leases(store, "m");
    const careful = async (client: PgClient) => {
      await client.query("savepoint mine");
      await client.query("select 1 / 0").catch(() => client.query("rollback to savepoint mine"));
      await write("still")(client);
    };
    expect(await settle(store, complete(lease, careful))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual(["still"]);
  });

  it("fails one event when the server ends a connection that waits too long, and the process goes on", async () => {
    const { store, notes, write } = await openDesk({ options: "-c idle_in_transaction_session_timeout=60" });
    const [slow, quick] = await leases(store, "slow", "quick");
    const waits = async (client: PgClient) => {
      await write("slow")(client);
      await new Promise((resolve) => setTimeout(resolve, 200));
      await write("slower")(client);
    };
    const settled = await settle(store, complete(slow, waits), complete(quick, write("quick")));
    expect(settled.map(({ status }) => status)).toEqual(["effect_failed", "settled"]);
    expect(await notes()).toEqual(["quick"]);
  });

  it("runs an effect again that another transaction was in the way of", async () => {
    const { store, notes, write } = await openDesk();
    const [lease] = await leases(store, "m");
    let runs = 0;
    const contended = async (client: PgClient) => {
      await write(`run ${++runs}`)(client);
      if (runs === 1) await client.query("do $$ begin raise exception sqlstate '40001'; end $$");
    };
    expect(await settle(store, complete(lease, contended))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual(["run 2"]);
  });

  it("reads with the application's own type parsers", async () => {
    const types = { getTypeParser: () => (value: string) => `own ${value}` };
    const { store } = await openDesk({ types });
    const [lease] = await leases(store, "m");
    let seen: unknown;
    const look = async (client: PgClient) => {
      seen = (await client.query("select true as is")).rows;
    };
    await settle(store, complete(lease, look));
    expect(seen).toEqual([{ is: "own t" }]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 0 } });
  });

  it("commits to the disk whatever the role's default says", async () => {
    const { schema, write } = await makeNotes();
    const store = postgresStore(newPool({ options: "-c synchronous_commit=off" }), { schema, listen: false });
    await store.open(contextOf());
    onTestFinished(() => store.close());
    await sql(`create table public.${schema}_commit (kind text, mode text);
      create function ${schema}.note() returns trigger language plpgsql as $$ begin
        insert into public.${schema}_commit values (tg_op, current_setting('synchronous_commit')); return new; end $$;
      create trigger note after insert or update on ${schema}.event for each row execute function ${schema}.note()`);
    onTestFinished(() => sql(`drop table public.${schema}_commit`).then(() => {}));
    const [lease] = await leases(store, "m");
    await settle(store, complete(lease, write("m")));
    const modes = await sql(`select kind, mode from public.${schema}_commit`);
    expect(modes).toEqual([
      { kind: "INSERT", mode: "on" },
      { kind: "UPDATE", mode: "on" },
    ]);
  });
});

it("hands the effects of a batch to several connections, and to one in turn", async () => {
  for (const max of [1, 4]) {
    const { store, notes, write } = await openDesk({ max });
    const held = await leases(store, "a", "b", "c", "d");
    const settled = await settle(store, ...held.map((lease, index) => complete(lease, write(`${index}`))));
    expect(settled.map(({ status }) => status)).toEqual(Array(4).fill("settled"));
    expect(await notes()).toEqual(["0", "1", "2", "3"]);
  }
});
