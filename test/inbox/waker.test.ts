import { describe, expect, it } from "vitest";
import { DueTimer } from "../../src/inbox/worker.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
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
  it.each([
    ["once for plans of one round, and wakes once, when the lane is due", 700, 0, [700]],
    ["and wakes no earlier than it was asked to", 0, 5_000, [5_000]],
    ["and wakes not at all when nothing waits", null, 0, []],
  ])("asks %s", async (_what, dueInMs, leastMs, wakes) => {
    const { clock, woken, timer, asked } = bench(async () => dueInMs);
    for (let plan = 0; plan < 5; plan++) timer.plan(leastMs);
    await clock.advance(10_000);
    expect([asked(), woken]).toEqual([1, wakes]);
  });

  it.each([
    ["a plan that came while the answer was under way", (timer: DueTimer) => timer.plan(0)],
    [
      "a turn that failed meanwhile: it may have been written all the same",
      (timer: DueTimer) => timer.wakeAfterFailure(),
    ],
  ])("asks again for %s", async (_what, change) => {
    const gate = deferred();
    const answers = [22 * 60_000, 50];
    const { clock, woken, timer, asked } = bench(async () => {
      const answer = answers.shift() ?? null;
      await gate.promise;
      return answer;
    });
    timer.plan(0);
    await rounds(2);
    change(timer);
    gate.resolve();
    await clock.advance(2_000);
    expect([asked(), woken]).toEqual([2, [50]]);
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
