import { describe, expect, it } from "vitest";
import { bySequence, isPrunedBehind } from "../../src/inbox/lane-state.ts";
import { withoutLease } from "../../src/inbox/store-rules.ts";
import { laneOf } from "./bench.ts";

describe("bySequence()", () => {
  it("puts the lower sequence first, and of equal ones the event that was accepted first (I4)", () => {
    const events = [
      { sequence: 2, id: 1 },
      { sequence: 1, id: 3 },
      { sequence: 1, id: 2 },
    ];
    expect(events.toSorted(bySequence).map(({ id }) => id)).toEqual([2, 3, 1]);
  });
});

describe("isPrunedBehind()", () => {
  const kept = (...sequences: number[]) => sequences.map((sequence) => ({ sequence, late: false }));
  const gap = (from: number, to: number) => ({ from, to, skippedAt: 1, filledAt: null });

  it.each([
    ["a lane that handed nothing out", { cursor: null, events: kept(1), gaps: [] }, 1, false],
    ["all that came is kept", { cursor: 3, events: kept(1, 2, 3), gaps: [] }, 1, false],
    ["the one at the cursor is gone", { cursor: 2, events: kept(1), gaps: [] }, 1, true],
    ["one before the cursor is gone", { cursor: 3, events: kept(3, 1), gaps: [] }, 1, true],
    ["only one before it is gone", { cursor: 3, events: kept(2, 3), gaps: [] }, 2, false],
    ["only one between those before it is gone", { cursor: 4, events: kept(1, 3, 4), gaps: [] }, 3, false],
    ["what is missing never came", { cursor: 9, events: kept(1, 2, 9), gaps: [gap(3, 8)] }, 1, false],
    ["what came behind a gap is gone", { cursor: 9, events: kept(1, 9), gaps: [gap(3, 8)] }, 1, true],
    ["what filled a gap is gone", { cursor: 3, events: kept(1, 3), gaps: [{ ...gap(2, 2), filledAt: 9 }] }, 1, false],
    ["another of its sequence is kept", { cursor: 3, events: kept(1, 1, 2, 2, 3), gaps: [] }, 1, false],
    ["more wait behind the cursor", { cursor: 2, events: kept(1, 2, 5), gaps: [] }, 1, false],
    ["the highest one", { cursor: 3, events: kept(3), gaps: [] }, 3, false],
    ["nothing else is kept", { cursor: 7, events: [{ sequence: 2, late: true }], gaps: [] }, 2, true],
    [
      "a late one, of before the lane began",
      { cursor: 5, events: [{ sequence: 3, late: true }, ...kept(5)], gaps: [] },
      3,
      false,
    ],
  ])("where %s", (_what, lane, sequence, expected) => {
    const key = laneOf("m");
    expect(isPrunedBehind({ key, ...lane }, sequence)).toBe(expected);
  });

  it.each([
    ["nothing was passed on", null, kept(3_000), 3_000, false],
    ["a higher one was, and is kept", 5_000, kept(3_000, 5_000), 3_000, false],
    ["a higher one was, and is gone", 5_000, kept(3_000), 3_000, true],
    ["it is the highest", 3_000, [], 3_000, false],
  ])("by position, where %s", (_what, cursor, events, sequence, expected) => {
    const key = { source: "billing", tenant: null, name: "sub_1", order: "position" } as const;
    expect(isPrunedBehind({ key, cursor, events, gaps: [] }, sequence)).toBe(expected);
  });
});

describe("withoutLease()", () => {
  const leased = { status: "leased", readyAt: 900 } as const;

  it("leaves a lane that nobody holds, and makes a held one ready: since its handler started, since it was accepted, or by its own time", () => {
    expect(withoutLease({ status: "gap", readyAt: 5, id: 3 } as never, null)).toEqual({ status: "gap", readyAt: 5 });
    expect(withoutLease(leased, { startedAt: 50, acceptedAt: 40 })).toEqual({ status: "ready", readyAt: 50 });
    expect(withoutLease(leased, { startedAt: null, acceptedAt: 40 })).toEqual({ status: "ready", readyAt: 40 });
    expect(withoutLease(leased, null)).toEqual({ status: "ready", readyAt: 900 });
    expect(withoutLease(leased, undefined)).toEqual({ status: "ready", readyAt: 900 });
  });
});
