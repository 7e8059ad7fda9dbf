/** Two stores on one schema whose transactions are made to meet at a chosen statement. */
import pg from "pg";
import { expect, inject, onTestFinished } from "vitest";
import type { SequenceRules } from "../../../src/inbox/store.ts";
import { systemClock } from "../../../src/internal/clock.ts";
import { thisInstance } from "../../../src/internal/process.ts";
import { type PgPool, postgresStore } from "../../../src/stores/postgres.ts";
import { Bench, sequences } from "../../contracts/store-bench.ts";
import { HeldPool } from "./interleavings-pool.ts";

let places = 0;

export interface Scene {
  readonly schema: string;
  /** A connection of neither process. */
  readonly pool: pg.Pool;
  readonly one: Bench;
  readonly other: Bench;
  readonly onesPool: HeldPool;
  readonly othersPool: HeldPool;
  /** Runs `first` up to `statement`, then `second` until it waits for a lock, or to its end if it `skips`; then both on. */
  meet<A, B>(
    statement: string,
    [first, second]: readonly [() => Promise<A>, () => Promise<B>],
    how?: "skips",
  ): Promise<[A, B]>;
  /** Takes what is left, in its order; nothing may stay behind (I5). */
  drained(name?: string): Promise<number[]>;
}

/** Two stores on one schema and one clock, each with a pool of its own. */
export async function scene(firstSequence: SequenceRules["firstSequence"] = 1): Promise<Scene> {
  const connectionString = inject("postgresUrl");
  const schema = `oncehook_scene_${process.pid}_${++places}`;
  const pool = new pg.Pool({ connectionString, max: 2 });
  const pools = [new HeldPool(connectionString, `${schema}_one`), new HeldPool(connectionString, `${schema}_other`)];
  const [onesPool, othersPool] = pools as [HeldPool, HeldPool];
  const { id: _id, ...running } = thisInstance();
  const benchOn = (held: HeldPool) =>
    new Bench(
      {
        store: postgresStore(held as PgPool & HeldPool, { schema, listen: false }),
        instance: () => running,
        dispose: async () => {},
      },
      expect,
      firstSequence,
    );
  const one = benchOn(onesPool);
  const other = benchOn(othersPool);
  onTestFinished(async () => {
    await one.dispose();
    await other.dispose();
    await pool.query(`drop schema if exists ${schema} cascade`);
    for (const each of [pool, ...pools]) await each.end();
  });
  // The time is the test's, and pauses between two tries are real.
  const clock = { ...one.clock, now: () => one.clock.now(), setTimeout: systemClock.setTimeout };
  await one.open(one.store, { clock });
  await other.open(other.store, { clock });
  return {
    ...{ schema, pool, one, other, onesPool, othersPool },
    drained: (name = "m") => drained(one, name),
    async meet(statement, [first, second], how) {
      const hold = onesPool.hold(statement);
      const firstEnds = first();
      const early = firstEnds.then(() => Promise.reject(new Error(`The first ended without ${statement}.`)));
      early.catch(() => {}); // It is meant for the race alone.
      await Promise.race([hold.reached, early]);
      const secondEnds = second();
      try {
        await (how === "skips" ? secondEnds : othersPool.waits());
      } finally {
        hold.release();
      }
      return Promise.all([firstEnds, secondEnds]);
    },
  };
}

async function drained(one: Bench, name: string): Promise<number[]> {
  const order: number[] = [];
  for (;;) {
    const leases = await one.claim();
    if (leases.length === 0) break;
    order.push(...sequences(leases));
    await one.settle(...leases.map((lease) => one.complete(lease)));
  }
  const { status, events } = await one.lane(name);
  expect({ status, pending: events.filter(({ state }) => state === "pending").length }).toEqual({
    status: "idle",
    pending: 0,
  });
  expect((await one.store.stats()).gauges.pending).toBe(0);
  return order;
}
