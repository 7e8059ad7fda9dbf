/** Numbers that a process remembers for names, and a server that no longer knows them. */
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { systemClock } from "../../src/internal/clock.ts";
import { NameBook } from "../../src/stores/postgres/names.ts";
import { Statements, withSession } from "../../src/stores/postgres/session.ts";
import type { PgClient } from "../../src/stores/postgres.ts";
import { signedRequest } from "../../src/testing/signed-request.ts";
import { event, turn } from "../stores/sqlite-turns.ts";
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
    const access = { pool: newPool(), clock: systemClock, schema, statements: new Statements(schema, true) };
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
    const { body } = signedRequest("{");
    const quarantines = [
      { ...event("held", 1, { raw: body }), reason: "invalid_json", slot: "current", signer: "s", scope: "any" },
    ];
    await store.step(turn<PgClient>({ quarantines }));
    await failOver(LOSES);
    const { items } = await store.findQuarantined({ limit: 1 });
    const request = { kind: "replay_quarantined", event: event("held"), lateEvents: "hand_out" } as const;
    expect(await store.act({ ...request, quarantine: items[0]?.id ?? 0 }, "a test")).toMatchObject({ ok: true });
    expect((await claimAll(await openAt(schema))).leases).toMatchObject([{ eventType: "message.sent" }]);
  });

  it("says so when a table does not keep the names that are entered", async () => {
    const { schema, store } = await remembering();
    await sql(`create function ${schema}.swallow() returns trigger language plpgsql as 'begin return null; end';
      create trigger swallow before insert on ${schema}.kind for each row execute function ${schema}.swallow()`);
    const accepts = [event("after", 1, { eventType: "message.new" })];
    await expect(store.step(turn<PgClient>({ accepts }))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/names that are made in it are not there/),
    });
  });
});
