/** Numbers that a process remembers for names, and a server that no longer knows them. */
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../../src/inbox/store.ts";
import { systemClock } from "../../../src/internal/clock.ts";
import { NameBook } from "../../../src/stores/postgres/names.ts";
import { PgStatements, withSession } from "../../../src/stores/postgres/session.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { event, quarantine, turn } from "../sqlite-turns.ts";
import { complete, leases, openAt, settle } from "./desk.ts";
import { newPool, newSchema, sql, until } from "./place.ts";

/** A store with an event behind it, whose names it remembers; `failOver` ends its connections once the server has changed. */
async function remembering() {
  const schema = newSchema();
  const pool = newPool({ application_name: schema });
  const store = await openAt(schema, pool);
  await settle(store, complete((await leases(store, "before"))[0]));
  const failOver = async (change: string) => {
    await sql(change.replaceAll("@", schema));
    const end = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${schema}'`;
    // The pool may make one to tell other processes meanwhile.
    await until(async () => (await sql(end)).length === 0 && pool.totalCount === 0);
  };
  return { schema, store, failOver };
}

const claimAll = (store: InboxStore<PgClient>) => store.step(turn<PgClient>({ claim: { limit: 10 } }));
/** The last commits of the old server never came to the new one. */
const LOSES = "truncate @.lane, @.event, @.body, @.kind, @.client";

describe("NameBook", () => {
  it("forgets when it holds more than 10,000, but not for who has begun", async () => {
    const { schema } = await remembering();
    const access = { pool: newPool(), clock: systemClock, schema, statements: new PgStatements(schema, true) };
    const naming = Array.from({ length: 10_001 }, (_, index) => ({
      lane: { apiClientId: "client" },
      eventType: `message.${index}`,
    }));
    await withSession(access, async (session) => {
      const book = new NameBook();
      const begun = book.on(session);
      await begun.enter(session, naming.slice(1));
      expect(book.on(session)).toBe(begun);
      await begun.enter(session, naming);
      expect(book.on(session).knows(naming.slice(0, 1))).toBe(false);
      expect([begun.knows(naming), begun.kindId("message.0")]).toEqual([true, expect.any(Number)]);
    });
  });
});

describe("after a failover that lost the last commits", () => {
  it("enters the names of what comes anew, and every lane goes on (I9, I10)", async () => {
    const { schema, store, failOver } = await remembering();
    await failOver(LOSES);
    const { accepted } = await store.step(turn<PgClient>({ accepts: [event("after")] }));
    expect(accepted).toMatchObject([{ outcome: "accepted" }]);
    // Another process remembers nothing.
    const other = await openAt(schema);
    const { leases: taken } = await claimAll(other);
    expect(taken).toMatchObject([{ key: event("after").lane, eventType: "message.sent" }]);
    expect(await settle(other, complete(taken[0]))).toEqual([{ status: "settled" }]);
  });

  it("takes no number for the name that another process has given it since", async () => {
    const { store, failOver } = await remembering();
    await failOver("update @.kind set name = 'message.failed'; update @.client set name = 'another'");
    await store.step(turn<PgClient>({ accepts: [event("after")] }));
    expect((await claimAll(store)).leases).toMatchObject([{ key: event("after").lane, eventType: "message.sent" }]);
    const before = { ...event("before").lane, apiClientId: "another" };
    expect(await store.lane(before)).toMatchObject({ key: before, events: [{ eventType: "message.failed" }] });
  });

  it("replays a quarantined body whose names were lost", async () => {
    const { schema, store, failOver } = await remembering();
    const quarantines = [quarantine(Buffer.from("{"))];
    await store.step(turn<PgClient>({ quarantines }));
    await failOver(LOSES);
    const { items } = await store.findQuarantined({ limit: 1 });
    const request = { kind: "replay_quarantined", event: event("held") } as const;
    expect(await store.act({ ...request, quarantine: items[0]?.id ?? 0 }, "a test")).toMatchObject({ ok: true });
    expect((await claimAll(await openAt(schema))).leases).toMatchObject([{ eventType: "message.sent" }]);
  });

  it("reports a table that does not keep the entered names", async () => {
    const { schema, store } = await remembering();
    await sql(`create function ${schema}.swallow() returns trigger language plpgsql as 'begin return null; end';
      create trigger swallow before insert on ${schema}.kind for each row execute function ${schema}.swallow()`);
    const accepts = [event("after", 1, { eventType: "message.new" })];
    await expect(store.step(turn<PgClient>({ accepts }))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/new names do not stay in its tables/),
    });
  });
});

const DAY = 86_400_000;
const POLICY = { handledBodiesMs: DAY, otherBodiesMs: DAY, identitiesMs: DAY, deadMs: DAY, batch: 1_000 };

/** Two processes of one inbox. Both remember the names of an event that is handled and old enough to be pruned. */
async function aged() {
  const schema = newSchema();
  const clock = createFakeClock(Date.now());
  const rare = (id: string, sequence = 1) =>
    event(id, sequence, {
      ...{ occurredAt: clock.now(), signedAt: clock.now(), eventType: "message.rare" },
      lane: { apiClientId: "rare", tag: "outbound", messageId: id },
    });
  const common = () => event(`common ${clock.now()}`, 1, { occurredAt: clock.now(), signedAt: clock.now() });
  const [store, other] = [await openAt(schema, newPool(), { clock }), await openAt(schema, newPool(), { clock })];
  for (const each of [store, other]) {
    const accepts = [rare(each === store ? "one" : "two")];
    const { leases: taken } = await each.step(turn<PgClient>({ accepts, claim: { limit: 1 } }));
    await settle(each, complete(taken[0]));
  }
  await clock.advance(2 * DAY);
  await store.step(turn<PgClient>({ accepts: [common()] }));
  const stored = `select convert_from(name, 'UTF8') as name from ${schema}.kind
    union all select convert_from(name, 'UTF8') from ${schema}.client order by 1`;
  const names = async () => (await sql(stored)).map(({ name }) => name);
  return { schema, store, other, rare, names };
}

describe("pruned names", () => {
  it("are pruned with the last row that uses them, and no others", async () => {
    const { store, names } = await aged();
    expect(await names()).toEqual(["client", "message.rare", "message.sent", "rare"]);
    expect(await store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2 });
    expect(await names()).toEqual(["client", "message.sent"]);
  });

  // The first event of a message needs one statement.
  it.each([
    ["one statement", 1],
    ["a transaction", 2],
  ])("are seen by a write that has waited for them to go, in %s", async (_how, sequence) => {
    const { schema, other, rare, names } = await aged();
    // What a pruning process does, held open in the middle.
    const pruning = await newPool({ max: 1 }).connect();
    await pruning.query(`begin; lock table ${schema}.lane, ${schema}.event in share mode`);
    const accepting = other.step(turn<PgClient>({ accepts: [rare("new", sequence)] }));
    const waits = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ '${schema}' and query ~ 'insert into'`;
    await until(async () => (await sql(waits)).length > 0);
    await pruning
      .query(`delete from ${schema}.event where kind in (select id from ${schema}.kind where name = 'message.rare')`)
      .catch(() => {});
    await pruning.query(`delete from ${schema}.kind where name = 'message.rare'; delete from ${schema}.client where name = 'rare';
      update ${schema}.meta set value = '1' where key = 'names_pruned'; commit`);
    pruning.release();
    expect((await accepting).accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(await names()).toContain("message.rare");
    const lanes =
      await sql(`select 1 from ${schema}.lane l join ${schema}.client c on c.id = l.client join ${schema}.event e on e.lane = l.id
      join ${schema}.kind k on k.id = e.kind where l.message = 'new'`);
    expect(lanes.length).toBe(1);
  });

  it("stay while another transaction that uses them is not committed, and are pruned later", async () => {
    const { schema, store, names } = await aged();
    const writing = await newPool({ max: 1 }).connect();
    await writing.query(`begin; update ${schema}.lane set ready_at = null where false`);
    expect(await store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2, more: false });
    expect(await names()).toContain("message.rare");
    await writing.query("rollback");
    writing.release();
    await store.prune(POLICY);
    expect(await names()).toEqual(["client", "message.sent"]);
  });
});
