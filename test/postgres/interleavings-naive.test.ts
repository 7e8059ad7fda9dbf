/** The mistake that the store avoids: a snapshot that is older than the lock. */
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { scene } from "./interleavings-scene.ts";

/** What the store must not do: one statement that locks the lane and reads its head. Completes the event and arms the lane by that. */
async function completeNaively(client: pg.PoolClient, schema: string, lane: number, event: number): Promise<void> {
  await client.query("begin");
  const { rows } = await client.query(
    `select l.id, (select min(e.id) from ${schema}.event e where e.lane = l.id and e.state = 0 and e.id <> $2) as head
     from ${schema}.lane l where l.id = $1 for update of l`,
    [lane, event],
  );
  await client.query(`update ${schema}.event set state = 1, outcome = 1 where id = $1`, [event]);
  const status = rows[0].head === null ? 0 : 3;
  await client.query(
    `update ${schema}.lane set status = $2::int, ready_at = case when $2::int = 0 then null else 0 end, holder = null, leased = null where id = $1`,
    [lane, status],
  );
  await client.query("commit");
}

describe("one statement that locks a lane and reads its head", () => {
  it("strands an event, which is why the store has two (I5)", async () => {
    const { one, onesPool, pool, schema } = await scene();
    await one.accept(one.event(1));
    const lease = await one.claimOne();
    const hold = onesPool.hold("commit");
    const accepting = one.accept(one.event(2));
    await hold.reached;
    const client = await pool.connect();
    const completing = completeNaively(client, schema, lease.lane, lease.event);
    const waits = "select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'";
    const { processID } = client as unknown as { readonly processID: number };
    while ((await pool.query(waits, [processID])).rowCount === 0);
    hold.release();
    await Promise.all([accepting, completing]);
    client.release();
    const { status, events } = await one.lane();
    expect({ status, left: events.filter(({ state }) => state === "pending").length }).toEqual({
      status: "idle",
      left: 1,
    });
    expect(await one.claim()).toEqual([]);
    expect(await one.store.nextDue()).toBe(null);
  });
});
