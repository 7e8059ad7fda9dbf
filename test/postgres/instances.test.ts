/** Processes that work on one inbox: what becomes of those that are never heard of again. */
import { describe, expect, it } from "vitest";
import type { InboxStore, PrunePolicy } from "../../src/inbox/store.ts";
import { thisInstance } from "../../src/internal/process.ts";
import type { PgClient } from "../../src/stores/postgres.ts";
import { createFakeClock, type FakeClock } from "../../src/testing/fake-clock.ts";
import { event, turn } from "../stores/sqlite-turns.ts";
import { openAt } from "./desk.ts";
import { newPool, newSchema, sql } from "./place.ts";

const HOUR_MS = 3_600_000;
const NOTHING: PrunePolicy = {
  ...{ handledBodiesMs: 1e12, otherBodiesMs: 1e12 },
  ...{ identitiesMs: 1e12, deadMs: 1e12, batch: 10 },
};

class Place {
  readonly schema = newSchema();
  readonly clock: FakeClock = createFakeClock();
  readonly #pool = newPool();

  /** A process of `host`, this one's unless told otherwise. */
  open(host?: string): Promise<InboxStore<PgClient>> {
    const instance = host === undefined ? thisInstance() : { ...thisInstance(), host };
    return openAt(this.schema, this.#pool, { clock: this.clock, instance });
  }

  accept(store: InboxStore<PgClient>, id: string, limit = 0) {
    const accepts = [event(id, 1, { signedAt: this.clock.now() })];
    return store.step(turn<PgClient>({ accepts, claim: { limit } }));
  }

  pass(ms: number): void {
    this.clock.set(this.clock.now() + ms);
  }

  async counted(): Promise<readonly unknown[]> {
    return (await sql(`select distinct instance as id from ${this.schema}.tally order by 1`)).map(({ id }) => id);
  }

  async instances(): Promise<readonly unknown[]> {
    return (await sql(`select id from ${this.schema}.instance order by 1`)).map(({ id }) => id);
  }
}

describe("prune()", () => {
  it("takes out who was not heard of for a day, and keeps what it had counted", async () => {
    const place = new Place();
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
    const place = new Place();
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
    const place = new Place();
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
    const place = new Place();
    const other = await place.open("elsewhere");
    await place.accept(other, "a");
    place.pass(1_000 * HOUR_MS);
    await (await place.open()).prune(NOTHING);
    expect(await place.instances()).toEqual([1, 2]);
  });
});
