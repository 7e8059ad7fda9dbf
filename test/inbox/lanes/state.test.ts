import { describe, expect, it } from "vitest";
import { bySequence } from "../../../src/inbox/lanes/state.ts";

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
