/** One process's store learns what another has stored: by NOTIFY, and without it by looking. */
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { type Clock, systemClock } from "../../../src/internal/clock.ts";
import { type PgClient, type PostgresStoreOptions, postgresStore } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { event, openForReceiver, turn } from "../sqlite-turns.ts";
import { ask, complete } from "./desk.ts";
import { newPool, newSchema, sql, until } from "./place.ts";

type Store = InboxStore<PgClient>;

interface Wish extends PostgresStoreOptions {
  readonly clock?: Clock;
}

/** A store of another process, as far as the server can tell. */
async function openStore(schema: string, { clock = systemClock, ...options }: Wish = {}): Promise<Store> {
  const pool = newPool({ application_name: schema });
  const store = postgresStore(pool, { schema, ...options });
  await openForReceiver(store, { clock });
  onTestFinished(() => store.close());
  return store;
}

const accept = (store: Store, id: string) => store.step(turn<PgClient>({ accepts: [event(id)] }));

function countWakes(store: Store): { count: number; stop: () => void } {
  const wakes = { count: 0, stop: () => {} };
  const wake = () => {
    wakes.count += 1;
  };
  wakes.stop = store.onWake?.(wake) ?? wakes.stop;
  return wakes;
}

async function listeners(schema: string): Promise<number[]> {
  const query = `select pid from pg_stat_activity where application_name = '${schema}' and query ~* '^(listen|select 1)'`;
  return (await sql(query)).map(({ pid }) => pid);
}

const isListening = (schema: string) => async () => (await listeners(schema)).length === 1;

/** Notifications of `schema`, as they come. */
async function listenTo(schema: string): Promise<{ count: number; ping(): Promise<void> }> {
  const client = new pg.Client({ connectionString: inject("postgresUrl") });
  await client.connect();
  onTestFinished(() => client.end());
  const heard = { count: 0, ping: async () => void (await client.query("select 1")) };
  client.on("notification", () => {
    heard.count += 1;
  });
  await client.query(`listen "oncehook ${schema}"`);
  return heard;
}

describe("onWake()", () => {
  it("is called soon after another process stored something, and not for what this one did", async () => {
    const schema = newSchema();
    const [here, there] = [await openStore(schema), await openStore(schema)];
    const wakes = countWakes(here);
    await until(isListening(schema));
    // It has heard of it too, and looked for what came before.
    await until(() => wakes.count === 1);
    const before = wakes.count;
    await accept(here, "own");
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(wakes.count).toBe(before);
    await accept(there, "theirs");
    await until(() => wakes.count > before, 2_000);
  });

  it("notifies 50 ms later, once for all that came meanwhile: of events, of their ends, and of what an operator does", async () => {
    const schema = newSchema();
    const clock = createFakeClock();
    const store = await openStore(schema, { clock });
    const heard = await listenTo(schema);
    for (const id of ["a", "b", "c"]) await accept(store, id);
    await clock.advance(49);
    await heard.ping();
    expect(heard.count).toBe(0);
    await clock.advance(1);
    await until(() => heard.count > 0);
    await heard.ping();
    expect(heard.count).toBe(1);
    const [lease] = (await store.step(turn<PgClient>({ claim: { limit: 1 } }))).leases;
    await ask(store, complete(lease));
    await clock.advance(50);
    await until(() => heard.count === 2);
    expect(await store.act({ kind: "discard", event: 2 }, "operator")).toMatchObject({ ok: true });
    await clock.advance(50);
    await until(() => heard.count === 3);
  });

  it("listens again after its connection was lost, and looks by itself meanwhile", async () => {
    const schema = newSchema();
    const clock = createFakeClock();
    const store = await openStore(schema, { clock });
    const other = await openStore(schema);
    const wakes = countWakes(store);
    await until(isListening(schema));
    const [lost] = await listeners(schema);
    await sql(`select pg_terminate_backend(${lost})`);
    await until(async () => (await listeners(schema)).length === 0);
    const before = wakes.count;
    await clock.advance(1_000);
    // Once by itself, and once more as soon as it listens.
    expect(wakes.count).toBeGreaterThan(before);
    await until(isListening(schema));
    await until(() => wakes.count === before + 2);
    expect(await listeners(schema)).not.toEqual([lost]);
    const again = wakes.count;
    await accept(other, "m");
    await until(() => wakes.count > again, 2_000);
  });

  it("looks every five seconds while it listens, and every second with listen: false", async () => {
    const schema = newSchema();
    const clock = createFakeClock();
    const quiet = countWakes(await openStore(schema, { clock, listen: false }));
    const listening = countWakes(await openStore(schema, { clock }));
    await until(isListening(schema));
    await until(() => listening.count === 1);
    await clock.advance(4_999);
    expect([quiet.count, listening.count]).toEqual([4, 1]);
    await clock.advance(1);
    expect([quiet.count, listening.count]).toEqual([5, 2]);
  });

  it("calls each listener until it is stopped or the store is closed, and holds no connection for nobody", async () => {
    const schema = newSchema();
    const clock = createFakeClock();
    const store = await openStore(schema, { clock });
    const [first, second] = [countWakes(store), countWakes(store)];
    await until(isListening(schema));
    await until(() => first.count === 1 && second.count === 1);
    first.stop();
    first.stop();
    const before = [first.count, second.count];
    await clock.advance(5_000);
    expect([first.count, second.count]).toEqual([before[0], (before[1] ?? 0) + 1]);
    second.stop();
    await until(async () => (await listeners(schema)).length === 0);
    const third = countWakes(store);
    await until(isListening(schema));
    await clock.advance(5_000);
    expect(third.count).toBeGreaterThan(0);
    await store.close();
    await until(async () => (await listeners(schema)).length === 0);
    const last = third.count;
    // Harmless by then.
    third.stop();
    await clock.advance(60_000);
    expect(third.count).toBe(last);
  });
});

describe("close()", () => {
  it("waits for an act and a turn under way, and tells of both, also without listening", async () => {
    const schema = newSchema();
    const store = await openStore(schema, { clock: createFakeClock(), listen: false });
    const heard = await listenTo(schema);
    await accept(store, "m");
    const underWay = [accept(store, "n"), store.act({ kind: "discard", event: 1 }, "operator")];
    await store.close();
    expect(await Promise.all(underWay)).toMatchObject([{ accepted: [{ outcome: "accepted" }] }, { ok: true }]);
    await heard.ping();
    expect(heard.count).toBe(1);
  });

  it("leaves no connection and no timer that would keep the process", async () => {
    const schema = newSchema();
    const resources = () => process.getActiveResourcesInfo().filter((kind) => /TCP|Timeout/.test(kind)).length;
    const before = resources();
    const store = postgresStore(inject("postgresUrl"), { schema });
    await openForReceiver(store);
    countWakes(store);
    await accept(store, "m");
    await store.close();
    await until(() => resources() <= before, 2_000);
  });
});
