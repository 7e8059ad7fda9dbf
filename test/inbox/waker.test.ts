import { describe, expect, it } from "vitest";
import { DueTimer } from "../../src/inbox/worker.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { deferred, rounds } from "./bench.ts";

function bench(nextDue: () => Promise<number | null>) {
  const clock = createFakeClock();
  const woken: number[] = [];
  let asked = 0;
  const store = {
    nextDue: () => {
      asked++;
      return nextDue();
    },
  };
  const timer = new DueTimer(store, clock, () => woken.push(clock.monotonic()));
  return { clock, woken, timer, asked: () => asked };
}

describe("DueTimer", () => {
  it("asks once for plans of one round, and wakes once, when the lane is due", async () => {
    const { clock, woken, timer, asked } = bench(async () => 700);
    for (let plan = 0; plan < 5; plan++) timer.plan(0);
    await clock.advance(10_000);
    expect([asked(), woken]).toEqual([1, [700]]);
  });

  it("wakes no earlier than it was asked to, and not at all when nothing waits", async () => {
    const early = bench(async () => 0);
    early.timer.plan(5_000);
    await early.clock.advance(10_000);
    expect(early.woken).toEqual([5_000]);
    const never = bench(async () => null);
    never.timer.plan(0);
    await never.clock.advance(1e9);
    expect(never.woken).toEqual([]);
  });

  it("asks again for a plan that came while the answer was under way", async () => {
    const gate = deferred();
    const answers = [null, 50];
    const { clock, woken, timer, asked } = bench(async () => {
      const answer = answers.shift() ?? null;
      await gate.promise;
      return answer;
    });
    timer.plan(0);
    await rounds(2);
    timer.plan(0);
    timer.plan(0);
    gate.resolve();
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([2, [50]]);
  });

  it("asks again when a turn failed meanwhile, which may have been written all the same", async () => {
    const gate = deferred();
    const answers = [22 * 60_000, 50];
    const { clock, woken, timer } = bench(async () => {
      const answer = answers.shift() ?? null;
      await gate.promise;
      return answer;
    });
    timer.plan(0);
    await rounds(2);
    timer.wakeAfterFailure();
    gate.resolve();
    await clock.advance(2_000);
    expect(woken).toEqual([50]);
  });

  it("asks and wakes no more once stopped, and does again when planned anew", async () => {
    const gate = deferred();
    const { clock, woken, timer, asked } = bench(async () => {
      await gate.promise;
      return 10;
    });
    timer.plan(0);
    timer.stop();
    await rounds(3);
    expect(asked()).toBe(0);
    timer.plan(0);
    await rounds(3);
    timer.wakeIn(5);
    timer.stop();
    gate.resolve();
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([1, []]);
    timer.plan(0);
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([2, [1_010]]);
  });
});
