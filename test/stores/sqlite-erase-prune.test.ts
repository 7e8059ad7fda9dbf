import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Lease, PrunePolicy } from "../../src/inbox/store.ts";
import { sqliteStore } from "../../src/stores/sqlite.ts";
import { createFakeClock } from "../../src/tools/testing/fake-clock.ts";
import { connect, makePath, open } from "./sqlite-place.ts";
import { event, turn } from "./sqlite-turns.ts";

const PEER = "+15559876543";
const complete = (lease: Lease) => ({ kind: "complete", lease, outcome: "handled", effects: [] }) as const;
const request = { kind: "erase", subject: { peer: PEER } } as const;

const DAY = 86_400_000;
const POLICY: PrunePolicy = {
  ...{ handledBodiesMs: 7 * DAY, otherBodiesMs: 30 * DAY, identitiesMs: 30 * DAY, deadMs: 90 * DAY },
  batch: 1_000,
};

async function filled(lanes: number) {
  const store = await open(sqliteStore(makePath()));
  const accepts = Array.from({ length: lanes }, (_, index) => event(`m${index}`, 1, { peer: PEER }));
  await store.step(turn({ accepts }));
  return store;
}

/** How often the event loop came round while `work` went on. */
async function roundsDuring(work: Promise<unknown>): Promise<number> {
  let [rounds, done] = [0, false];
  const end = () => {
    done = true;
  };
  work.then(end, end);
  for (; !done; rounds++) await setImmediate();
  await work;
  return rounds;
}

describe("erasing from many lanes", () => {
  it("takes several transactions, and deliveries are accepted in between", async () => {
    const store = await filled(5_000);
    const erasing = store.act(request, "operator");
    const accepting = setImmediate().then(() => store.step(turn({ accepts: [event("new")] })));
    expect(await Promise.race([erasing, accepting])).toMatchObject({ accepted: [{ outcome: "accepted" }] });
    expect(await roundsDuring(erasing)).toBeGreaterThan(5);
    expect(await erasing).toEqual({ ok: true, count: 5_000 });
    expect((await store.stats()).gauges.pending).toBe(1);
    expect(await store.audit(5)).toMatchObject([{ detail: "5000 rows" }]);
  });

  it("ends when one of the events comes to be handled; the audit tells what was erased, and the next act the rest", async () => {
    const store = await filled(5_000);
    const erasing = store.act(request, "operator");
    while ((await store.stats()).gauges.pending === 5_000) await setImmediate();
    const { leases } = await store.step(turn({ claim: { limit: 1 } }));
    expect(await erasing).toEqual({ ok: false, reason: "in_progress" });
    const left = (await store.stats()).gauges.pending;
    expect(left).toBeGreaterThan(0);
    expect(await store.audit(5)).toMatchObject([{ detail: `${5_000 - left} rows` }]);
    await store.step(turn({ settles: leases.map(complete) }));
    expect(await store.act(request, "operator")).toEqual({ ok: true, count: left });
    expect((await store.find({ peer: PEER, limit: 1 })).items).toEqual([]);
  });

  it("leaves the rest when the store is closed meanwhile", async () => {
    const store = await filled(5_000);
    const erasing = store.act(request, "operator");
    await setImmediate();
    const closing = store.close();
    await expect(erasing).rejects.toMatchObject({ code: "closed" });
    await closing;
  });
});

describe("prune()", () => {
  it("lets the event loop come round between its parts", async () => {
    const store = await filled(10);
    expect(await roundsDuring(store.prune({ ...POLICY, batch: 10 }))).toBeGreaterThan(2);
  });

  it("leaves nothing of a pruned event in another table: neither its bodies nor what its attempts said", async () => {
    const path = makePath();
    const clock = createFakeClock(Date.now());
    const store = await open(sqliteStore(path), { clock });
    const rows = () => {
      const db = connect(path, { readonly: true });
      return ["event", "body", "conflict", "attempt"].map((table) =>
        db.prepare(`select count(*) from oncehook_${table}`).pluck().get(),
      );
    };
    const raw = Buffer.from('{"another":"body"}');
    await store.step(turn({ accepts: [event("m"), event("m", 1, { raw })] }));
    const { leases } = await store.step(turn({ claim: { limit: 1 } }));
    const failure = { code: "handler_failed", message: "It failed.", durationMs: 5 };
    await store.step(turn({ settles: leases.map((lease) => ({ kind: "dead", lease, failure, onDead: "continue" })) }));
    expect(rows()).toEqual([1, 1, 1, 1]);
    await clock.advance(91 * DAY);
    await store.step(turn({ accepts: [event("new", 1, { signedAt: clock.now() })] }));
    await store.prune(POLICY);
    expect(rows()).toEqual([1, 1, 0, 0]);
  });
});
