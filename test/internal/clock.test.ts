/** The real clock, and waits on a fake one. */
import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { atMost, sleep, systemClock, systemRandom } from "../../src/internal/clock.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../support/watched-timers.ts";

describe("systemRandom()", () => {
  it("gives other numbers each time, from 0 to below 1", () => {
    const numbers = Array.from({ length: 100 }, systemRandom);
    expect(new Set(numbers).size).toBeGreaterThan(90);
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true);
  });
});

describe("systemClock", () => {
  it("tells epoch milliseconds and a time that only grows", () => {
    expect(systemClock.now()).toBeGreaterThan(1_700_000_000_000);
    const first = systemClock.monotonic();
    expect(systemClock.monotonic()).toBeGreaterThanOrEqual(first);
  });

  it.each([0, -5])("fires a timer of %d ms", async (ms) => {
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, ms));
  });

  it("never fires a cancelled timer, nor one beyond the longest at once", async () => {
    let fired = 0;
    const timers = [0, 2 ** 31, Number.MAX_SAFE_INTEGER].map((ms) => systemClock.setTimeout(() => fired++, ms));
    timers[0]?.cancel();
    await new Promise<void>((resolve) => systemClock.setTimeout(resolve, 5));
    expect(fired).toBe(0);
    for (const timer of timers) timer.cancel();
    timers[0]?.cancel();
  });
});

describe("a timer of systemClock", () => {
  /** How many timers keep this process from ending. */
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

  it("keeps the process alive only when it is told to, and until it is cancelled", () => {
    const before = timers();
    const timer = systemClock.setTimeout(() => {}, 60_000);
    expect(timers()).toBe(before);
    timer.keepAlive();
    expect(timers()).toBe(before + 1);
    timer.cancel();
    expect(timers()).toBe(before);
  });
});

describe("sleep()", () => {
  it("ends after its time, and not before", async () => {
    const clock = createFakeClock();
    let over = false;
    void sleep(clock, 100).then(() => {
      over = true;
    });
    await clock.advance(99);
    expect(over).toBe(false);
    await clock.advance(1);
    expect(over).toBe(true);
  });

  it("ends as soon as the signal aborts, and leaves neither timer nor listener", async () => {
    const clock = createFakeClock();
    const controller = new AbortController();
    const slept = sleep(clock, 1_000, controller.signal);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    controller.abort();
    await slept;
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await sleep(clock, 1_000, controller.signal);
    await clock.advance(2_000);
  });

  it("leaves no listener on a signal that never aborts", async () => {
    const clock = createFakeClock();
    const { signal } = new AbortController();
    const slept = sleep(clock, 1_000, signal);
    await clock.advance(1_000);
    await slept;
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("atMost()", () => {
  it("settles as the work does, and leaves no timer", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    await atMost(clock, 1_000, Promise.resolve());
    await expect(atMost(clock, 1_000, Promise.reject(new Error("down")))).rejects.toThrow("down");
    expect(running()).toBe(0);
  });

  it("resolves after its time without the work", async () => {
    const clock = createFakeClock();
    let isOver = false;
    const over = atMost(clock, 1_000, new Promise(() => {})).then(() => {
      isOver = true;
    });
    await clock.advance(999);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await over;
  });
});
