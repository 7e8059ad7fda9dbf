import { describe, expect, it } from "vitest";
import { Waker } from "../../src/inbox/worker.ts";
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
  const waker = new Waker(store, clock, () => woken.push(clock.monotonic()));
  return { clock, woken, waker, asked: () => asked };
}

describe("Waker", () => {
  it("asks once for plans of one round, and wakes once, when the lane is due", async () => {
    const { clock, woken, waker, asked } = bench(async () => 700);
    for (let plan = 0; plan < 5; plan++) waker.plan(0);
    await clock.advance(10_000);
    expect([asked(), woken]).toEqual([1, [700]]);
  });

  it("wakes no earlier than it was asked to, and not at all when nothing waits", async () => {
    const early = bench(async () => 0);
    early.waker.plan(5_000);
    await early.clock.advance(10_000);
    expect(early.woken).toEqual([5_000]);
    const never = bench(async () => null);
    never.waker.plan(0);
    await never.clock.advance(1e9);
    expect(never.woken).toEqual([]);
  });

  it("asks again for a plan that came while the answer was under way", async () => {
    const gate = deferred();
    const answers = [null, 50];
    const { clock, woken, waker, asked } = bench(async () => {
      const answer = answers.shift() ?? null;
      await gate.promise;
      return answer;
    });
    waker.plan(0);
    await rounds(2);
    waker.plan(0);
    waker.plan(0);
    gate.resolve();
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([2, [50]]);
  });

  it("asks again when a turn failed meanwhile, which may have been written all the same", async () => {
    const gate = deferred();
    const answers = [22 * 60_000, 50];
    const { clock, woken, waker } = bench(async () => {
      const answer = answers.shift() ?? null;
      await gate.promise;
      return answer;
    });
    waker.plan(0);
    await rounds(2);
    waker.wakeAfterFailure();
    gate.resolve();
    await clock.advance(2_000);
    expect(woken).toEqual([50]);
  });

  it("asks and wakes no more once stopped, and does again when planned anew", async () => {
    const gate = deferred();
    const { clock, woken, waker, asked } = bench(async () => {
      await gate.promise;
      return 10;
    });
    waker.plan(0);
    waker.stop();
    await rounds(3);
    expect(asked()).toBe(0);
    waker.plan(0);
    await rounds(3);
    waker.wakeIn(5);
    waker.stop();
    gate.resolve();
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([1, []]);
    waker.plan(0);
    await clock.advance(1_000);
    expect([asked(), woken]).toEqual([2, [1_010]]);
  });
});
