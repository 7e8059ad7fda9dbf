import { describe, expect, it } from "vitest";
import { sleep } from "../../../src/internal/clock.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";

describe("createFakeClock()", () => {
  it("stands still until it is moved", async () => {
    const clock = createFakeClock(1_000);
    await new Promise<void>((resolve) => setImmediate(resolve));
    expect([clock.now(), clock.monotonic()]).toEqual([1_000, 0]);
  });

  it("fires due timers in order of their time, then of their creation, each at its own time", async () => {
    const clock = createFakeClock(0);
    const fired: [string, number][] = [];
    clock.setTimeout(() => fired.push(["late", clock.now()]), 30);
    clock.setTimeout(() => fired.push(["first", clock.now()]), 10);
    clock.setTimeout(() => fired.push(["second", clock.now()]), 10);
    clock.setTimeout(() => fired.push(["after the end", clock.now()]), 41);
    await clock.advance(40);
    expect(fired).toEqual([
      ["first", 10],
      ["second", 10],
      ["late", 30],
    ]);
    expect(clock.now()).toBe(40);
  });

  it("fires in the same call the timers that promises and setImmediate callbacks set between two others", async () => {
    const clock = createFakeClock(0);
    const woken: number[] = [];
    const loop = async () => {
      for (let turn = 0; turn < 3; turn++) {
        await sleep(clock, 10);
        await new Promise<void>((resolve) => setImmediate(resolve));
        woken.push(clock.now());
      }
    };
    const done = loop();
    await clock.advance(30);
    await done;
    expect(woken).toEqual([10, 20, 30]);
  });

  it("lets a millisecond pass for a wait that is too short to advance the time", async () => {
    const clock = createFakeClock();
    await clock.advance(32_915.123);
    const waits = [0, 1e-12, 1e-12, 0.5, -5];
    const fired: number[] = [];
    const next = () => {
      fired.push(clock.monotonic() - 32_915.123);
      const wait = waits.shift();
      if (wait !== undefined) clock.setTimeout(next, wait);
    };
    next();
    await clock.advance(10);
    expect(fired.map((ms) => ms.toFixed(1))).toEqual(["0.0", "0.0", "1.0", "2.0", "2.5", "2.5"]);
  });

  it("does not fire a cancelled timer", async () => {
    const clock = createFakeClock();
    let fired = false;
    clock
      .setTimeout(() => {
        fired = true;
      }, 5)
      .cancel();
    await clock.advance(10);
    expect(fired).toBe(false);
  });

  it("moves only the wall clock", async () => {
    const clock = createFakeClock(1_000_000);
    let fired = false;
    clock.setTimeout(() => {
      fired = true;
    }, 100);
    clock.set(5);
    await clock.advance(99);
    expect([clock.now(), clock.monotonic(), fired]).toEqual([104, 99, false]);
    await clock.advance(1);
    expect(fired).toBe(true);
  });

  it("refuses to go back", async () => {
    await expect(createFakeClock().advance(-1)).rejects.toMatchObject({ code: "invalid_option" });
  });
});
