/** Bodies in quarantine that two processes receive at once. */
import { describe, expect, it } from "vitest";
import { scene } from "./interleavings-scene.ts";

describe("two processes that quarantine one body", () => {
  it.each([
    ["under another secret", "signer-2"],
    ["under one secret", "signer-1"],
  ])("tell the second delivery that it is known: %s (I1)", async (_name, signer) => {
    const { meet, one, other } = await scene();
    const answers = await meet(
      "commit",
      () => one.step({ quarantines: [one.quarantine("{")] }),
      () => other.step({ quarantines: [other.quarantine("{", { signer })] }),
    );
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["duplicate"]]);
    expect(await one.store.stats()).toMatchObject({ gauges: { quarantined: 1 }, counters: { quarantined: 1 } });
  });

  it("refuse it where the second one's quota is used up", async () => {
    const { meet, one, other } = await scene();
    const quarantineQuota = { maxRows: 0, maxBytes: 1_000 };
    const answers = await meet(
      "commit",
      () => one.step({ quarantines: [one.quarantine("{")] }),
      () => other.step({ quarantines: [other.quarantine("{", { signer: "signer-2" })], quarantineQuota }),
      "skips",
    );
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["full"]]);
  });
});
