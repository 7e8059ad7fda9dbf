/** The attempts of a leased event stand on its lane, and on the event from the end of the lease on. */
import { describe, expect, inject, it } from "vitest";
import type { Lease, Settle } from "../../../src/inbox/store.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { event, turn } from "../sqlite-turns.ts";
import { ask, complete, leases, openAt } from "./desk.ts";
import { newSchema, sql } from "./place.ts";

async function openInbox() {
  const schema = newSchema();
  const store = await openAt(schema, inject("postgresUrl"));
  return {
    store,
    accept: async () => (await store.step(turn<PgClient>({ accepts: [event("m")] }))).accepted,
    async claim(): Promise<Lease> {
      const [lease] = (await store.step(turn<PgClient>({ claim: { limit: 1 } }))).leases;
      if (lease === undefined) throw new Error("Nothing was leased.");
      return lease;
    },
    /** As they are stored. */
    stored: () =>
      sql(`select e.attempts, e.started is not null as started, l.leased_attempts, l.leased_started is not null as leased_started
        from ${schema}.event e join ${schema}.lane l on l.id = e.lane`),
    /** The version of the event's row. */
    version: () => sql(`select ctid, xmin from ${schema}.event`),
  };
}

const failure = { code: "handler_failed", message: "the same each time", durationMs: 1 };
const retry = (lease: Lease): Settle<PgClient> => ({ kind: "retry", lease, failure, delayMs: 0 });
const free = (attempts: number) => [{ attempts, started: true, leased_attempts: null, leased_started: false }];

describe("the attempts of a leased event", () => {
  it("take no write to the event until the lease ends, and are seen as its own", async () => {
    const { store, accept, claim, stored, version } = await openInbox();
    await accept();
    const before = await version();
    const lease = await claim();
    expect(await version()).toEqual(before);
    expect(await stored()).toEqual([{ attempts: 0, started: false, leased_attempts: 1, leased_started: true }]);
    const seen = { attempts: 1, startedAt: expect.any(Number) };
    expect((await store.find({ limit: 1 })).items).toMatchObject([seen]);
    expect((await store.lane(lease.lane))?.events).toMatchObject([seen]);
    await ask(store, complete(lease));
    expect(await stored()).toEqual(free(1));
  });

  it("are written with an event that is leased as it comes, and told by the lane from the next claim on", async () => {
    const { store, claim, stored } = await openInbox();
    const [lease] = await leases(store, "m");
    expect(await stored()).toEqual(free(1));
    expect((await store.find({ limit: 1 })).items).toMatchObject([{ attempts: 1 }]);
    await ask(store, retry(lease as Lease));
    expect(await claim()).toMatchObject({ attempt: 2 });
    expect(await stored()).toEqual([{ attempts: 1, started: true, leased_attempts: 2, leased_started: true }]);
  });

  it("are kept when it fails with the same error again, and are one less when it goes back unstarted (I7)", async () => {
    const { store, accept, claim, stored } = await openInbox();
    await accept();
    for (const attempts of [1, 2, 3]) {
      await ask(store, retry(await claim()));
      expect(await stored()).toEqual(free(attempts));
    }
    await ask(store, { kind: "release", lease: await claim(), delayMs: 0, ran: false });
    expect(await stored()).toEqual(free(3));
  });

  it("are not lost with a repeat that writes the event meanwhile", async () => {
    const { store, accept, claim, stored } = await openInbox();
    await accept();
    const lease = await claim();
    expect(await accept()).toMatchObject([{ outcome: "duplicate" }]);
    expect((await store.find({ limit: 1 })).items).toMatchObject([{ attempts: 1, duplicates: 1 }]);
    await ask(store, complete(lease));
    expect(await stored()).toEqual(free(1));
  });
});
