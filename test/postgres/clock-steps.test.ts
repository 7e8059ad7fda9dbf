/** A clock that is set back: what is ready is made due, without holding lanes that others wait for. */
import { describe, expect, it } from "vitest";
import { scene } from "./interleavings-scene.ts";

const HOUR_MS = 3_600_000;

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
    one.clock.set(one.clock.now() - HOUR_MS);
    await meet(
      "lock",
      () => one.settle(one.complete(lease)),
      () => other.accept(other.of("a", 2), other.of("b", 2)),
      "skips",
    );
    expect([onesPool.deadlocks, othersPool.deadlocks]).toEqual([0, 0]);
    expect(await one.claim()).toHaveLength(2);
  });
});
