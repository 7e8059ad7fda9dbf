import { describe, expect, it } from "vitest";
import { type ClockMode, createTime } from "../../../src/messaging/emulator/clock.ts";
import { createFakeClock } from "../../../src/tools/testing/fake-clock.ts";

describe("createTime()", () => {
  it("stands still on a virtual clock until it is raised, and never goes back (TOK-13)", async () => {
    const clock = createFakeClock();
    const time = createTime(clock, "virtual", 5_000);
    await clock.advance(60_000);
    expect(time.now()).toBe(5_000);
    time.raiseTo(6_000);
    time.raiseTo(1_000);
    expect(time.now()).toBe(6_000);
    expect(time.rate).toBe(0);
  });

  it.each([
    ["real", 1],
    ["x1", 1],
    ["x60", 60],
    ["x100000", 100_000],
  ] as const)("runs with the real clock, %s", async (mode, rate) => {
    const clock = createFakeClock();
    const time = createTime(clock, mode);
    const start = clock.now();
    expect(time.now()).toBe(start);
    await clock.advance(1_500);
    expect(time.now()).toBe(start + 1_500 * rate);
    time.raiseTo(start + 10_000_000_000);
    await clock.advance(1);
    expect(time.now()).toBe(start + 10_000_000_000 + rate);
    expect(time.realNow()).toBe(start + 1_501);
  });

  it("does not follow the wall clock back or ahead", async () => {
    const clock = createFakeClock();
    const time = createTime(clock, "real");
    const start = time.now();
    clock.set(start - 3_600_000);
    await clock.advance(10);
    expect(time.now()).toBe(start + 10);
    expect(time.realNow()).toBe(start - 3_599_990);
  });

  it.each([
    ["x60", 59 * 1_500],
    ["virtual", -1_500],
  ] as const)("is ahead by its speed, %s", async (mode, ahead) => {
    const clock = createFakeClock();
    const time = createTime(clock, mode);
    await clock.advance(1_500);
    expect(time.aheadMs()).toBe(ahead);
    time.raiseTo(time.now() + 100);
    expect(time.aheadMs()).toBe(ahead + 100);
  });

  it("gives whole milliseconds, and exactly the instant it was raised to", async () => {
    const clock = createFakeClock();
    const time = createTime(clock, "real");
    await clock.advance(0.7);
    expect(Number.isInteger(time.now())).toBe(true);
    const later = time.now() + 1_234;
    time.raiseTo(later);
    expect(time.now()).toBe(later);
  });

  it.each(["", "fast", "x0", "x100001", "x1.5", "x-1", "X60", "60"])("refuses %j as a clock", (mode) => {
    expect(() => createTime(createFakeClock(), mode as ClockMode)).toThrow(/"clock"/);
  });
});
