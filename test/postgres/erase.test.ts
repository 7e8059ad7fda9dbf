/** Erasing a quarantined body that an operator or pruning is at: whoever comes first, it is counted once. */
import { describe, expect, it } from "vitest";
import type { Act } from "../../src/inbox/store.ts";
import { type Scene, scene } from "./interleavings-scene.ts";

const ERASE: Act = { kind: "erase", subject: { messageId: "m" } };
const DAY_MS = 24 * 3_600_000;

/** A quarantined body that names message `m`; resolves with its number. */
async function quarantined({ one }: Scene): Promise<number> {
  await one.step({ quarantines: [one.quarantine('{"messageId":"m"}')] });
  return (await one.store.findQuarantined({ limit: 1 })).items[0]?.id ?? 0;
}

const held = async ({ one }: Scene) => {
  const { quarantined, quarantinedBytes } = (await one.store.stats()).gauges;
  return { quarantined, quarantinedBytes };
};

describe("erasing a quarantined body", () => {
  it("counts a body that is discarded meanwhile once", async () => {
    const all = await scene();
    const quarantine = await quarantined(all);
    const [erased, discarded] = await all.meet(
      "clear_quarantine",
      () => all.one.act(ERASE),
      () => all.other.act({ kind: "discard_quarantined", quarantine }),
    );
    expect([erased, discarded]).toEqual([
      { ok: true, count: 1 },
      { ok: false, reason: "wrong_state" },
    ]);
    expect(await held(all)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
  });

  it("counts a body that is replayed meanwhile once, and erases its event", async () => {
    const all = await scene();
    const { one, other, meet, onesPool, othersPool } = all;
    const quarantine = await quarantined(all);
    const replay: Act = { kind: "replay_quarantined", quarantine, event: one.event(1) };
    const [replayed, erased] = await meet(
      "release_quarantine",
      () => one.act(replay),
      () => other.act(ERASE),
    );
    expect([replayed, erased]).toMatchObject([{ ok: true }, { ok: true, count: 2 }]);
    expect(await one.at(1)).toMatchObject({ state: "discarded", raw: null });
    expect(await held(all)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
    // Both lock the body before the lane, so neither was taken back.
    expect([onesPool.rollbacks, othersPool.rollbacks]).toEqual([0, 0]);
  });

  it("counts a body that is pruned meanwhile once", async () => {
    const all = await scene();
    const { one, other, meet } = all;
    await quarantined(all);
    one.clock.set(one.clock.now() + 100 * DAY_MS);
    await one.accept(one.of("another", 1));
    const retention = { handledBodiesMs: 0, otherBodiesMs: 0, identitiesMs: 30 * DAY_MS, deadMs: 90 * DAY_MS };
    const [pruned, erased] = await meet(
      "tally",
      () => one.store.prune({ ...retention, batch: 100 }),
      () => other.act(ERASE),
    );
    expect(pruned).toMatchObject({ quarantined: 1 });
    expect(erased).toEqual({ ok: true, count: 0 });
    expect(await held(all)).toEqual({ quarantined: 0, quarantinedBytes: 0 });
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
