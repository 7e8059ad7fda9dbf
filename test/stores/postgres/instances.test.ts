/** Processes that work on one inbox: what becomes of those that are never heard of again. */
import { describe, expect, it } from "vitest";
import type { InboxStore, PrunePolicy } from "../../../src/inbox/store.ts";
import { thisInstance } from "../../../src/internal/process.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { event, turn } from "../sqlite-turns.ts";
import { openAt } from "./desk.ts";
import { newPool, newSchema, sql } from "./place.ts";

const HOUR_MS = 3_600_000;
const NOTHING: PrunePolicy = {
  ...{ handledBodiesMs: 1e12, otherBodiesMs: 1e12 },
  ...{ identitiesMs: 1e12, deadMs: 1e12, batch: 10 },
};

/** An inbox whose clock stands still, and whose processes are opened on the host that is named, or this one. */
function makePlace() {
  const [schema, clock, pool] = [newSchema(), createFakeClock(), newPool()];
  const idsIn = async (column: string) =>
    (await sql(`select distinct ${column.replace("@", schema)} order by 1`)).map(({ id }) => id);
  return {
    clock,
    open: (host = thisInstance().host) => openAt(schema, pool, { clock, instance: { ...thisInstance(), host } }),
    accept: (store: InboxStore<PgClient>, id: string, limit = 0) =>
      store.step(turn<PgClient>({ accepts: [event(id, 1, { signedAt: clock.now() })], claim: { limit } })),
    pass: (ms: number) => clock.set(clock.now() + ms),
    counted: () => idsIn("instance as id from @.tally"),
    instances: () => idsIn("id from @.instance"),
  };
}

describe("prune()", () => {
  it("takes out who was not heard of for a day, and keeps what it had counted", async () => {
    const place = makePlace();
    const gone = await place.open("elsewhere");
    await place.accept(gone, "a");
    await gone.heartbeat({ keyringVersion: "1", counters: {} });
    place.pass(24 * HOUR_MS);
    const here = await place.open();
    await place.accept(here, "b");
    await here.prune(NOTHING);
    expect(await place.instances()).toEqual([1, 2]);
    place.pass(1);
    await place.accept(here, "c");
    await here.prune(NOTHING);
    expect([await place.instances(), await place.counted()]).toEqual([[2], [0, 2]]);
    expect(await here.stats()).toMatchObject({ gauges: { pending: 3 }, counters: { accepted: 3 } });
  });

  it("loses nothing of one that lives on: it counts again, and is back with its next heartbeat", async () => {
    const place = makePlace();
    const silent = await place.open("elsewhere");
    await place.accept(silent, "a");
    place.pass(25 * HOUR_MS);
    const here = await place.open();
    await place.accept(here, "b");
    await here.prune(NOTHING);
    expect(await place.instances()).toEqual([2]);
    await place.accept(silent, "c");
    await silent.heartbeat({ keyringVersion: "2", counters: {} });
    expect(await place.instances()).toEqual([1, 2]);
    expect((await here.stats()).instances).toMatchObject([{ keyringVersion: "2", seenAt: place.clock.now() }]);
    expect(await here.stats()).toMatchObject({ gauges: { pending: 3 }, counters: { accepted: 3 } });
    await silent.close();
    expect([await place.counted(), (await here.stats()).counters.accepted]).toEqual([[0, 2], 3]);
  });

  it("keeps those that hold a lease, and processes of this machine that run", async () => {
    const place = makePlace();
    const holder = await place.open("elsewhere");
    await place.accept(holder, "a", 1);
    await place.open();
    place.pass(25 * HOUR_MS);
    const here = await place.open();
    await place.accept(here, "b");
    await here.prune(NOTHING);
    expect(await place.instances()).toEqual([1, 2, 3]);
  });

  it("takes nobody for gone because the clock has jumped ahead of the newest timestamp", async () => {
    const place = makePlace();
    const other = await place.open("elsewhere");
    await place.accept(other, "a");
    place.pass(1_000 * HOUR_MS);
    await (await place.open()).prune(NOTHING);
    expect(await place.instances()).toEqual([1, 2]);
  });
});
