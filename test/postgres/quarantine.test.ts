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

  it("let one body give way to each, and hold no more than the quota allows", async () => {
    const { meet, one, other } = await scene();
    const quarantineQuota = { maxRows: 2, maxBytes: 1_000, givingWay: ["too_deep"] };
    const hold = (bench: typeof one, ...texts: readonly string[]) =>
      bench.step({ quarantines: texts.map((text) => bench.quarantine(text, { reason: "too_deep" })), quarantineQuota });
    await hold(one, "a", "b");
    const answers = await meet(
      "commit",
      () => hold(one, "c"),
      () => hold(other, "d"),
    );
    const madeRoom = { outcome: "made_room", dropped: 1 };
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([[madeRoom], [madeRoom]]);
    const held = await one.quarantined({ states: ["held"] });
    expect(held.map(({ raw }) => Buffer.from(raw ?? []).toString())).toEqual(["d", "c"]);
    expect((await one.store.stats()).gauges).toMatchObject({ quarantined: 2, quarantinedBytes: 2 });
  });

  it("let none give way that an operator acts on meanwhile: the delivery comes again", async () => {
    const { meet, one, other } = await scene();
    const quarantineQuota = { maxRows: 1, maxBytes: 1_000, givingWay: ["too_deep"] };
    await one.step({ quarantines: [one.quarantine("a", { reason: "too_deep" })], quarantineQuota });
    const [row] = (await one.store.findQuarantined({ limit: 1 })).items;
    const [, answer] = await meet(
      "commit",
      () => one.act({ kind: "discard_quarantined", quarantine: row?.id ?? 0 }),
      () => other.step({ quarantines: [other.quarantine("b", { reason: "too_deep" })], quarantineQuota }),
      "skips",
    );
    expect(answer.quarantined).toEqual(["full"]);
    const [seen] = await one.quarantined({ limit: 1 });
    expect([seen?.state, Buffer.from(seen?.raw ?? []).toString()]).toEqual(["discarded", "a"]);
    expect((await one.store.stats()).gauges).toMatchObject({ quarantined: 0, quarantinedBytes: 0 });
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
