import { describe, expect, it } from "vitest";
import { gate, ground, MINUTE } from "./scheduler-support.ts";

describe("Scheduler on a running clock", () => {
  it.each([
    ["real", 1],
    ["x60", 60],
  ] as const)("runs tasks when their time has come (%s)", async (mode, rate) => {
    const { clock, scheduler, seen, note } = ground(mode);
    scheduler.add({ dueAt: 3_000, run: note("later") });
    scheduler.add({ dueAt: 600, run: note("sooner") });
    await clock.advance(600 / rate - 1);
    expect(seen).toEqual([]);
    await clock.advance(1);
    expect(seen).toEqual(["sooner at 600"]);
    await clock.advance(3_000 / rate);
    expect(seen).toEqual(["sooner at 600", "later at 3000"]);
  });

  it("jumps on advance and runs on from there", async () => {
    const { clock, time, scheduler, seen, note } = ground("real");
    scheduler.add({ dueAt: 5 * MINUTE, run: note("jumped to") });
    scheduler.add({ dueAt: 10 * MINUTE + 1_000, run: note("run to") });
    await scheduler.advance(10 * MINUTE);
    expect(seen).toEqual([`jumped to at ${5 * MINUTE}`]);
    await clock.advance(1_000);
    expect(seen).toEqual([`jumped to at ${5 * MINUTE}`, `run to at ${10 * MINUTE + 1_000}`]);
    expect(time.now()).toBe(10 * MINUTE + 1_000);
  });

  it("lets a slow task hold up nobody but its lane, and gives the next one there the time it has", async () => {
    const { clock, scheduler, seen, note } = ground("x60");
    const slow = gate();
    scheduler.add({ dueAt: 0, lane: "a", run: () => slow.opened });
    scheduler.add({ dueAt: 1_000, lane: "a", run: note("lane") });
    scheduler.add({ dueAt: 5 * MINUTE, run: note("other") });
    await clock.advance(5_000);
    expect(seen).toEqual([`other at ${5 * MINUTE}`]);
    await clock.advance(1_000);
    slow.open();
    await scheduler.idle();
    expect(seen.at(-1)).toBe(`lane at ${6 * MINUTE}`);
  });

  it("gives each task its own time when time is moved over many, however far ahead others are", async () => {
    const { scheduler, seen, note } = ground("real");
    for (const dueAt of [1_000, 20_000, 59_000]) {
      scheduler.add({ dueAt, lane: `retry ${dueAt}`, allowsAhead: true, run: note("retry") });
      scheduler.add({ dueAt, lane: `first ${dueAt}`, run: note("first") });
    }
    await scheduler.advance(60_000);
    expect(seen.sort()).toEqual([1_000, 20_000, 59_000].flatMap((at) => [`first at ${at}`, `retry at ${at}`]).sort());
  });

  it("sets no timer while all hands are full, and finds what came due when one is free", async () => {
    const { clock, scheduler, seen, note } = ground("real", { mostAtOnce: 32 });
    let timers = 0;
    const { setTimeout } = clock;
    clock.setTimeout = (callback, ms) => {
      timers++;
      return setTimeout(callback, ms);
    };
    const slow = gate();
    for (let i = 0; i < 32; i++) scheduler.add({ dueAt: 0, lane: String(i), run: () => slow.opened });
    scheduler.add({ dueAt: 10, lane: "last", run: note("last") });
    await clock.advance(1_000);
    expect(seen).toEqual([]);
    expect(timers).toBeLessThanOrEqual(1);
    slow.open();
    await scheduler.idle();
    expect(seen).toEqual(["last at 1000"]);
  });

  it("moves its timer when something sooner comes, and when all is forgotten", async () => {
    const { clock, scheduler, seen, note } = ground("real");
    scheduler.add({ dueAt: 1_000, run: note("forgotten") });
    scheduler.add({ dueAt: 500, run: note("forgotten too") });
    scheduler.clear();
    scheduler.add({ dueAt: 700, run: note("kept") });
    await clock.advance(2_000);
    expect(seen).toEqual(["kept at 700"]);
  });

  it("waits longer than a timer can", async () => {
    const { clock, scheduler, seen, note } = ground("real");
    const month = 31 * 86_400_000;
    const { setTimeout } = clock;
    clock.setTimeout = (callback, ms) => setTimeout(callback, Math.min(ms, 2 ** 31 - 1));
    scheduler.add({ dueAt: month, run: note("month") });
    await clock.advance(month);
    expect(seen).toEqual([`month at ${month}`]);
  });
});
