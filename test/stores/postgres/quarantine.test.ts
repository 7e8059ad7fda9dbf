/** Bodies in quarantine that two processes receive at once, or that are erased while an operator or pruning is at them. */
import { describe, expect, it } from "vitest";
import type { Act } from "../../../src/inbox/store.ts";
import type { Bench } from "../../contracts/store-bench.ts";
import { scene } from "./interleavings-scene.ts";

describe("two processes that quarantine one body", () => {
  it.each([
    ["under another secret", "signer-2"],
    ["under one secret", "signer-1"],
  ])("tell the second delivery that it is known: %s (I1)", async (_name, signer) => {
    const { meet, one, other } = await scene();
    const answers = await meet("commit", [
      () => one.step({ quarantines: [one.quarantine("{")] }),
      () => other.step({ quarantines: [other.quarantine("{", { signer })] }),
    ]);
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["duplicate"]]);
    expect(await one.store.stats()).toMatchObject({ gauges: { quarantined: 1 }, counters: { quarantined: 1 } });
  });

  it("let one body give way to each, and hold no more than the quota allows", async () => {
    const { meet, one, other } = await scene();
    const quarantineQuota = { maxRows: 2, maxBytes: 1_000, givingWay: ["too_deep"] };
    const hold = (bench: typeof one, ...texts: readonly string[]) =>
      bench.step({ quarantines: texts.map((text) => bench.quarantine(text, { reason: "too_deep" })), quarantineQuota });
    await hold(one, "a", "b");
    const answers = await meet("commit", [() => hold(one, "c"), () => hold(other, "d")]);
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
      [
        () => one.act({ kind: "discard_quarantined", quarantine: row?.id ?? 0 }),
        () => other.step({ quarantines: [other.quarantine("b", { reason: "too_deep" })], quarantineQuota }),
      ],
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
      [
        () => one.step({ quarantines: [one.quarantine("{")] }),
        () => other.step({ quarantines: [other.quarantine("{", { signer: "signer-2" })], quarantineQuota }),
      ],
      "skips",
    );
    expect(answers.map(({ quarantined }) => quarantined)).toEqual([["held"], ["full"]]);
  });
});

const ERASE: Act = { kind: "erase", subject: { id: "m" } };
const DAY_MS = 24 * 3_600_000;

/** A quarantined body that names message `m`; resolves with its number. */
async function quarantined(one: Bench): Promise<number> {
  await one.step({ quarantines: [one.quarantine('{"messageId":"m"}')] });
  return (await one.store.findQuarantined({ limit: 1 })).items[0]?.id ?? 0;
}

const held = async (one: Bench) => {
  const { quarantined, quarantinedBytes } = (await one.store.stats()).gauges;
  return { quarantined, quarantinedBytes };
};

describe("erasing a quarantined body", () => {
  it("counts a body that is discarded meanwhile once", async () => {
    const { meet, one, other } = await scene();
    const quarantine = await quarantined(one);
    const [erased, discarded] = await meet("clear_quarantine", [
      () => one.act(ERASE),
      () => other.act({ kind: "discard_quarantined", quarantine }),
    ]);
    expect([erased, discarded]).toEqual([
      { ok: true, count: 1 },
      { ok: false, reason: "wrong_state" },
    ]);
    expect(await held(one)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
  });

  it("counts a body that is replayed meanwhile once, and erases its event", async () => {
    const { one, other, meet, onesPool, othersPool } = await scene();
    const quarantine = await quarantined(one);
    const replay: Act = { kind: "replay_quarantined", quarantine, event: one.event(1) };
    const [replayed, erased] = await meet("release_quarantine", [() => one.act(replay), () => other.act(ERASE)]);
    expect([replayed, erased]).toMatchObject([{ ok: true }, { ok: true, count: 2 }]);
    expect(await one.at(1)).toMatchObject({ state: "discarded", raw: null });
    expect(await held(one)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
    // Both lock the body before the lane, so neither was taken back.
    expect([onesPool.rollbacks, othersPool.rollbacks]).toEqual([0, 0]);
  });

  it("counts a body that is pruned meanwhile once", async () => {
    const { one, other, meet } = await scene();
    await quarantined(one);
    one.clock.set(one.clock.now() + 100 * DAY_MS);
    await one.accept(one.of("another", 1));
    const retention = { handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS };
    const [pruned, erased] = await meet("tally", [
      () => one.store.prune({ ...retention, batch: 100 }),
      () => other.act(ERASE),
    ]);
    expect(pruned).toMatchObject({ quarantined: 1 });
    expect(erased).toEqual({ ok: true, count: 0 });
    expect(await held(one)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
  });
});

describe("erasing what only bodies tell of", () => {
  it("reads every body of a message with more events than a page", async () => {
    const { one } = await scene();
    const peer = "+15550100";
    const events = Array.from({ length: 1_001 }, (_, index) =>
      one.event(index + 1, { note: index < 1_000 ? "" : peer }),
    );
    await one.accept(...events);
    expect(await one.act({ kind: "erase", subject: { peer } })).toEqual({ ok: true, count: 1_001 });
    expect((await one.store.find({ limit: 1 })).items).toMatchObject([{ sequence: 1_001, hasBody: false }]);
  });
});
