/** The attempts of a leased event stand on its lane, and on the event from the end of the lease on. */
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Settle } from "../../src/inbox/store.ts";
import { type PgClient, postgresStore } from "../../src/stores/postgres.ts";
import { contextOf, event, turn } from "../stores/sqlite-turns.ts";
import { newSchema, sql } from "./place.ts";

async function openInbox() {
  const schema = newSchema();
  const store = postgresStore(inject("postgresUrl"), { schema, listen: false });
  await store.open(contextOf());
  onTestFinished(() => store.close());
  return {
    store,
    async claim() {
      const { leases } = await store.step(turn<PgClient>({ claim: { limit: 1 } }));
      const [lease] = leases;
      if (lease === undefined) throw new Error("Nothing was leased.");
      return lease;
    },
    settle: (settle: Settle<PgClient>) => store.step(turn<PgClient>({ settles: [settle] })),
    /** As they are stored. */
    stored: () =>
      sql(`select e.attempts, e.started is not null as started, l.leased_attempts, l.leased_started is not null as leased_started
        from ${schema}.event e join ${schema}.lane l on l.id = e.lane`),
    /** The version of the event's row. */
    version: () => sql(`select ctid, xmin from ${schema}.event`),
  };
}

const FAILURE = { code: "handler_failed", message: "the same each time", durationMs: 1 };
const FREE = { leased_attempts: null, leased_started: false };

describe("the attempts of a leased event", () => {
  it("take no write to the event until the lease ends, and are seen as its own", async () => {
    const { store, claim, settle, stored, version } = await openInbox();
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    const before = await version();
    const lease = await claim();
    expect(await version()).toEqual(before);
    expect(await stored()).toEqual([{ attempts: 0, started: false, leased_attempts: 1, leased_started: true }]);
    const seen = { attempts: 1, startedAt: expect.any(Number) };
    expect((await store.find({ limit: 1 })).items).toMatchObject([seen]);
    expect((await store.lane(lease.lane))?.events).toMatchObject([seen]);
    await settle({ kind: "complete", lease, outcome: "handled", effects: [] });
    expect(await stored()).toEqual([{ attempts: 1, started: true, ...FREE }]);
  });

  it("are written with an event that is leased as it comes, and told by the lane from the next claim on", async () => {
    const { store, claim, settle, stored } = await openInbox();
    const { leases } = await store.step(turn<PgClient>({ accepts: [event("m")], claim: { limit: 1 } }));
    expect(await stored()).toEqual([{ attempts: 1, started: true, ...FREE }]);
    expect((await store.find({ limit: 1 })).items).toMatchObject([{ attempts: 1 }]);
    const [lease] = leases;
    if (lease === undefined) throw new Error("Nothing was leased.");
    await settle({ kind: "retry", lease, failure: FAILURE, delayMs: 0 });
    expect(await claim()).toMatchObject({ attempt: 2 });
    expect(await stored()).toEqual([{ attempts: 1, started: true, leased_attempts: 2, leased_started: true }]);
  });

  it("are kept when it fails with the same error again (I7)", async () => {
    const { store, claim, settle, stored } = await openInbox();
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    for (const attempts of [1, 2, 3]) {
      await settle({ kind: "retry", lease: await claim(), failure: FAILURE, delayMs: 0 });
      expect(await stored()).toEqual([{ attempts, started: true, ...FREE }]);
    }
  });

  it("are one less when it goes back unstarted", async () => {
    const { store, claim, settle, stored } = await openInbox();
    await store.step(turn<PgClient>({ accepts: [event("m")] }));
    await settle({ kind: "retry", lease: await claim(), failure: FAILURE, delayMs: 0 });
    await settle({ kind: "release", lease: await claim(), delayMs: 0, ran: false });
    expect(await stored()).toEqual([{ attempts: 1, started: true, ...FREE }]);
  });

  it("are not lost with a repeat that writes the event meanwhile", async () => {
    const { store, claim, settle, stored } = await openInbox();
    const first = event("m");
    await store.step(turn<PgClient>({ accepts: [first] }));
    const lease = await claim();
    expect((await store.step(turn<PgClient>({ accepts: [first] }))).accepted).toMatchObject([{ outcome: "duplicate" }]);
    expect((await store.find({ limit: 1 })).items).toMatchObject([{ attempts: 1, duplicates: 1 }]);
    await settle({ kind: "complete", lease, outcome: "handled", effects: [] });
    expect(await stored()).toEqual([{ attempts: 1, started: true, ...FREE }]);
  });
});
