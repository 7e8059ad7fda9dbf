/** The store contract on events that a source's filter refused: they keep their place in the order, and no body. */
import type { NewEvent } from "../../src/inbox/record.ts";
import { type Bench, type ContractCase, DAY, it, POLICY, sequences } from "./store-bench.ts";

const FILTERED = { filtered: true } as const;

const filtered = (bench: Bench, sequence: number, wish: Partial<NewEvent> = {}): NewEvent =>
  bench.event(sequence, { ...wish, ...FILTERED });

const LANE = { source: "billing", tenant: null, name: "sub_1" } as const;

/** An event of the lane `sub_1` of the source `billing`. */
function ofSource(
  bench: Bench,
  order: "position" | "arrival",
  ownId: string,
  position: number,
  wish: Partial<NewEvent> = {},
): NewEvent {
  return bench.event(position, { gapWaitMs: 0, ...wish, lane: { ...LANE, order }, ownId, note: ownId });
}

/** Claims and completes until nothing is due: the sequences, in their order. */
async function handled(bench: Bench): Promise<number[]> {
  const order: number[] = [];
  for (let leases = await bench.claim(); leases.length > 0; leases = await bench.claim()) {
    order.push(...sequences(leases));
    await bench.settle(...leases.map((lease) => bench.complete(lease)));
  }
  return order;
}

const isIdle = async (bench: Bench) =>
  bench.expect([await bench.store.nextDue(), (await bench.store.stats()).gauges.pending]).toEqual([null, 0]);

export const filterCases: readonly ContractCase[] = [
  it("keeps a filtered event as done without its body, counts it, and passes it to no handler", async (bench) => {
    const now = bench.clock.now();
    const { accepted, leases } = await bench.step({
      accepts: [filtered(bench, 1, { head: "{}" })],
      claim: { limit: 10 },
    });
    bench.expect([accepted, leases]).toMatchObject([[{ outcome: "filtered" }], []]);
    const facts = { state: "done", outcome: "filtered", late: false, attempts: 0, startedAt: null, finishedAt: now };
    bench.expect(await bench.at(1)).toMatchObject({ ...facts, raw: null, head: null });
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", readyAt: null, cursor: 1 });
    const { counters } = await bench.store.stats();
    bench.expect(counters).toMatchObject({ accepted: 1, filtered: 1, handled: 0, unhandled: 0 });
    bench.expect((await bench.find({ outcome: "filtered" })).length).toBe(1);
    await isIdle(bench);
  }),
  it("counts a repeat of a filtered event as a duplicate, whatever the filter says then", async (bench) => {
    await bench.accept(filtered(bench, 1), filtered(bench, 1));
    const { accepted } = await bench.accept(bench.event(1, { note: "other content" }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate", state: "done", conflict: false }]);
    bench.expect(await bench.at(1)).toMatchObject({ duplicates: 2, conflict: false });
    bench.expect((await bench.store.stats()).counters).toMatchObject({ accepted: 1, filtered: 1, duplicates: 2 });
    await isIdle(bench);
  }),
  it("handles an event whose repeat is filtered, in the same batch and later", async (bench) => {
    const { accepted } = await bench.accept(bench.event(1), filtered(bench, 1));
    bench.expect(accepted).toMatchObject([{ outcome: "accepted" }, { outcome: "duplicate", state: "pending" }]);
    bench.expect((await bench.accept(filtered(bench, 1))).accepted).toMatchObject([{ outcome: "duplicate" }]);
    bench.expect(await handled(bench)).toEqual([1]);
    bench.expect((await bench.store.stats()).counters.filtered).toBe(0);
  }),
  it("lets no event wait behind filtered ones, whatever their order of arrival (RCV-7)", async (bench) => {
    const orders = [
      [1, 2, 3, 4],
      [4, 3, 2, 1],
      [2, 4, 1, 3],
      [3, 1, 4, 2],
    ];
    for (const [index, order] of orders.entries()) {
      for (const refused of [[2], [1], [2, 3], [1, 2, 3]]) {
        const message = `m${index} ${refused}`;
        for (const sequence of order)
          await bench.accept(bench.of(message, sequence, refused.includes(sequence) ? FILTERED : {}));
        bench.expect(await handled(bench)).toEqual([1, 2, 3, 4].filter((sequence) => !refused.includes(sequence)));
        bench.expect(await bench.lane(message)).toMatchObject({ status: "idle", cursor: 4, gaps: [] });
      }
    }
    await isIdle(bench);
  }),
  it("leases the event that waited for a filtered one in the batch that brings it", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    bench.expect((await bench.lane()).status).toBe("gap");
    const { leases } = await bench.step({ accepts: [filtered(bench, 2)], claim: { limit: 1 } });
    const facts = { sequence: 3, late: false, outOfOrder: false, missing: null, acceptIndex: null };
    bench.expect(leases).toMatchObject([facts]);
    bench.expect(Buffer.from(leases[0]?.raw ?? []).toString()).toBe(Buffer.from(bench.event(3).raw).toString());
  }),
  it("begins a new wait if more is missing behind the filtered event, and reports it", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(4));
    await bench.clock.advance(60_000);
    const { accepted } = await bench.accept(filtered(bench, 2));
    bench.expect(accepted).toMatchObject([{ outcome: "filtered", gapBegins: true }]);
    const now = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", cursor: 2, gapSince: now });
    await bench.clock.advance(90_000);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 4, missing: { from: 3, to: 3 } });
  }),
  it("keeps a running, a retried and a blocked event where they are", async (bench) => {
    await bench.accept(bench.event(1));
    const first = await bench.claimOne();
    await bench.accept(filtered(bench, 2));
    bench.expect(await bench.lane()).toMatchObject({ status: "leased", cursor: 2 });
    await bench.settle(bench.retry(first, 60_000));
    await bench.accept(filtered(bench, 3), bench.event(4));
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", cursor: 3 });
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(60_000);
    const again = await bench.claimOne();
    bench.expect(again).toMatchObject({ sequence: 1, attempt: 2, late: false, outOfOrder: false });
    await bench.settle(bench.dead(again, "block"));
    await bench.accept(filtered(bench, 5));
    bench.expect(await bench.lane()).toMatchObject({ status: "blocked", readyAt: null });
    await bench.act({ kind: "unblock", lane: again.lane });
    bench.expect(await handled(bench)).toEqual([4]);
  }),
  it("fills the recorded gap that a filtered event was missing from, and passes it to no one as late", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.handle(bench.event(4, { gapWaitMs: 0 }));
    const now = bench.clock.now();
    for (const sequence of [2, 3]) {
      const { accepted } = await bench.accept(filtered(bench, sequence));
      bench.expect(accepted).toMatchObject([{ outcome: "filtered" }]);
      bench.expect(await bench.at(sequence)).toMatchObject({ state: "done", outcome: "filtered", late: true });
    }
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", cursor: 4, gaps: [{ from: 2, filledAt: now }] });
    await isIdle(bench);
  }),
  {
    ...it<Bench>("does not begin a lane whose first sequence is open: a lower one is not late after it", async (bench) => {
      await bench.accept(filtered(bench, 5), bench.event(3));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, late: false, missing: null });
    }),
    firstSequence: "any",
  },
  it("keeps the order of lanes by position and by arrival, with a cursor that stays", async (bench) => {
    for (const order of ["position", "arrival"] as const) {
      await bench.accept(
        ofSource(bench, order, `a ${order}`, 5, FILTERED),
        ofSource(bench, order, `b ${order}`, 5),
        ofSource(bench, order, `c ${order}`, 4),
      );
      const { events, cursor } = await bench.lane(LANE.name, { ...LANE, order });
      const refused = bench.only(events.filter(({ outcome }) => outcome === "filtered"));
      bench.expect([refused, cursor]).toMatchObject([{ ownId: `a ${order}`, state: "done", hasBody: false }, null]);
      const { accepted } = await bench.accept(ofSource(bench, order, `a ${order}`, 5));
      bench.expect(accepted).toMatchObject([{ outcome: "duplicate", conflict: false }]);
      const passed = [];
      for (let leases = await bench.claim(); leases.length > 0; leases = await bench.claim()) {
        passed.push(...leases.map(({ ownId }) => ownId?.charAt(0)));
        await bench.settle(...leases.map((lease) => bench.complete(lease)));
      }
      bench.expect(passed).toEqual(order === "position" ? ["c", "b"] : ["b", "c"]);
    }
    await isIdle(bench);
  }),
  it("does not pass a filtered event of a lower position as late, and holds the others back as before", async (bench) => {
    await bench.handle(ofSource(bench, "position", "a", 5));
    const { accepted } = await bench.accept(ofSource(bench, "position", "b", 4, FILTERED));
    bench.expect([accepted, await bench.claim()]).toMatchObject([[{ outcome: "filtered" }], []]);
    const since = bench.clock.now();
    await bench.accept(ofSource(bench, "position", "c", 7, { gapWaitMs: 1_000 }));
    await bench.clock.advance(400);
    await bench.accept(ofSource(bench, "position", "d", 6, { gapWaitMs: 1_000, ...FILTERED }));
    bench.expect(await bench.lane(LANE.name, { ...LANE, order: "position" })).toMatchObject({ readyAt: since + 1_000 });
    await bench.clock.advance(600);
    bench.expect(await bench.claimOne()).toMatchObject({ ownId: "c" });
  }),
  it("refuses to replay, to discard and to release a filtered event", async (bench) => {
    const { accepted } = await bench.accept(filtered(bench, 1));
    const event = accepted[0]?.outcome === "filtered" ? accepted[0].event : 0;
    bench.expect(await bench.act({ kind: "replay", event })).toEqual({ ok: false, reason: "body_pruned" });
    bench.expect(await bench.act({ kind: "discard", event })).toEqual({ ok: false, reason: "wrong_state" });
    bench.expect((await bench.store.stats()).counters).toMatchObject({ filtered: 1, discarded: 0 });
  }),
  it("keeps a filtered event's identity as long as others, and then prunes its lane", async (bench) => {
    await bench.accept(filtered(bench, 1));
    await bench.clock.advance(29 * DAY);
    await bench.accept(bench.of("newer", 1));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, more: false });
    bench.expect((await bench.accept(bench.event(1))).accepted).toMatchObject([{ outcome: "duplicate" }]);
    await bench.clock.advance(2 * DAY);
    await bench.accept(bench.of("newest", 1));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 1, lanes: 1, more: false });
    bench.expect((await bench.accept(bench.event(1))).accepted).toMatchObject([{ outcome: "accepted" }]);
  }),
  it("erases a message with filtered events, and leaves them as they ended", async (bench) => {
    await bench.accept(bench.event(1), filtered(bench, 2));
    const subject = { id: "m" };
    bench.expect(await bench.act({ kind: "erase", subject })).toMatchObject({ ok: true });
    bench.expect(await bench.at(1)).toMatchObject({ state: "discarded", raw: null });
    bench.expect(await bench.at(2)).toMatchObject({ state: "done", outcome: "filtered", raw: null });
    bench.expect((await bench.store.stats()).counters).toMatchObject({ filtered: 1, discarded: 1 });
  }),
  it("exports a filtered event with its lane", async (bench) => {
    await bench.accept(filtered(bench, 1), bench.event(2));
    const [lane] = await bench.store.export(0, 10);
    bench.expect(lane?.events).toMatchObject([
      { sequence: 1, outcome: "filtered", raw: null },
      { sequence: 2, state: "pending" },
    ]);
  }),
];
