import { describe, expect, it, test } from "vitest";
import type { Lease, Settle } from "../../src/inbox/store.ts";
import { silentLogger } from "../../src/internal/logger.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { storeContract } from "../contracts/store.ts";
import { sized } from "../setup/form.ts";
import { contextOf, event as eventNow, RULES, turn } from "./sqlite-turns.ts";

const clock = createFakeClock();
const context = (overrides: Parameters<typeof contextOf>[0] = {}) => contextOf({ clock, ...overrides });
const event = (name: string, sequence: number) =>
  eventNow(name, sequence, { occurredAt: clock.now(), signedAt: clock.now() });
const complete = (lease: Lease): Settle<never> => ({ kind: "complete", outcome: "handled", effects: [], lease });

describe("memoryStore()", () => {
  it("says that it is neither durable nor shared nor transactional", () => {
    expect(memoryStore().capabilities).toEqual({ durable: false, shared: false, transactional: false });
  });

  it("warns once at open unless losing everything is meant", async () => {
    const warnings: string[] = [];
    const logger = { ...silentLogger, warn: (_fields: object, message: string) => void warnings.push(message) };
    await memoryStore().open(context({ logger }));
    expect(warnings).toEqual([expect.stringContaining("sqliteStore()")]);
    await memoryStore({ volatile: true }).open(context({ logger }));
    expect(warnings).toHaveLength(1);
  });

  it("refuses new events at capacity, knows the old ones still, and evicts none (I2)", async () => {
    const store = memoryStore({ maxEvents: 2, volatile: true });
    await store.open(context());
    const first = await store.step(turn<never>({ accepts: [event("m", 1), event("m", 2), event("m", 3)] }));
    expect(first.accepted.map((a) => a.outcome)).toEqual(["accepted", "accepted", "failed"]);
    expect(first.accepted[2]).toMatchObject({ error: { code: "store_full" } });
    const second = await store.step(turn<never>({ accepts: [event("m", 1)] }));
    expect(second.accepted[0]).toMatchObject({ outcome: "duplicate" });
    expect((await store.find({ limit: 10 })).items).toHaveLength(2);
  });

  it("has room again once finished events are past their retention", async () => {
    const store = memoryStore({ maxEvents: 1, volatile: true });
    await store.open(context());
    const { leases } = await store.step(turn<never>({ accepts: [event("old", 1)], claim: { limit: 1 } }));
    await store.step(turn<never>({ settles: leases.map(complete) }));
    await clock.advance(1_000);
    // Pruning follows the service's own timestamps, and that of a refused delivery is one of them.
    const refused = await store.step(turn<never>({ accepts: [event("new", 1)] }));
    expect(refused.accepted[0]).toMatchObject({ outcome: "failed" });
    const ages = { handledBodiesMs: 500, otherBodiesMs: 500, identitiesMs: 500, deadMs: 500_000 };
    expect(await store.prune({ ...ages, batch: 100 })).toMatchObject({ events: 1, lanes: 1 });
    const { accepted } = await store.step(turn<never>({ accepts: [event("new", 1)] }));
    expect(accepted[0]).toMatchObject({ outcome: "accepted" });
  });

  it("is one receiver's at a time and keeps its events across close and open", async () => {
    const store = memoryStore({ volatile: true });
    await store.open(context());
    await expect(store.open(context())).rejects.toMatchObject({ code: "already_started" });
    await store.step(turn<never>({ accepts: [event("m", 1)] }));
    await store.close();
    await store.close();
    await expect(store.nextDue()).rejects.toMatchObject({ code: "closed" });
    await expect(store.open(context({ rules: { ...RULES, name: "other" } }))).rejects.toMatchObject({
      code: "wrong_receiver_name",
    });
    await store.open(context());
    expect(await store.nextDue()).toBe(0);
  });

  it("expires the leases of whoever had it open before, who can settle nothing any more (I3)", async () => {
    const store = memoryStore({ volatile: true });
    await store.open(context());
    const { leases } = await store.step(turn<never>({ accepts: [event("m", 1)], claim: { limit: 1 } }));
    await store.close();
    await store.open(context());
    const again = await store.step(
      turn<never>({ settles: leases.map(complete), claim: { limit: 1, mode: "recover" } }),
    );
    expect(again).toMatchObject({ settled: [{ status: "lost" }], leases: [{ event: leases[0]?.event, attempt: 2 }] });
  });

  it("takes lanes and audit rows of another inbox by the hundred thousand", { tags: "full" }, async () => {
    const rows = Array.from({ length: 200_000 }, (_, index) => index + 1);
    const source = memoryStore({ volatile: true });
    await source.open(context());
    await source.step(turn<never>({ accepts: [event("m", 1)] }));
    const [lane] = await source.export(0, 1);
    const lanes = rows.map((id) => ({ ...lane!, id, key: { ...lane!.key, name: `m${id}` }, events: [] }));
    const audit = rows.map((id) => ({ id, at: 0, by: "maria", act: "erase", detail: "1 rows" }));
    const store = memoryStore({ volatile: true });
    await store.open(context({ copying: true }));
    const answer = await store.import({ source: "elsewhere:", lanes, quarantined: [], audit, totals: null });
    expect(answer).toEqual({ ok: true, lastLane: 200_000, finished: false });
    expect(await store.audit(1)).toEqual(audit.slice(-1));
  });

  it("gives an audit row a higher id than all that it took from another inbox", async () => {
    const store = memoryStore({ volatile: true });
    await store.open(context({ copying: true }));
    const audit = [2, 5].map((id) => ({ id, at: 0, by: "maria", act: "erase", detail: "1 rows" }));
    await store.import({ source: "elsewhere:", lanes: [], quarantined: [], audit, totals: null });
    await store.act({ kind: "erase", subject: { peer: "+15550100" } }, "maria");
    expect((await store.audit(10)).map(({ id }) => id)).toEqual([6, 5, 2]);
  });

  it("refuses options it does not know", () => {
    expect(() => memoryStore({ maxEvent: 1 } as object)).toThrow(/maxEvents/);
    expect(() => memoryStore({ maxEvents: 0 })).toThrow(/maxEvents/);
  });
});

storeContract({
  describe,
  test,
  expect,
  makeStore: async () => ({ store: memoryStore({ volatile: true }), dispose: async () => {} }),
  fastCheck: { runs: sized({ quick: 50, full: 300 }) },
});
