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

  it("runs a batch again that counts repeats too", async () => {
    const all = await scene();
    const { one, other, othersPool } = all;
    const {
      accepted: [known],
    } = await one.accept(one.of("known", 1));
    const event = known !== undefined && "event" in known ? known.event : 0;
    const hold = othersPool.hold("write_lanes");
    const repeats = [{ event, count: 1, signedAt: other.clock.now() }];
    const accepting = other.step({ accepts: [other.of("m", 2)], repeats });
    await hold.reached;
    await one.accept(one.of("m", 1));
    hold.release();
    expect((await accepting).accepted).toMatchObject([{ outcome: "accepted" }]);
    expect(othersPool.rollbacks).toBe(1);
    expect((await one.store.stats()).counters).toMatchObject({ accepted: 3, duplicates: 1 });
    expect((await drained(all)).toSorted()).toEqual([1, 1, 2]);
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
