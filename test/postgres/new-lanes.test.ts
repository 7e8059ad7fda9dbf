/** Lanes that several processes make at once: a turn that wants them ends, whoever makes them first. */
import { describe, expect, it } from "vitest";
import { drained, scene } from "./interleavings-scene.ts";

describe("new lanes", () => {
  it("runs a batch again only once, although others create its new lanes one by one", async () => {
    const all = await scene();
    const { one, other, onesPool, othersPool } = all;
    let hold = othersPool.hold("flush");
    const accepting = other.accept(...["a", "b", "c"].map((id) => other.of(id, 2)));
    for (const id of ["a", "b"]) {
      await hold.reached;
      const first = one.accept(one.of(id, 1));
      // In the end the turn holds them all, and this one waits for it.
      await Promise.race([first, onesPool.waits().catch(() => {})]);
      const { release } = hold;
      hold = othersPool.hold("flush");
      release();
    }
    hold.release();
    expect((await accepting).accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "accepted", "accepted"]);
    expect([onesPool.rollbacks, othersPool.rollbacks]).toEqual([0, 1]);
    one.clock.set(one.clock.now() + 90_000);
    expect((await drained(all, "c")).toSorted()).toEqual([1, 1, 2, 2, 2]);
  });

  it("reports a table that does not keep the created lanes", async () => {
    const { one, pool, schema } = await scene();
    await pool.query(`create function ${schema}.swallow() returns trigger language plpgsql as 'begin return null; end';
      create trigger swallow before insert on ${schema}.lane for each row execute function ${schema}.swallow()`);
    await expect(one.accept(one.event(1))).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(/new lanes do not stay in its tables/),
    });
    expect((await one.store.stats()).counters.accepted).toBe(0);
  });
});
