import { describe, expect, it } from "vitest";
import { Repeats } from "../../src/inbox/group-commit.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";

const REPEAT = { event: 1, count: 1, signedAt: 1 };

describe("Repeats", () => {
  it("gives a turn what was counted for a second, and nothing before, each time anew (RCV-6)", async () => {
    const clock = createFakeClock();
    let asked = 0;
    const repeats = new Repeats(clock, () => asked++);
    for (const round of [1, 2]) {
      repeats.add(REPEAT);
      await clock.advance(999);
      expect([asked, repeats.take()]).toEqual([round - 1, []]);
      await clock.advance(1);
      expect([asked, repeats.take()]).toEqual([round, [REPEAT]]);
    }
  });
});
