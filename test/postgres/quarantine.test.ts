/** Bodies in quarantine that two processes receive at once. */
import { describe, expect, it } from "vitest";
import { scene } from "./interleavings-scene.ts";

describe("two processes that quarantine one body", () => {
  it.each([
    ["in another slot", "previous"],
    ["in one slot", "current"],
  ])("tell the second delivery that it is known: %s (I1)", async (_name, slot) => {
    const { meet, one, other } = await scene();
    const answers = await meet(
      "commit",
      () => one.step({ quarantines: [one.quarantine("{", { slot: "current" })] }),
      () => other.step({ quarantines: [other.quarantine("{", { slot })] }),
    );
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["duplicate"]]);
    expect(await one.store.stats()).toMatchObject({ gauges: { quarantined: 1 }, counters: { quarantined: 1 } });
  });

  it("refuse it where the second one's slot is full", async () => {
    const { meet, one, other } = await scene();
    const quarantineQuota = { maxRows: 0, maxBytes: 1_000 };
    const answers = await meet(
      "commit",
      () => one.step({ quarantines: [one.quarantine("{", { slot: "current" })] }),
      () => other.step({ quarantines: [other.quarantine("{", { slot: "previous" })], quarantineQuota }),
      "skips",
    );
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["full"]]);
  });
});
