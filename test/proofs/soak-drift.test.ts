/** The judge of a soak: it sees what grows slowly, and is not deceived by noise, a warm-up or single points. */
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { driftOf, isDrift, type Point } from "./soak-drift.ts";

const TOLERANCE = { share: 0.1, least: 3 };
const MINUTE_MS = 60_000;

function points(count: number, value: (index: number) => number): Point[] {
  return Array.from({ length: count }, (_, index) => [index * MINUTE_MS, value(index)]);
}

describe("driftOf()", () => {
  it("gives the growth over the last two thirds", () => {
    const { growth, allowed, median } = driftOf(
      points(9, (index) => 100 + 2 * index),
      TOLERANCE,
    );
    expect(growth).toBeCloseTo(10);
    expect(median).toBe(111);
    expect(allowed).toBeCloseTo(11.1);
  });

  it("does not mind times that are not even", () => {
    const at = [0, 1, 5, 6, 20, 21, 40, 90, 100].map((minute): Point => [minute * MINUTE_MS, 50 + minute]);
    expect(driftOf(at, TOLERANCE).growth).toBeCloseTo(94);
  });

  it.each([
    ["stays", () => 80],
    ["falls", (index: number) => 200 - 5 * index],
    ["goes up and down", (index: number) => 80 + 30 * (index % 2)],
    ["grows while it warms up", (index: number) => Math.min(80, 20 * index)],
    ["grows within the share", (index: number) => 80 + index / 10],
    ["is small and grows within what is always allowed", (index: number) => index / 10],
    ["has a few points that are far off, the last among them", (index: number) => (index % 4 === 3 ? 500 : 80)],
  ])("sees none in what %s", (_what, value) => {
    expect(isDrift(driftOf(points(20, value), TOLERANCE))).toBe(false);
  });

  it.each([
    ["grows steadily", (index: number) => 80 + 2 * index],
    ["grows from nothing", (index: number) => index / 2],
    ["grows in stairs", (index: number) => 80 + 10 * Math.floor(index / 4)],
    ["grows beneath points that are far off", (index: number) => (index % 4 === 3 ? 500 : 80 + 2 * index)],
    ["grows beneath a dip at the end", (index: number) => (index === 19 ? 0 : 80 + 2 * index)],
  ])("sees one in what %s", (_what, value) => {
    expect(isDrift(driftOf(points(20, value), TOLERANCE))).toBe(true);
  });

  it("tells a small slope from noise ten times as large as its steps", () => {
    const random = seededRandom(7);
    const noise = Array.from({ length: 60 }, () => (random() - 0.5) * 10);
    const noisy = (slope: number) => points(60, (index) => 100 + slope * index + (noise[index] ?? 0));
    expect(isDrift(driftOf(noisy(0), TOLERANCE))).toBe(false);
    expect(isDrift(driftOf(noisy(1), TOLERANCE))).toBe(true);
  });

  it("refuses to judge by fewer than five points", () => {
    expect(() => driftOf(points(6, Number), TOLERANCE)).toThrow("4 points are too few");
    expect(driftOf(points(7, Number), TOLERANCE).growth).toBeCloseTo(4);
  });
});
