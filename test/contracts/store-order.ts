/** The store contract on order: gaps before a head, and events that arrive below their lane's cursor. */
import type { Acceptance, Lease, SettleResult } from "../../src/inbox/store.ts";
import { type Bench, type ContractCase, it, nameOf, needing, recordsLate, sequences } from "./store-bench.ts";

// Gaps before a head, and how long it waits for the missing events.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Whether an answer reports the beginning of a gap. */
function gapBegins(answer: Acceptance | SettleResult | undefined): true | undefined {
  if (answer === undefined || !("gapBegins" in answer)) return undefined;
  return answer.gapBegins;
}

export const gapCases: readonly ContractCase[] = [
  it("reports once that a gap begins: for the event that waits, not for events behind it or within the gap", async (bench) => {
    const answers = [];
    for (const sequence of [1, 5, 6, 3]) {
      const { accepted } = await bench.accept(bench.event(sequence));
      answers.push(gapBegins(accepted[0]));
      for (const lease of await bench.claim()) await bench.settle(bench.complete(lease));
    }
    bench.expect(answers).toEqual([undefined, true, undefined, undefined]);
    const { accepted } = await bench.accept(bench.event(2), bench.of("other", 2), bench.event(1));
    bench.expect(accepted.map(gapBegins)).toEqual([undefined, true, undefined]);
  }),
  it("reports that a gap begins when the event before it ends, in whichever way", async (bench) => {
    const ends = [
      (lease: Lease) => bench.complete(lease),
      (lease: Lease) => bench.complete(lease, "unhandled"),
      (lease: Lease) => bench.dead(lease),
    ];
    for (const [index, end] of ends.entries()) {
      const message = `m${index}`;
      await bench.accept(bench.of(message, 1));
      const lease = await bench.claimOne();
      await bench.accept(bench.of(message, 3));
      bench.expect((await bench.settled([end(lease)])).map(gapBegins)).toEqual([true]);
      bench.expect((await bench.lane(message)).status).toBe("gap");
    }
  }),
  it("reports no gap when the event before it is retried, or when it ends and nothing is missing", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2), bench.event(4));
    const first = await bench.claimOne();
    bench.expect((await bench.settled([bench.retry(first, 1_000)])).map(gapBegins)).toEqual([undefined]);
    await bench.clock.advance(1_000);
    bench.expect((await bench.settled([bench.complete(await bench.claimOne())])).map(gapBegins)).toEqual([undefined]);
    bench.expect((await bench.settled([bench.complete(await bench.claimOne())])).map(gapBegins)).toEqual([true]);
  }),
  it("leases a message's events one by one in ascending sequence, whatever their order of arrival (RCV-7, I3, I4)", async (bench) => {
    await bench.accept(bench.event(3), bench.event(1));
    await bench.accept(bench.event(4), bench.event(2));
    const seen: number[] = [];
    for (let leases = await bench.claim(); leases.length > 0; leases = await bench.claim()) {
      seen.push(bench.only(leases).sequence);
      await bench.settle(...leases.map((lease) => bench.complete(lease)));
    }
    bench.expect(seen).toEqual([1, 2, 3, 4]);
    bench
      .expect(await bench.lane())
      .toMatchObject({ status: "idle", readyAt: null, gapSince: null, cursor: 4, gaps: [] });
  }),
  it("lets 4 wait for 1 until its gap wait is over, and then reports the missing sequences (RCV-7, I6)", async (bench) => {
    await bench.accept(bench.event(4));
    const since = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
    await bench.clock.advance(89_999);
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(1);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 4, missing: { from: 1, to: 3 }, outOfOrder: false });
    const lane = await bench.lane();
    bench.expect(lane).toMatchObject({ cursor: 4, gapSince: null });
    bench.expect(lane.gaps).toEqual([{ from: 1, to: 3, skippedAt: since + 90_000, filledAt: null }]);
    bench.expect((await bench.store.stats()).counters.gapsSkipped).toBe(1);
  }),
  it("leases in order an event that fills a gap just before the deadline (RCV-7)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    await bench.clock.advance(89_999);
    await bench.accept(bench.event(2));
    await bench.clock.advance(1);
    const second = await bench.claimOne();
    bench.expect(second).toMatchObject({ sequence: 2, late: false, missing: null });
    await bench.settle(bench.complete(second));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, missing: null });
    bench.expect((await bench.lane()).gaps).toEqual([]);
  }),
  it("treats an event that fills a gap just after the deadline as late, and marks the gap filled (RCV-7, I6)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    await bench.clock.advance(90_000);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, missing: { from: 2, to: 2 } });
    await bench.clock.advance(1);
    const { accepted } = await bench.record(bench.event(2));
    bench.expect(accepted).toMatchObject([{ outcome: "late" }]);
    const lane = await bench.lane();
    bench.expect(lane.gaps).toMatchObject([{ from: 2, to: 2, filledAt: bench.clock.now() }]);
  }),
  it("does not skip a gap that was due but is filled before the head is claimed (I6)", async (bench) => {
    await bench.accept(bench.event(2));
    await bench.clock.advance(100_000);
    const { leases } = await bench.step({ accepts: [bench.event(1)], claim: { limit: 0 } });
    bench.expect(leases).toEqual([]);
    bench.expect(sequences(await bench.claim())).toEqual([1]);
    bench.expect((await bench.lane()).gaps).toEqual([]);
  }),
  it("starts a new wait for a second gap when the cursor moved (I6)", async (bench) => {
    await bench.accept(bench.event(3), bench.event(6));
    await bench.clock.advance(90_000);
    const third = await bench.claimOne();
    bench.expect(third.sequence).toBe(3);
    await bench.clock.advance(10_000);
    await bench.settle(bench.complete(third));
    const since = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
    await bench.clock.advance(90_000);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 6, missing: { from: 4, to: 5 } });
    bench.expect((await bench.lane()).gaps).toMatchObject([
      { from: 1, to: 2 },
      { from: 4, to: 5 },
    ]);
  }),
  it("keeps a gap's start when a lower head arrives, and uses that head's own wait", async (bench) => {
    await bench.accept(bench.event(5, { gapWaitMs: 20 * MINUTE }));
    const since = bench.clock.now();
    await bench.clock.advance(MINUTE);
    await bench.accept(bench.event(3, { gapWaitMs: 2 * MINUTE }));
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 2 * MINUTE });
  }),
  it("waits no longer than 85 minutes after the head occurred", async (bench) => {
    const occurredAt = bench.clock.now() - 80 * MINUTE;
    await bench.accept(bench.event(2, { occurredAt, gapWaitMs: 22 * MINUTE }));
    bench.expect(await bench.store.nextDue()).toBe(5 * MINUTE);
  }),
  it("waits for the whole gap wait when the head itself arrived more than 85 minutes after it occurred", async (bench) => {
    const occurredAt = bench.clock.now() - 86 * MINUTE;
    await bench.accept(bench.event(2, { occurredAt, gapWaitMs: 22 * MINUTE }));
    bench.expect(await bench.store.nextDue()).toBe(22 * MINUTE);
  }),
  it("does not wait where the gap wait is 0, and records the gap all the same (I6)", async (bench) => {
    await bench.accept(bench.event(4, { gapWaitMs: 0 }));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 4, missing: { from: 1, to: 3 } });
    bench.expect((await bench.lane()).gaps).toMatchObject([{ from: 1, to: 3 }]);
  }),
  it("reports the missing sequences on every attempt and records them once (I6)", async (bench) => {
    await bench.accept(bench.event(3, { gapWaitMs: 0 }));
    for (let attempt = 1; attempt <= 3; attempt++) {
      const lease = await bench.claimOne();
      bench.expect(lease).toMatchObject({ attempt, missing: { from: 1, to: 2 } });
      await bench.settle(bench.retry(lease, 0));
    }
    bench.expect((await bench.lane()).gaps.length).toBe(1);
    bench.expect((await bench.store.stats()).counters.gapsSkipped).toBe(1);
  }),
  {
    name: 'treats the first arrival as the first event with firstSequence "any", and waits from then on (RCV-7)',
    firstSequence: "any",
    async run(bench) {
      bench.expect(await bench.handle(bench.event(7))).toMatchObject({ sequence: 7, missing: null });
      await bench.accept(bench.event(9));
      bench.expect(await bench.lane()).toMatchObject({ status: "gap", cursor: 7 });
      const { accepted } = await bench.accept(bench.event(6));
      bench.expect(accepted).toMatchObject([{ outcome: "late" }]);
    },
  },
  {
    name: "waits for the configured first sequence",
    firstSequence: 0,
    async run(bench) {
      await bench.accept(bench.event(1));
      bench.expect(await bench.lane()).toMatchObject({ status: "gap" });
      await bench.accept(bench.event(0));
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 0, missing: null });
    },
  },
  it("never lets events wait that are alone in their lanes", async (bench) => {
    const inbound = bench.event(0, { lane: { order: null } });
    const unlaned = bench.event(0, { lane: { order: null, tenant: null, name: "0a".repeat(32) } });
    const far = bench.event(9, { lane: { order: null, name: "0b".repeat(32) } });
    await bench.accept(inbound, unlaned, far);
    const leases = await bench.claim();
    bench.expect(leases).toMatchObject([{ missing: null }, { missing: null }, { missing: null }]);
    bench.expect(leases.map(({ ownId }) => ownId)).toEqual(["m", "0a".repeat(32), "0b".repeat(32)]);
  }),
  it("ends no wait when the clock goes back an hour, and the longest waits when it goes back further (I6)", async (bench) => {
    const longest = 24 * HOUR;
    await bench.accept(bench.of("leased", 1));
    await bench.claimOne({ leaseMs: longest });
    await bench.accept(bench.of("failed", 1));
    await bench.settle(bench.retry(await bench.claimOne(), longest));
    const occurredAt = bench.clock.now() - 86 * MINUTE;
    await bench.accept(bench.of("waits", 2, { occurredAt, gapWaitMs: longest }));
    bench.clock.set(bench.clock.now() - HOUR);
    bench.expect(await bench.step({ claim: { limit: 100 } })).toMatchObject({ leases: [], recoveryDue: false });
    bench.expect(await bench.store.nextDue()).toBe(longest + HOUR);
    bench.clock.set(bench.clock.now() - 1);
    bench.expect(await bench.store.nextDue()).toBe(0);
    const { leases, recoveryDue } = await bench.step({ claim: { limit: 100 } });
    bench.expect(leases.map(nameOf).sort()).toEqual(["failed", "waits"]);
    bench.expect(recoveryDue).toBe(true);
  }),
  it("skips and records a released gap although the clock was set back since the gap began (I6)", async (bench) => {
    await bench.accept(bench.event(3));
    bench.clock.set(bench.clock.now() - HOUR);
    const { id } = await bench.lane();
    bench.expect(await bench.act({ kind: "release_gap", lane: id })).toMatchObject({ ok: true, count: 1 });
    bench.expect((await bench.lane()).status).toBe("ready");
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 3, missing: { from: 1, to: 2 }, forced: false });
    const { cursor, gapSince, gaps } = await bench.lane();
    bench.expect({ cursor, gapSince }).toEqual({ cursor: 3, gapSince: null });
    bench.expect(gaps).toEqual([{ from: 1, to: 2, skippedAt: bench.clock.now(), filledAt: null }]);
  }),
  it("ends a wait that is further ahead than any wait can be, because the clock went back", async (bench) => {
    await bench.accept(bench.event(2));
    bench.clock.set(bench.clock.now() - 25 * HOUR);
    bench.expect(await bench.store.nextDue()).toBe(0);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, missing: { from: 1, to: 1 } });
  }),
  it("leases due lanes before lanes that are too far ahead, each once", async (bench) => {
    await bench.accept(bench.of("far", 2), bench.of("farther", 2));
    bench.clock.set(bench.clock.now() - 25 * HOUR);
    await bench.accept(bench.of("near", 1));
    const leases = [await bench.claimOne({ limit: 1 }), ...(await bench.claim())];
    const names = leases.map(nameOf);
    bench.expect([names[0], names.slice(1).sort()]).toEqual(["near", ["far", "farther"]]);
    bench.expect(await bench.claim()).toEqual([]);
  }),
  it("leases ready lanes after the clock was set back an hour, while waiting lanes go on waiting (I5, I6)", async (bench) => {
    await bench.accept(bench.of("ready", 1), bench.of("waits", 2));
    bench.clock.set(bench.clock.now() - HOUR);
    bench.expect(await bench.store.nextDue()).toBe(0);
    bench.expect((await bench.claim()).map(nameOf)).toEqual(["ready"]);
    bench.expect(await bench.store.nextDue()).toBe(30_000);
  }),
  ...needing("durable", [
    it("leases ready lanes after the clock was set back while the inbox was closed (I5)", async (bench) => {
      await bench.accept(bench.event(1));
      await bench.store.close();
      bench.clock.set(bench.clock.now() - HOUR);
      bench.store = await bench.another();
      bench.expect(await bench.store.nextDue()).toBe(0);
      bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, missing: null });
    }),
  ]),
];

// Events that arrive below their lane's cursor.

/** Handles 1 and, without a wait, 5: from now on, events between them are late. */
async function skipTo5(bench: Bench): Promise<void> {
  await bench.handle(bench.event(1));
  await bench.handle(bench.event(5, { gapWaitMs: 0 }));
}

export const lateCases: readonly ContractCase[] = [
  it("records a late event without leasing it (I4, I10, RCV-7)", async (bench) => {
    await skipTo5(bench);
    const now = bench.clock.now();
    const { accepted, leases, untaken } = await bench.step({
      ...{ accepts: [bench.event(3)], claim: { limit: 10, takes: recordsLate } },
    });
    bench
      .expect([accepted, leases, untaken])
      .toMatchObject([[{ outcome: "late" }], [], [{ state: "late", late: true }]]);
    bench.expect(await bench.at(3)).toMatchObject({ state: "late", late: true, outcome: null, finishedAt: now });
    bench
      .expect(await bench.lane())
      .toMatchObject({ status: "idle", cursor: 5, gaps: [{ from: 2, to: 4, filledAt: now }] });
    bench.expect((await bench.store.stats()).counters).toMatchObject({ accepted: 3, late: 1 });
    bench
      .expect((await bench.record(bench.event(3))).accepted)
      .toMatchObject([{ outcome: "duplicate", state: "late" }]);
  }),
  it("leases a late event with the flag `late`, and leaves the cursor (I4)", async (bench) => {
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
  }),
  it("marks a gap as filled only for an event inside it (I6)", async (bench) => {
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
  }),
  it("treats an event with the cursor's own sequence as on time", async (bench) => {
    await skipTo5(bench);
    const event = bench.event(5, { eventType: "message.failed" });
    bench.expect((await bench.accept(event)).accepted).toMatchObject([{ outcome: "accepted" }]);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 5, late: false, outOfOrder: false });
  }),
  it("treats an event below the cursor as late while the cursor's event is being handled (I4)", async (bench) => {
    await bench.accept(bench.event(3, { gapWaitMs: 0 }));
    const lease = await bench.claimOne();
    bench.expect((await bench.accept(bench.event(2))).accepted).toMatchObject([{ outcome: "late" }]);
    bench.expect(await bench.claim()).toEqual([]);
    await bench.settle(bench.complete(lease));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, late: true });
  }),
  it("leases late events while the head waits for its gap, and that wait keeps its start (I4, I6)", async (bench) => {
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
  }),
  it("leases events on time before late ones (I4)", async (bench) => {
    await skipTo5(bench);
    await bench.accept(bench.event(2), bench.event(6));
    const on = await bench.claimOne();
    bench.expect(on).toMatchObject({ sequence: 6, late: false });
    await bench.settle(bench.complete(on));
    bench.expect(sequences(await bench.claim())).toEqual([2]);
  }),
  it("interrupts a lane's backoff for an earlier event, and does not resume that wait (I4)", async (bench) => {
    await skipTo5(bench);
    await bench.accept(bench.event(2));
    await bench.settle(bench.retry(await bench.claimOne(), 600_000));
    bench.expect((await bench.lane()).status).toBe("backoff");
    await bench.accept(bench.event(6));
    const next = await bench.claimOne();
    bench.expect(next.sequence).toBe(6);
    await bench.settle(bench.complete(next));
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 2, attempt: 2 });
  }),
  it("does not interrupt a lane's backoff for a later event (I4)", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.settle(bench.retry(await bench.claimOne(), 60_000));
    const { readyAt } = await bench.lane();
    await bench.accept(bench.event(2), bench.event(1, { eventType: "message.failed" }));
    bench.expect(await bench.lane()).toMatchObject({ status: "backoff", readyAt });
    bench.expect(await bench.claim()).toEqual([]);
    await bench.clock.advance(60_000);
    bench.expect(await bench.claimOne()).toMatchObject({ sequence: 1, eventType: "message.sent", attempt: 2 });
  }),
];
