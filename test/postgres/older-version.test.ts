/** A process of an older version works on an inbox that a newer one has migrated. What the first schema wrote is SQL here. */
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { migratePg, PG_MIGRATIONS } from "../../src/stores/postgres/migrate.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { createSealing, SLOTS } from "../stores/sqlite-secrets-place.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { newPool, newSchema, sql, until } from "./place.ts";
import { secretsIn } from "./secrets-place.ts";

/** Accepts an event of a new message, `m 7`. */
const ACCEPT = (schema: string, number: number) => `
  with new_lane as (insert into ${schema}.lane (id, client, tag, message, status, ready_at)
      values (nextval('${schema}.lane_id'), 1, 0, convert_to('m ${number}', 'UTF8'), 3, 1) returning id),
    new_event as (insert into ${schema}.event (id, lane, seq, kind, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred,
        signed, accepted, digest, has_body)
      select nextval('${schema}.event_id'), id, 1, 1, 0, 0, false, false, 0, false, 90000, 1, 1, 1, '\\x00', false from new_lane)
  update ${schema}.tally set accepted = accepted + 1, pending = pending + 1 where instance = 0`;

async function openIn(schema: string): Promise<InboxStore<PgClient>> {
  const store = postgresStore(inject("postgresUrl"), { schema, listen: false });
  await store.open(contextOf());
  onTestFinished(() => store.close());
  return store;
}

const claim = async (store: InboxStore<PgClient>, mode: "ordinary" | "recover") => {
  const { leases } = await store.step(turn<PgClient>({ claim: { limit: 1, mode } }));
  const [lease] = leases;
  if (lease === undefined) throw new Error("Nothing was leased.");
  return lease;
};

describe("a process of an older version", () => {
  it("goes on accepting while two processes of this version migrate at the same time, once", async () => {
    const schema = newSchema();
    // pg's own types say more than is needed here.
    const client = (await newPool({ max: 1 }).connect()) as unknown as PgClient;
    onTestFinished(() => client.release());
    await migratePg({ client, schema: `"${schema}"`, location: schema }, contextOf(), PG_MIGRATIONS.slice(0, 1));
    await sql(
      `insert into ${schema}.client (name) values ('client'); insert into ${schema}.kind (name) values ('sent')`,
    );
    let isOpen = false;
    let accepted = 0;
    const accepting = (async () => {
      for (; !isOpen || accepted < 20; accepted++) await sql(ACCEPT(schema, accepted));
    })();
    const secrets = secretsIn({ schema, sealing: createSealing() });
    const [newer] = await Promise.all([openIn(schema), secrets.write("inbound", SLOTS, 0)]);
    isOpen = true;
    await accepting;
    expect(await sql(`select value from ${schema}.meta where key in ('schema', 'min_reader') order by key`)).toEqual([
      { value: "1" },
      { value: `${PG_MIGRATIONS.length}` },
    ]);
    expect(await secrets.read("inbound")).toEqual({ ...SLOTS, revision: 1 });
    expect((await newer.stats()).counters.accepted).toBe(accepted);
    const { leases } = await newer.step(turn<PgClient>({ claim: { limit: accepted + 1 } }));
    expect(leases.map(({ attempt }) => attempt)).toEqual(Array.from({ length: accepted }, () => 1));
  });

  it("goes on accepting while a later one cannot change its tables yet, for effects that take long", async () => {
    const schema = newSchema();
    const [client, effects] = [await newPool({ max: 1 }).connect(), await newPool({ max: 1 }).connect()];
    onTestFinished(() => [client, effects].forEach((one) => void one.release()));
    const place = { client: client as unknown as PgClient, schema: `"${schema}"`, location: schema };
    await migratePg(place, contextOf(), PG_MIGRATIONS.slice(0, 3));
    await sql(
      `insert into ${schema}.client (name) values ('client'); insert into ${schema}.kind (name) values ('sent')`,
    );
    await sql(ACCEPT(schema, 0));
    await effects.query(`begin; select from ${schema}.lane for update`);
    const opening = openIn(schema);
    const waiting = `select 1 from pg_stat_activity where query ~ 'lock table.*${schema}|alter table lane' and wait_event_type = 'Lock'`;
    for (let number = 1; number <= 3; number++) {
      await until(async () => (await sql(waiting)).length > 0);
      await sql(`set statement_timeout = 5000; ${ACCEPT(schema, number)}`);
    }
    await effects.query("rollback");
    expect((await (await opening).stats()).counters.accepted).toBe(4);
  });

  it("goes on with all it does while a later one adds columns to what it reads", async () => {
    const schema = newSchema();
    const store = await openIn(schema);
    const work = async (sequence: number) => {
      await store.step(turn<PgClient>({ accepts: [event("m", sequence)] }));
      const lease = await claim(store, "ordinary");
      await store.step(turn<PgClient>({ settles: [{ kind: "complete", lease, outcome: "handled", effects: [] }] }));
      expect((await store.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }))).leases).toEqual([]);
      const lane = await store.lane(lease.lane);
      const found = [await store.lane(lease.key), (await store.findLanes({ limit: 1 })).items[0]];
      expect(found).toMatchObject([{ id: lease.lane }, { id: lease.lane }]);
      expect((await store.export(0, 1)).map(({ id }) => id)).toEqual([lease.lane]);
      return lane?.events.map(({ state }) => state);
    };
    // More than one connection has prepared them by then.
    await Promise.all([work(1), store.lane(1), store.lane(1)]);
    await sql(
      ["lane", "event", "gap", "body", "tally"]
        .map((table) => `alter table ${schema}.${table} add later int`)
        .join(";"),
    );
    expect(await work(2)).toEqual(["done", "done"]);
    expect(await work(3)).toEqual(["done", "done", "done"]);
  });

  it("counts its own attempts, whatever the claim before it left on the lane (I7)", async () => {
    const schema = newSchema();
    const store = await openIn(schema);
    await store.step(turn<PgClient>({ accepts: [event("m", 1), event("m", 2)] }));
    const failure = { code: "handler_failed", message: "", durationMs: 1 };
    const lease = await claim(store, "ordinary");
    await store.step(turn<PgClient>({ settles: [{ kind: "retry", lease, failure, delayMs: 0 }] }));
    expect(await claim(store, "ordinary")).toMatchObject({ sequence: 1, attempt: 2 });
    // The older one recovers it, completes it, claims the next, and is killed.
    await sql(`update ${schema}.event set state = 1, outcome = 1, keep = 1, finished = 1, attempts = 3 where seq = 1;
      update ${schema}.event set attempts = 1, started = 7 where seq = 2;
      update ${schema}.lane set epoch = epoch + 2, cursor = 2, ready_at = 0, leased = (select id from ${schema}.event where seq = 2)`);
    const { items } = await store.find({ limit: 1 });
    expect(items).toMatchObject([{ sequence: 2, attempts: 1, startedAt: 7 }]);
    expect(await claim(store, "recover")).toMatchObject({ sequence: 2, attempt: 2 });
  });

  it("quarantines bodies without their signer: they count for each secret of their slot and scope", async () => {
    const schema = newSchema();
    const client = (await newPool({ max: 1 }).connect()) as unknown as PgClient;
    onTestFinished(() => client.release());
    await migratePg({ client, schema: `"${schema}"`, location: schema }, contextOf(), PG_MIGRATIONS.slice(0, 4));
    const insert = (digest: string) =>
      sql(`insert into ${schema}.quarantine (digest, reason, slot, scope, signed, accepted, bytes, raw)
      values ('${digest}', 'invalid_json', 'current', 'inbound', 1, 1, 1, '{')`);
    await insert("before the migration");
    const store = await openIn(schema);
    await insert("after the migration");
    const body = (text: string, scope: string, signer: string) => ({
      ...{ reason: "invalid_json", slot: "current", scope, signer, signedAt: 1, trace: null },
      ...{ digest: Buffer.alloc(32, text), raw: Buffer.from(text) },
    });
    const quarantineQuota = { maxRows: 2, maxBytes: 1_000 };
    const quarantines = [body("a", "inbound", "s1"), body("b", "inbound", "s2"), body("c", "delivery", "s3")];
    const step = async (some: typeof quarantines) =>
      (await store.step(turn<PgClient>({ quarantines: some, quarantineQuota }))).quarantined;
    expect(await step(quarantines)).toEqual(["full", "full", "held"]);
    await sql(`update ${schema}.quarantine set state = 2 where signer is null`);
    expect(await step(quarantines.slice(0, 2))).toEqual(["held", "held"]);
  });
});
