/** The store contract on events that arrive below their lane's cursor. */
import { type Bench, type ContractCase, sequences } from "./store-contract-bench.ts";

/** Handles 1 and, without a wait, 5: what arrives between them now is late. */
async function skipTo5(bench: Bench): Promise<void> {
  await bench.handle(bench.event(1));
  await bench.handle(bench.event(5, { gapWaitMs: 0 }));
}

export const lateCases: readonly ContractCase[] = [
  {
    name: "records a late event without handing it out (I4, I10, RCV-7)",
    async run(bench) {
      await skipTo5(bench);
      const now = bench.clock.now();
      const { accepted, leases } = await bench.step({
        ...{ accepts: [bench.event(3)], lateEvents: "record", claim: { limit: 10 } },
      });
      bench.expect([accepted, leases]).toMatchObject([[{ outcome: "late" }], []]);
      bench.expect(await bench.at(3)).toMatchObject({ state: "late", late: true, outcome: null, finishedAt: now });
      bench
        .expect(await bench.lane())
        .toMatchObject({ status: "idle", cursor: 5, gaps: [{ from: 2, to: 4, filledAt: now }] });
      bench.expect((await bench.store.stats()).counters).toMatchObject({ accepted: 3, late: 1 });
      bench
        .expect((await bench.step({ accepts: [bench.event(3)], lateEvents: "record" })).accepted)
        .toMatchObject([{ outcome: "duplicate", state: "late" }]);
    },
  },
  {
    name: "hands out a late event flagged, and leaves the cursor (I4)",
    async run(bench) {
      await skipTo5(bench);
      bench.expect((await bench.accept(bench.event(3))).accepted).toMatchObject([{ outcome: "late" }]);
      const lease = await bench.claimOne();
      bench.expect(lease).toMatchObject({ sequence: 3, late: true, forced: false, outOfOrder: true });
      bench.expect((await bench.lane()).cursor).toBe(5);
      await bench.settle(bench.complete(lease));
      bench.expect(await bench.at(3)).toMatchObject({ state: "done", outcome: "handled", late: true });
      bench
        .expect(await bench.lane())
        .toMatchObject({ status: "idle", cursor: 5, gaps: [{ filledAt: bench.clock.now() }] });
    },
  },
  {
    name: "shows a gap as filled only by an event that lies in it (I6)",
    async run(bench) {
      await bench.handle(bench.event(1));
      for (const sequence of [4, 7, 10]) await bench.handle(bench.event(sequence, { gapWaitMs: 0 }));
      const filled = async () => (await bench.lane()).gaps.map(({ to, filledAt }) => [to, filledAt]);
      await bench.accept(bench.event(4, { eventType: "message.failed" }));
      bench.expect(await filled()).toEqual([
        [3, null],
        [6, null],
        [9, null],
      ]);
      const now = bench.clock.now();
      await bench.accept(bench.event(5));
      bench.expect(await filled()).toEqual([
        [3, null],
        [6, now],
        [9, null],
      ]);
    },
  },
  {
    name: "takes an event of the cursor's own sequence for on time",
    async run(bench) {
      await skipTo5(bench);
      const event = bench.event(5, { eventType: "message.failed" });
      bench.expect((await bench.accept(event)).accepted).toMatchObject([{ outcome: "accepted" }]);
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 5, late: false, outOfOrder: false });
    },
  },
  {
    name: "takes an event below a cursor that is still being handled for late (I4)",
    async run(bench) {
      await bench.accept(bench.event(3, { gapWaitMs: 0 }));
      const lease = await bench.claimOne();
      bench.expect((await bench.accept(bench.event(2))).accepted).toMatchObject([{ outcome: "late" }]);
      bench.expect(await bench.claim()).toEqual([]);
      await bench.settle(bench.complete(lease));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, late: true });
    },
  },
  {
    name: "hands out late events while the head's gap is waited for, and that wait keeps its start (I4, I6)",
    async run(bench) {
      await skipTo5(bench);
      await bench.accept(bench.event(8));
      const since = bench.clock.now();
      await bench.clock.advance(30_000);
      await bench.accept(bench.event(2));
      const late = await bench.claimOne();
      bench.expect(late).toMatchObject({ sequence: 2, late: true });
      await bench.clock.advance(20_000);
      await bench.settle(bench.complete(late));
      bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
      await bench.clock.advance(40_000);
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 8, missing: { from: 6, to: 7 } });
    },
  },
  {
    name: "hands out events on time before late ones (I4)",
    async run(bench) {
      await skipTo5(bench);
      await bench.accept(bench.event(2), bench.event(6));
      const on = await bench.claimOne();
      bench.expect(on).toMatchObject({ sequence: 6, late: false });
      await bench.settle(bench.complete(on));
      bench.expect(sequences(await bench.claim())).toEqual([2]);
    },
  },
  {
    name: "interrupts a lane's backoff for an event that comes first, and does not resume that wait (I4)",
    async run(bench) {
      await skipTo5(bench);
      await bench.accept(bench.event(2));
      await bench.settle(bench.retry(await bench.claimOne(), 600_000));
      bench.expect((await bench.lane()).status).toBe("backoff");
      await bench.accept(bench.event(6));
      const next = await bench.claimOne();
      bench.expect(next.sequence).toBe(6);
      await bench.settle(bench.complete(next));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, attempt: 2 });
    },
  },
  {
    name: "leaves a lane in backoff for an event that comes later (I4)",
    async run(bench) {
      await bench.accept(bench.event(1));
      await bench.settle(bench.retry(await bench.claimOne(), 60_000));
      const { readyAt } = await bench.lane();
      await bench.accept(bench.event(2), bench.event(1, { eventType: "message.failed" }));
      bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt });
      bench.expect(await bench.claim()).toEqual([]);
      await bench.clock.advance(60_000);
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, eventType: "message.sent", attempt: 2 });
    },
  },
];
