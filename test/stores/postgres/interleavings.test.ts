/** Two processes whose transactions meet at a chosen statement: whichever comes first, nothing is stranded and order holds. */
import { describe, expect, it } from "vitest";
import type { PrunePolicy } from "../../../src/inbox/store.ts";
import type { PgClient } from "../../../src/stores/postgres.ts";
import { type Bench, sequences } from "../../contracts/store-bench.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scene } from "./interleavings-scene.ts";

const DAY_MS = 24 * 3_600_000;
const PRUNING: PrunePolicy = {
  ...{ handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS, batch: 100 },
};

/** An event of message `m` that is past its retention, by the timestamp of another one. */
async function handledLongAgo(one: Bench): Promise<void> {
  await one.handle(one.event(1));
  one.clock.set(one.clock.now() + 40 * DAY_MS);
  await one.accept(one.of("another", 1));
}

describe("postgresStore() with two processes", () => {
  it("sees, when it completes, the event that came while it waited for the lane (I5)", async () => {
    const { meet, one, other, drained } = await scene();
    await other.accept(other.event(1));
    const lease = await other.claimOne();
    const [, settled] = await meet("flush", [
      () => one.accept(one.event(2)),
      () => other.settle(other.complete(lease)),
    ]);
    expect(settled).toEqual(["settled"]);
    expect(await drained()).toEqual([2]);
  });

  it("numbers a lane's events as they are accepted, also where its first comes between the numbers and the claim", async () => {
    const { meet, one, other } = await scene();
    await meet(
      "claim_due",
      [() => one.step({ accepts: [one.event(2)], claim: { limit: 1 } }), () => other.accept(other.event(1))],
      "skips",
    );
    const { events } = await one.lane();
    expect(events.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(events[0]?.id).toBeLessThan(events[1]?.id ?? 0);
  });

  it("sees it with effects too", async () => {
    const { meet, one, other, pool, schema, drained } = await scene();
    await pool.query(`create table ${schema}.written (text text)`);
    await other.accept(other.event(1));
    const lease = await other.claimOne();
    const note = (client: unknown) => (client as PgClient).query(`insert into ${schema}.written values ('done')`);
    const [, settled] = await meet("commit", [
      () => one.accept(one.event(2)),
      () => other.settle(other.complete(lease, "handled", [note])),
    ]);
    expect(settled).toEqual(["settled"]);
    expect((await pool.query(`select * from ${schema}.written`)).rowCount).toBe(1);
    expect(await drained()).toEqual([2]);
  });

  it("arms the lane for an event that waited while another completed (I5)", async () => {
    const { meet, one, other, drained } = await scene();
    await one.accept(one.event(1));
    const lease = await one.claimOne();
    await meet("flush", [() => one.settle(one.complete(lease)), () => other.accept(other.event(2))]);
    expect(await drained()).toEqual([2]);
  });

  it("keeps an event that waited for a lane which pruning removed meanwhile (I5, I10)", async () => {
    const { meet, one, other, drained } = await scene();
    await handledLongAgo(one);
    const [pruned] = await meet("remove_lanes", [() => one.store.prune(PRUNING), () => other.accept(other.event(2))]);
    expect(pruned).toMatchObject({ events: 1, lanes: 1 });
    expect((await one.lane()).status).toBe("gap");
    one.clock.set(one.clock.now() + 90_000);
    expect(await drained()).toEqual([1, 2]);
  });

  it("leaves alone a lane that another process holds, and prunes its events the next time", async () => {
    const { meet, one, other, drained } = await scene();
    await handledLongAgo(one);
    const [, pruned] = await meet("flush", [() => one.accept(one.event(2)), () => other.store.prune(PRUNING)], "skips");
    expect(pruned).toMatchObject({ bodies: 0, events: 0, lanes: 0 });
    expect(await one.store.prune(PRUNING)).toMatchObject({ events: 1, lanes: 0 });
    expect((await drained()).toSorted()).toEqual([1, 2]);
  });

  it("replays an event completely or not at all while pruning removes its body (I8)", async () => {
    const { meet, one, other } = await scene();
    await handledLongAgo(one);
    const { id, raw } = await one.at(1);
    await meet("flush", [() => one.act({ kind: "replay", event: id }), () => other.store.prune(PRUNING)], "skips");
    const again = (await one.claim()).find((lease) => lease.event === id);
    expect(again?.raw).toEqual(raw);
    expect((await one.store.stats()).gauges.pending).toBe(2);
  });

  it("claims the event that is left when an operator discards the head before it", async () => {
    const { meet, one, other, drained } = await scene();
    await one.accept(one.event(1), one.event(2));
    const { id, laneId } = await one.at(1);
    const [result, leases] = await meet("flush", [
      () => one.act({ kind: "discard", event: id }),
      () => other.claim({ lane: laneId, limit: 1 }),
    ]);
    expect(result).toMatchObject({ ok: true });
    expect(sequences(leases)).toEqual([2]);
    expect(await other.settle(...leases.map((lease) => other.complete(lease)))).toEqual(["settled"]);
    expect(await drained()).toEqual([]);
  });

  it("skips a lane that an operator has locked, and claims it the next time", async () => {
    const { meet, one, other, drained } = await scene();
    await one.accept(one.event(1), one.event(2));
    const { id } = await one.at(1);
    const [, leases] = await meet(
      "flush",
      [() => one.act({ kind: "discard", event: id }), () => other.claim()],
      "skips",
    );
    expect(leases).toEqual([]);
    expect(await drained()).toEqual([2]);
  });

  it("has one lane for two accepts that both would make it, and hands out in order (I1, I4)", async () => {
    const { meet, one, other, drained } = await scene();
    const [, second] = await meet("commit", [
      () => one.accept(one.event(2)),
      () => other.accept(other.event(1), other.event(2)),
    ]);
    expect(second.accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate"]);
    expect(await drained()).toEqual([1, 2]);
  });

  it("accepts two turns whose lanes are named in opposite orders, without a deadlock", async () => {
    const { meet, one, other, onesPool, othersPool, drained } = await scene();
    await one.accept(one.of("a", 1), one.of("b", 1));
    await meet("flush", [
      () => one.accept(one.of("a", 2), one.of("b", 2), one.of("c", 1), one.of("d", 1)),
      () => other.accept(other.of("d", 2), other.of("c", 2), other.of("b", 3), other.of("a", 3)),
    ]);
    // The other makes a lane that has appeared meanwhile, and starts again once.
    expect([onesPool.rollbacks, othersPool.rollbacks <= 1]).toEqual([0, true]);
    expect((await drained("a")).toSorted()).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
  });

  it("counts a repeat of an event that another settles, while both make the same lane, without a deadlock", async () => {
    const { meet, one, other, onesPool, othersPool } = await scene();
    await other.accept(other.event(1));
    const lease = await other.claimOne();
    await meet("flush", [
      () => one.accept(one.of("new", 1), one.event(1)),
      () => other.step({ settles: [other.complete(lease)], accepts: [other.of("new", 2)] }),
    ]);
    expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
    expect(await one.at(1)).toMatchObject({ state: "done", duplicates: 1 });
    expect((await one.store.stats()).counters).toMatchObject({ accepted: 3, duplicates: 1 });
  });

  it.each(["alone", "in a lane"])(
    "takes an event once that comes into two lanes, and all that came with it: first %s (I1, I2)",
    async (first) => {
      const { meet, one, other, onesPool, othersPool } = await scene();
      await other.accept(other.event(1));
      const lease = await other.claimOne();
      const alone = one.of("evt_1", 0, { lane: { order: null } });
      const inLane = one.of("sub_1", 1, { lane: { order: "position" }, ownId: "evt_1", gapWaitMs: 0 });
      const [ones, others] = first === "alone" ? [alone, inLane] : [inLane, alone];
      const [, { accepted, settled, leases }] = await meet("commit", [
        () => one.step({ accepts: [ones], claim: { lane: 1_000_000 } }),
        () =>
          other.step({
            settles: [other.complete(lease)],
            accepts: [other.of("a", 1), others, other.of("b", 1)],
            claim: { limit: 9 },
          }),
      ]);
      expect(accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate", "accepted"]);
      expect(settled).toEqual([{ status: "settled" }]);
      // The first turn claims nothing, so the second one claims the event that the first has stored.
      expect(leases.map(({ ownId, key }) => ownId ?? key.name).toSorted()).toEqual(["a", "b", "evt_1"]);
      expect([onesPool.rollbacks, othersPool.rollbacks]).toEqual([0, 1]);
      expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
      expect(await one.find({ id: "evt_1" })).toMatchObject([{ lane: ones.lane, duplicates: 1 }]);
      const stats = { gauges: { pending: 3 }, counters: { accepted: 4, duplicates: 1, handled: 1 } };
      expect(await one.store.stats()).toMatchObject(stats);
      expect((await one.store.findLanes({ limit: 9 })).items).toHaveLength(4);
    },
  );

  it("takes an event that another process was about to take and did not (I2)", async () => {
    const { one, other, onesPool, othersPool, pool } = await scene();
    const hold = onesPool.hold("commit");
    const alone = one.of("evt_1", 0, { lane: { order: null } });
    const first = failureOf(one.step({ accepts: [alone], claim: { lane: 1_000_000 } }));
    const server = await hold.reached;
    const second = other.of("sub_1", 1, { lane: { order: "arrival" }, ownId: "evt_1", gapWaitMs: 0 });
    const accepting = other.step({ accepts: [second], claim: { lane: 1_000_000 } });
    await othersPool.waits();
    await pool.query("select pg_terminate_backend($1)", [server]);
    expect((await accepting).accepted).toMatchObject([{ outcome: "accepted" }]);
    hold.release();
    expect(await first).toMatchObject({ code: "store_unavailable" });
    expect(await other.find()).toMatchObject([{ lane: second.lane, duplicates: 0 }]);
    expect((await other.store.findLanes({ limit: 9 })).items).toHaveLength(1);
  });

  it("replays a quarantined body whose event comes by itself meanwhile, into another lane (I1)", async () => {
    const { meet, one, other, onesPool, othersPool } = await scene();
    await other.step({ quarantines: [other.quarantine("{")] });
    const [held] = await other.quarantined();
    const event = other.of("sub_1", 1, { lane: { order: "position" }, ownId: "evt_1", gapWaitMs: 0 });
    const [first, replayed] = await meet("commit", [
      () => one.step({ accepts: [one.of("evt_1", 0, { lane: { order: null } })], claim: { lane: 1_000_000 } }),
      () => other.act({ kind: "replay_quarantined", quarantine: held?.id ?? 0, event }),
    ]);
    expect(first.accepted).toMatchObject([{ outcome: "accepted" }]);
    const [stored, ...more] = await one.find();
    expect(more).toEqual([]);
    expect(stored).toMatchObject({ ownId: "evt_1", lane: { order: null }, duplicates: 1 });
    expect(replayed).toMatchObject({ ok: true, event: stored?.id });
    expect(await one.quarantined()).toMatchObject([{ state: "replayed", replayedAs: stored?.id }]);
    expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
  });

  it("counts repeats of each other's events without a deadlock", async () => {
    const { meet, one, other, onesPool, othersPool } = await scene();
    await one.accept(one.of("a", 1), one.of("b", 1));
    await meet("flush", [
      () => one.accept(one.of("a", 1), one.of("b", 1)),
      () => other.accept(other.of("b", 1), other.of("a", 1)),
    ]);
    expect([onesPool.rollbacks, othersPool.rollbacks]).toEqual([0, 0]);
    expect((await one.find()).map(({ duplicates }) => duplicates)).toEqual([2, 2]);
    expect((await one.store.stats()).counters.duplicates).toBe(4);
  });

  it("keeps events that arrive while their message is erased, and no earlier data", async () => {
    const { meet, one, other, drained } = await scene();
    await one.accept(one.event(1));
    const [result] = await meet("flush", [
      () => one.act({ kind: "erase", subject: { id: "m" } }),
      () => other.accept(other.event(2)),
    ]);
    expect(result).toMatchObject({ ok: true, count: 1 });
    expect((await one.at(1)).state).toBe("discarded");
    expect((await one.at(1)).raw).toBe(null);
    one.clock.set(one.clock.now() + 90_000);
    expect(await drained()).toEqual([2]);
  });

  it("does not recover a lease that its holder has just extended (I3)", async () => {
    const { meet, one, other } = await scene();
    await one.accept(one.event(1));
    const lease = await one.claimOne();
    one.clock.set(one.clock.now() + 31_000);
    const [held, leases] = await meet("commit", [
      () => one.store.extend([lease], 30_000),
      () => other.claim({ lane: lease.lane, limit: 1, mode: "recover" }),
    ]);
    expect(held).toEqual([true]);
    expect(leases).toEqual([]);
    expect(await one.settle(one.complete(lease))).toEqual(["settled"]);
  });

  it("reports to a holder that another process has recovered its lease, although it asked to extend it before (I3)", async () => {
    const { meet, one, other } = await scene();
    await other.accept(other.event(1));
    const lease = await other.claimOne();
    one.clock.set(one.clock.now() + 31_000);
    const [leases, held] = await meet("commit", [
      () => one.claim({ limit: 1, mode: "recover" }),
      () => other.store.extend([lease], 30_000),
    ]);
    expect(held).toEqual([false]);
    expect(sequences(leases)).toEqual([1]);
    expect(await other.settle(other.complete(lease))).toEqual(["lost"]);
    expect(await one.settle(...leases.map((one_) => one.complete(one_)))).toEqual(["settled"]);
  });

  it("extends a lease whose lane another process writes to meanwhile", async () => {
    const { meet, one, other } = await scene();
    await other.accept(other.event(1));
    const lease = await other.claimOne();
    const [, held] = await meet("commit", [
      () => one.accept(one.event(2, { peer: "+15550100" })),
      () => other.store.extend([lease], 60_000),
    ]);
    expect(held).toEqual([true]);
    expect(await one.lane()).toMatchObject({ peer: "+15550100", readyAt: one.clock.now() + 60_000 });
  });

  it("runs a batch again only once, although others create its new lanes one by one", async () => {
    const { one, other, onesPool, othersPool, drained } = await scene();
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
    expect((await drained("c")).toSorted()).toEqual([1, 1, 2, 2, 2]);
  });

  it("accepts fractions of a millisecond, which a handler's RetryAfter may have", async () => {
    const { one, drained } = await scene();
    await one.accept(one.event(1, { gapWaitMs: 0.5 }));
    const lease = await one.claimOne({ leaseMs: 1_000.25 });
    expect(await one.store.extend([lease], 1_000.75)).toEqual([true]);
    expect(await one.settle(one.retry(lease, 10.5))).toEqual(["settled"]);
    one.clock.set(one.clock.now() + 11);
    expect(await drained()).toEqual([1]);
  });
});

describe("a clock that goes back", () => {
  it("by a second at most changes nothing: answers that overtake each other look like that", async () => {
    const { one, onesPool } = await scene();
    await one.accept(one.of("a", 1));
    const { readyAt } = await one.lane("a");
    one.clock.set(one.clock.now() - 1_000);
    await one.accept(one.of("b", 1));
    expect((await one.lane("a")).readyAt).toBe(readyAt);
    expect(onesPool.rollbacks).toBe(0);
  });

  it("by more than a second makes ready lanes due for the turn that notices, and only once", async () => {
    const { one, onesPool } = await scene();
    await one.accept(one.of("a", 1));
    one.clock.set(one.clock.now() - 1_001);
    expect(await one.claim()).toHaveLength(1);
    await one.accept(one.of("b", 1));
    expect(onesPool.rollbacks).toBe(1);
  });

  it("leaves no lane in hand for which another process waits that holds others", async () => {
    const { meet, one, other, onesPool, othersPool } = await scene();
    await one.accept(one.of("a", 1));
    const lease = await one.claimOne();
    await one.accept(one.of("b", 1));
    one.clock.set(one.clock.now() - 3_600_000);
    await meet(
      "lock",
      [() => one.settle(one.complete(lease)), () => other.accept(other.of("a", 2), other.of("b", 2))],
      "skips",
    );
    expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
    expect(await one.claim()).toHaveLength(2);
  });
});
