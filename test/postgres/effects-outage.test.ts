/** Connections that break under an effect, or while its commit is under way: no failure of the handler's, and nothing twice. */
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { Effect } from "../../src/inbox/store.ts";
import type { PgClient, PgPool, PgQuery } from "../../src/stores/postgres.ts";
import { postgresStore } from "../../src/stores/postgres.ts";
import { outbound } from "../receiver/events.ts";
import { ask, complete, leases, makeNotes, openDesk, openDeskOn, settle } from "./desk.ts";
import { newPool, serve, sql, until } from "./place.ts";

/** What pg has beside what the store takes of it. */
type Connection = PgClient & { readonly processID: number; readonly connection: { readonly stream: Socket } };

const terminate = (client: PgClient) => sql(`select pg_terminate_backend(${(client as Connection).processID})`);

/** Writes, and loses its connection the first time it runs. */
function interrupted(write: Effect<PgClient>, lose: (client: PgClient) => unknown): Effect<PgClient> {
  let runs = 0;
  return async (client) => {
    await write(client);
    if (runs++ === 0) await lose(client);
  };
}

describe("an effect whose connection breaks", () => {
  it("does not use up its event's last attempt, and runs again without its handler", async () => {
    const { schema, notes, write } = await makeNotes();
    const { receiver, post } = await serve(postgresStore(newPool(), { schema }), { maxAttempts: 1 });
    let runs = 0;
    receiver.onAny((_event, ctx) => {
      const lose = (client: PgClient) => terminate(client).then(() => client.query("select 1"));
      ctx.commit(interrupted(write(`run ${++runs}`), lose));
    });
    await receiver.start();
    expect(await post(outbound("queued"))).toBe(200);
    await until(async () => (await receiver.inbox.stats()).gauges.pending === 0);
    expect((await receiver.inbox.stats()).counters).toMatchObject({ handled: 1, retried: 0, deadLettered: 0 });
    expect(await notes()).toEqual(["run 1"]);
  });

  it.each([
    ["that tells it", (client: PgClient) => client.query("select pg_sleep(20)")],
    [
      "that hides it behind an error of its own",
      (client: PgClient) =>
        client.query("select pg_sleep(20)").catch(() => {
          throw new Error("The order could not be saved.");
        }),
    ],
    ["that forgets it", (client: PgClient) => client.query("select pg_sleep(20)").catch(() => {})],
  ])("is unfinished: one %s", async (_name, wait) => {
    const { store, notes, write } = await openDesk();
    const [a, b] = await leases(store, "a", "b");
    const lose = (client: PgClient) => Promise.all([wait(client), terminate(client)]);
    const broken = complete(a, interrupted(write("a"), lose));
    // The neighbour, and the turn they are in, are none the worse.
    expect(await settle(store, broken, complete(b, write("b")))).toEqual([
      { status: "settled" },
      { status: "settled" },
    ]);
    expect(await notes()).toEqual(["a", "b"]);
    expect((await store.stats()).counters).toMatchObject({ handled: 2 });
  });

  it("is unfinished on a server that has become a standby", async () => {
    const { store, notes, write } = await openDesk();
    const [lease] = await leases(store, "m");
    const refused = interrupted(write("m"), (client) =>
      client.query("set local transaction_read_only = on").then(() => write("more")(client)),
    );
    expect(await ask(store, complete(lease, refused))).toEqual([{ status: "unfinished" }]);
    expect(await settle(store, complete(lease, refused))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual(["m"]);
  });

  it("is not what an effect has whose other service refuses it", async () => {
    const { store } = await openDesk();
    const [lease] = await leases(store, "m");
    const cause = Object.assign(new Error("connect ECONNREFUSED"), { errno: -111, syscall: "connect" });
    const calls = () => Promise.reject(cause);
    expect(await settle(store, complete(lease, calls))).toEqual([{ status: "effect_failed", error: cause }]);
  });
});

/** A pool on which the commit of the connection that is `cut` gets no answer, whether or not it reached the server. */
function cuttingPool(reaches: boolean): { readonly pool: PgPool; cut: number | null } {
  const inner = newPool();
  const cutting = {
    cut: null as number | null,
    pool: {
      end: () => inner.end(),
      on: (event: "error", listener: (error: Error) => void) => inner.on(event, listener),
      connect(callback: (error: Error | undefined, client: PgClient | undefined) => void) {
        inner.connect((error, client) => callback(error, client === undefined ? undefined : watched(client as never)));
      },
    },
  };
  const watched = (client: Connection): PgClient =>
    new Proxy(client, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        if (key !== "query") return value.bind(target);
        return async (query: PgQuery | string, values?: readonly unknown[]) => {
          const isCut = typeof query !== "string" && query.text === "commit" && cutting.cut === target.processID;
          if (!isCut) return typeof query === "string" ? target.query(query, values) : target.query(query);
          cutting.cut = null;
          if (reaches) await target.query(query);
          target.connection.stream.destroy();
          throw new Error("Connection terminated unexpectedly");
        };
      },
    });
  return cutting;
}

describe("a commit that is not answered", () => {
  it.each([
    ["had happened, so the effect does not run again", true, 1],
    ["had not happened, so the effect runs again", false, 2],
  ])("%s", async (_name, reaches, runs) => {
    const cutting = cuttingPool(reaches);
    const { store, notes, write } = await openDeskOn(cutting.pool);
    const [lease] = await leases(store, "m");
    let ran = 0;
    const effect = async (client: PgClient) => {
      await write(`run ${++ran}`)(client);
      if (ran === 1) cutting.cut = (client as Connection).processID;
    };
    expect(await ask(store, complete(lease, effect))).toEqual([{ status: "unfinished" }]);
    expect(await settle(store, complete(lease, effect))).toEqual([{ status: "settled" }]);
    expect(await notes()).toEqual([`run ${runs}`]);
    expect(await store.stats()).toMatchObject({ counters: { handled: 1 }, gauges: { pending: 0 } });
  });
});
