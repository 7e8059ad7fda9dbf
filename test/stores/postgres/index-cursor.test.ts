/** Looking for due lanes or expired leases does not pass the index entries of all lanes that moved on since the last vacuum. */
import { describe, expect, inject, it, onTestFinished } from "vitest";
import type { Lease } from "../../../src/inbox/store.ts";
import { ORDER } from "../../../src/stores/database.ts";
import { IndexCursor } from "../../../src/stores/postgres/open.ts";
import type { PgClient, PgPool } from "../../../src/stores/postgres.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";
import { turn } from "../sqlite-turns.ts";
import { complete, openAt } from "./desk.ts";
import { newPool, newSchema, sql } from "./place.ts";
import { pagesOf, type Run, toldPool } from "./told-plans.ts";

describe("IndexCursor", () => {
  it("starts where it was moved to, and at the low end once a second, as when it is moved there", async () => {
    const clock = createFakeClock();
    const cursor = new IndexCursor(clock);
    expect(cursor.start()).toBe(0);
    cursor.moveTo(7);
    expect(cursor.start()).toBe(7);
    await clock.advance(999);
    expect(cursor.start()).toBe(7);
    await clock.advance(1);
    expect([cursor.start(), cursor.start()]).toEqual([0, 7]);
    await clock.advance(600);
    cursor.moveTo(0);
    expect(cursor.start()).toBe(0);
    cursor.moveTo(7);
    await clock.advance(600);
    expect(cursor.start()).toBe(7);
  });

  it("starts at the low end after the clock went back", () => {
    let now = 10_000;
    const cursor = new IndexCursor({ ...createFakeClock(), now: () => now });
    cursor.start();
    cursor.moveTo(9_000);
    now = 5_000;
    expect(cursor.start()).toBe(0);
  });
});

const FILL = `
  alter table @.lane set (autovacuum_enabled = false);
  insert into @.lane (id, name, source, tenant, ord, status, ready_at)
    select nextval('@.lane_id'), convert_to('m' || n, 'UTF8'), 'service', 'client', ${ORDER.sequence}, 3, n from generate_series(1, @lanes) as n;
  insert into @.event (id, lane, seq, type, source, tenant, state, attempts, late, forced, duplicates, conflict, gap_wait, occurred, signed, accepted, digest, has_body)
    select nextval('@.event_id'), id, 1, 'message.sent', source, tenant, 0, 0, false, false, 0, false, 90000, 1, 1, 1, '\\x00', false from @.lane order by id;
  insert into @.tally (instance) values (1)`;

/** An inbox of `lanes` messages that have been ready since 1, 2, 3, … on a clock that stands still. */
async function openFilled(pool: PgPool, lanes: number) {
  const schema = newSchema();
  const clock = createFakeClock();
  const store = await openAt(schema, pool, { clock });
  await sql(FILL.replaceAll("@lanes", `${lanes}`).replaceAll("@", schema));
  const claim = async (limit: number) => (await store.step(turn<PgClient>({ claim: { limit, leaseMs: 10 } }))).leases;
  return { schema, clock, store, claim };
}

describe("looking for due lanes", () => {
  const names = (leases: readonly Pick<Lease, "key">[]) => leases.map(({ key }) => key.name);

  /** The first lane is locked by another as the next two are claimed. */
  async function passedOver() {
    const inbox = await openFilled(newPool(), 6);
    const other = await newPool({ max: 1 }).connect();
    await other.query(`begin; select 1 from ${inbox.schema}.lane where ready_at = 1 for update`);
    expect(names(await inbox.claim(2))).toEqual(["m2", "m3"]);
    await other.query("commit");
    other.release();
    return inbox;
  }

  it("finds a lane that was passed over once there are more slots than lanes behind it", async () => {
    const { claim } = await passedOver();
    expect(names(await claim(2))).toEqual(["m4", "m5"]);
    expect(names(await claim(2))).toEqual(["m6", "m1"]);
  });

  it("finds it within a second where there are fewer", async () => {
    const { claim, clock } = await passedOver();
    await clock.advance(1_000);
    // Past the ends of the leases, which are claimed by themselves.
    expect(names(await claim(2))).toEqual(["m1", "m4"]);
  });
});

describe("looking for expired leases", () => {
  /** Two leases that were ended early, before the time at which the next look starts. */
  async function endedBefore() {
    const inbox = await openFilled(newPool(), 4);
    const { schema, store, clock } = inbox;
    const { leases } = await store.step(turn<PgClient>({ claim: { limit: 2 } }));
    expect(leases).toHaveLength(2);
    await sql(`update ${schema}.lane set ready_at = ready_at - 60000 where status = 2`);
    const ask = (limit: number) => store.step(turn<PgClient>({ claim: { limit } }));
    const recover = () => store.step(turn<PgClient>({ claim: { limit: 1, mode: "recover" } }));
    return { store, clock, ask, recover };
  }

  it("finds them within a second of turns that have slots, and then one after the other", async () => {
    const { clock, ask, recover } = await endedBefore();
    expect(await ask(1)).toMatchObject({ recoveryDue: false });
    await clock.advance(1_000);
    await ask(0);
    expect(await ask(1)).toMatchObject({ recoveryDue: true });
    expect(await recover()).toMatchObject({ leases: [{ attempt: 2 }], recoveryDue: true });
    expect(await ask(1)).toMatchObject({ recoveryDue: true });
    expect(await recover()).toMatchObject({ leases: [{ attempt: 2 }], recoveryDue: false });
    expect(await ask(1)).toMatchObject({ recoveryDue: false });
  });

  it("finds them at once for a worker that was told that something is due", async () => {
    const { store, ask } = await endedBefore();
    expect(await ask(2)).toMatchObject({ recoveryDue: false });
    expect(await store.nextDue()).toBe(0);
    expect(await ask(1)).toMatchObject({ recoveryDue: true });
  });
});

describe("with 10,000 messages gone on", () => {
  const LANES = 10_000;
  const LIMIT = 250;

  it("turns read no more than the first one, of lanes that are due and of leases that have ended", {
    tags: "full",
  }, async () => {
    const runs: Run[] = [];
    const pool = toldPool(inject("postgresUrl"), runs);
    onTestFinished(() => pool.end());
    const { claim, clock, store } = await openFilled(pool as unknown as PgPool, LANES + 3 * LIMIT);
    /** Of the statements that look for lanes by `ready_at`. */
    const pages = () => {
      const looks = runs.splice(0).filter((run) => /ready_at >= \$/.test(run["Query Text"]));
      expect(looks).toHaveLength(2);
      const [due, leases] = [false, true].map((isOfLeases) => {
        const ofKind = looks.filter((run) => /as expired/.test(run["Query Text"]) === isOfLeases);
        return Math.max(...ofKind.map(({ Plan: plan }) => pagesOf(plan)));
      }) as [number, number];
      return { due, leases };
    };
    const claimAndComplete = async () => {
      const settles = (await claim(LIMIT)).map((lease) => complete(lease));
      const read = pages();
      await store.step(turn<PgClient>({ settles }));
      runs.length = 0;
      return read;
    };
    const first = await claimAndComplete();
    for (let done = 0; done < LANES; done += LIMIT) await claimAndComplete();
    // All leases have ended by now: one look passes their entries.
    await clock.advance(100);
    await claimAndComplete();
    const last = await claimAndComplete();
    expect(last.due).toBeLessThan(first.due * 1.2);
    expect(last.leases).toBeLessThan(10);
  });
});
