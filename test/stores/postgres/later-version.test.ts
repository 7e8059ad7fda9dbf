/** A process of this version works on an inbox that a later one migrates. */
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { InboxStore, Lease } from "../../../src/inbox/store.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { becomeLater } from "../../support/later-version.ts";
import { createSealing } from "../sqlite-secrets-place.ts";
import { event, turn } from "../sqlite-turns.ts";
import { ask, complete, openAt } from "./desk.ts";
import { newPool, newSchema, secretsIn, sql, until } from "./place.ts";

/** A process with a pool of its own. */
const openIn = (schema: string) => openAt(schema, inject("postgresUrl"));

/** Accepts an event of a new message. */
const accept = async (store: InboxStore<PgClient>, number: number) => {
  const { accepted } = await store.step(turn<PgClient>({ accepts: [event(`m ${number}`)] }));
  expect(accepted).toMatchObject([{ outcome: "accepted" }]);
};

describe("a process of the version before", () => {
  it("goes on accepting while two of a later one cannot change its tables yet, for effects that take long", async () => {
    const schema = newSchema();
    const older = await openIn(schema);
    await accept(older, 0);
    onTestFinished(becomeLater());
    const effects = await newPool({ max: 1 }).connect();
    onTestFinished(() => effects.release());
    await effects.query(`begin; select from ${schema}.lane for update`);
    const opening = Promise.all([openIn(schema), secretsIn({ schema, sealing: createSealing() }).read("inbound")]);
    const waiting = `select 1 from pg_stat_activity where query ~ 'lock table.*${schema}|alter table lane' and wait_event_type = 'Lock'`;
    for (let number = 1; number <= 3; number++) {
      await until(async () => (await sql(waiting)).length > 0);
      await accept(older, number);
    }
    await effects.query("rollback");
    const [newer] = await opening;
    expect((await newer.stats()).counters.accepted).toBe(4);
  });

  it("goes on with all it does while a later one adds columns to what it reads", async () => {
    const schema = newSchema();
    const store = await openIn(schema);
    const work = async (sequence: number) => {
      await store.step(turn<PgClient>({ accepts: [event("m", sequence)] }));
      const lease = (await store.step(turn<PgClient>({ claim: { limit: 1 } }))).leases[0] as Lease;
      await ask(store, complete(lease));
      expect((await store.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }))).leases).toEqual([]);
      const lane = await store.lane(lease.lane);
      const found = [await store.lane(lease.key), (await store.findLanes({ limit: 1 })).items[0]];
      expect(found).toMatchObject([{ id: lease.lane }, { id: lease.lane }]);
      expect((await store.export(0, 1)).map(({ id }) => id)).toEqual([lease.lane]);
      return lane?.events.map(({ state }) => state);
    };
    // More than one connection has prepared them by then.
    await Promise.all([work(1), store.lane(1), store.lane(1)]);
    const tables = ["lane", "event", "gap", "body", "tally"];
    await sql(tables.map((table) => `alter table ${schema}.${table} add later int`).join(";"));
    expect(await work(2)).toEqual(["done", "done"]);
    expect(await work(3)).toEqual(["done", "done", "done"]);
  });
});
