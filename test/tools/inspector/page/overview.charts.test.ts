import { describe, expect, it } from "vitest";
import { ceiling, healthOf, linePath, meanRate, rates, scale } from "../../../../src/tools/inspector/page/overview.tsx";
import { sampleAt } from "./drawings.ts";

/** So many events were accepted until then. */
const seen = (seconds: number, accepted: number) => sampleAt(1_000_000 + seconds * 1_000, accepted);

describe("scale()", () => {
  it("places a value of the domain in the range, and all of a range that is a point at its beginning", () => {
    expect([0, 5, 10].map(scale([0, 10], [100, 0]))).toEqual([100, 50, 0]);
    expect(scale([5, 5], [0, 600])(5)).toBe(0);
  });
});

describe("ceiling()", () => {
  it.each([
    [0, 1],
    [0.2, 1],
    [1, 1],
    [1.1, 2],
    [4, 5],
    [5.5, 10],
    [10, 10],
    [11, 20],
    [72_000, 100_000],
  ])("above %d is %d", (highest, top) => {
    expect(ceiling(highest)).toBe(top);
  });
});

describe("rates()", () => {
  it("tells what a count grew by, a second, and never less than zero", () => {
    expect(rates([seen(0, 100), seen(1, 110), seen(5, 130)], "accepted").map(({ value }) => value)).toEqual([10, 5]);
    expect(rates([seen(0, 100), seen(1, 3)], "accepted")).toMatchObject([{ value: 0 }]);
  });

  it("tells nothing of two samples of one moment, and of one alone", () => {
    expect(rates([seen(0, 100), seen(0, 110)], "accepted")).toEqual([]);
    expect(rates([seen(0, 100)], "accepted")).toEqual([]);
  });
});

describe("meanRate()", () => {
  it("looks at the last stretch only, and is unknown before there are two samples", () => {
    const samples = [seen(0, 0), seen(100, 10_000), seen(110, 10_050), seen(120, 10_100)];
    expect(meanRate(samples, "accepted", 20_000)).toBe(5);
    expect(meanRate([], "accepted", 60_000)).toBeUndefined();
    expect(meanRate([seen(0, 1)], "accepted", 60_000)).toBeUndefined();
  });
});

describe("linePath()", () => {
  it("leads from point to point, and is empty without points", () => {
    const points = [
      { at: 0, value: 1 },
      { at: 10, value: 2.25 },
    ];
    expect(
      linePath(
        points,
        (at) => at * 2,
        (value) => 100 - value,
      ),
    ).toBe("M0.0 99.0L20.0 97.8");
    expect(linePath([], Number, Number)).toBe("");
  });
});

describe("healthOf()", () => {
  it("counts what waits for somebody to act", () => {
    const gauges = { pending: 9, dead: 6, quarantined: 1, quarantinedBytes: 40, blockedLanes: 0 };
    expect(healthOf({ gauges })).toBe("To act on: 6 dead letters, 1 quarantined body.");
    expect(healthOf({ gauges: { ...gauges, dead: 0, quarantined: 0 } })).toBe("Nothing needs you.");
  });
});
