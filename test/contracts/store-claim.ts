/** The store contract on leases: which lanes are claimed, in which order, and what happens to a lease that expires. */
import { FRESH_MS } from "../../src/inbox/gap.ts";
import { ENDED_PER_CLAIM } from "../../src/inbox/store-rules.ts";
import { type Bench, bytes, type ContractCase, hex, it, nameOf, needing, sequences } from "./store-bench.ts";

// Claims: which lanes, in which order, and what an accepted event's lease depends on.

export const claimCases: readonly ContractCase[] = [
  it("leases a lane's head with everything a handler needs (I3)", async (bench) => {
    const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const event = bench.event(1, { trace });
    await bench.accept(event);
    await bench.clock.advance(1_000);
    const lease = await bench.claimOne({ leaseMs: 30_000 });
    const record = await bench.at(1);
    const { lane: key, eventType, signedAt } = event;
    bench.expect(lease).toMatchObject({ lane: record.laneId, event: record.id, key, sequence: 1, eventType, trace });
    bench.expect(lease).toMatchObject({ attempt: 1, acceptedAt: record.acceptedAt, signedAt, late: false });
    bench.expect(lease).toMatchObject({ forced: false, outOfOrder: false, missing: null, acceptIndex: null });
    bench.expect(hex(lease.raw)).toBe(hex(event.raw));
    const now = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "leased", readyAt: now + 30_000, cursor: 1 });
    bench.expect(record).toMatchObject({ state: "pending", attempts: 1, startedAt: now });
  }),
  it("claims the lanes that have been due the longest first, within the limit", async (bench) => {
    await bench.accept(bench.of("waits", 2));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("b", 1), bench.of("a", 1));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("c", 1));
    await bench.clock.advance(88_000);
    await bench.accept(bench.of("d", 1));
    const claims: string[][] = [];
    for (const limit of [2, 2, 2]) claims.push((await bench.claim({ limit })).map(nameOf));
    bench.expect(claims).toEqual([["b", "a"], ["c", "waits"], ["d"]]);
  }),
  it("keeps a ready lane's place when more events arrive for it", async (bench) => {
    await bench.accept(bench.of("first", 1));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("second", 1));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("first", 2));
    bench.expect(await bench.claimOne({ limit: 1 })).toMatchObject({ key: { name: "first" }, sequence: 1 });
  }),
  it("gives a lane to one worker at a time, and a new token to each lease (I3)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    const first = await bench.claimOne();
    bench.expect(await bench.claim()).toEqual([]);
    await bench.settle(bench.complete(first));
    const second = await bench.claimOne();
    bench.expect([second.sequence, second.token !== first.token]).toEqual([2, true]);
  }),
  it("does not delay a lane by others that wait, fail or are blocked (I9)", async (bench) => {
    await bench.accept(bench.of("gap", 5), bench.of("backoff", 1), bench.of("blocked", 1), bench.of("leased", 1));
    for (const lease of await bench.claim()) {
      if (lease.key.name === "backoff") await bench.settle(bench.retry(lease, 600_000));
      if (lease.key.name === "blocked") await bench.settle(bench.dead(lease, "block"));
    }
    await bench.accept(...["gap", "backoff", "blocked", "leased"].map((id) => bench.of(id, 6)), bench.of("free", 1));
    bench.expect((await bench.claim()).map(nameOf)).toEqual(["free"]);
  }),
  it("returns when a lane is due next: never for idle and blocked ones", async (bench) => {
    bench.expect(await bench.store.nextDue()).toBe(null);
    await bench.accept(bench.event(1));
    bench.expect(await bench.store.nextDue()).toBe(0);
    const lease = await bench.claimOne({ leaseMs: 30_000 });
    bench.expect(await bench.store.nextDue()).toBe(30_000);
    await bench.accept(bench.of("other", 2, { gapWaitMs: 20_000 }));
    await bench.clock.advance(5_000);
    bench.expect(await bench.store.nextDue()).toBe(15_000);
    await bench.clock.advance(15_001);
    bench.expect(await bench.store.nextDue()).toBe(0);
    await bench.settle(bench.dead(lease, "block"), bench.complete(await bench.claimOne()));
    bench.expect(await bench.store.nextDue()).toBe(null);
  }),
  it("leases accepted events at once while slots are free, with their indexes in the batch", async (bench) => {
    const accepts = [bench.of("gap", 2), bench.of("a", 1), bench.of("a", 2), bench.of("b", 1), bench.of("c", 1)];
    const { leases } = await bench.step({ accepts, claim: { limit: 2 } });
    bench.expect(leases).toMatchObject([
      { key: { name: "a" }, sequence: 1, acceptIndex: 1, attempt: 1 },
      { key: { name: "b" }, sequence: 1, acceptIndex: 3, attempt: 1 },
    ]);
    bench.expect((await bench.lane("c")).status).toBe("ready");
    bench.expect(sequences(await bench.claim())).toEqual([1]);
  }),
  it("leases a message's first event although it is second in its batch", async (bench) => {
    const { leases } = await bench.step({ accepts: [bench.event(2), bench.event(1)], claim: { limit: 5 } });
    bench.expect(leases).toMatchObject([{ sequence: 1, acceptIndex: 1, missing: null }]);
  }),
  it("serves lanes that were due before the events it accepts", async (bench) => {
    await bench.accept(bench.of("old", 1));
    const { leases } = await bench.step({ accepts: [bench.of("new", 1)], claim: { limit: 1 } });
    bench.expect(leases).toMatchObject([{ key: { name: "old" }, acceptIndex: null }]);
  }),
  it("leases no duplicate", async (bench) => {
    const event = bench.event(1);
    await bench.settle(bench.release(bench.only((await bench.step({ accepts: [event], claim: { limit: 1 } })).leases)));
    const { leases } = await bench.step({ accepts: [event], claim: { limit: 5 } });
    bench.expect(leases).toMatchObject([{ sequence: 1, acceptIndex: null, attempt: 1 }]);
  }),
  it("claims one lane alone on request, after what it accepts", async (bench) => {
    await bench.accept(bench.of("a", 2), bench.of("b", 1));
    const { id: lane } = await bench.lane("a");
    bench.expect(await bench.claim({ lane })).toEqual([]);
    const accepts = [bench.of("c", 1), bench.of("a", 1)];
    const { leases } = await bench.step({ accepts, claim: { limit: 5, lane } });
    bench.expect(leases).toMatchObject([{ lane, sequence: 1 }]);
    bench.expect((await bench.claim()).map(nameOf)).toEqual(["b", "c"]);
  }),
  it("claims nothing with limit 0", async (bench) => {
    await bench.accept(bench.event(1));
    const { leases } = await bench.step({ accepts: [bench.of("b", 1)], claim: { limit: 0 } });
    bench.expect(leases).toEqual([]);
  }),
  it("claims no more once the claimed bodies have maxBytes, whichever way, and at least one of any size", async (bench) => {
    const raw = (id: string) => bytes(JSON.stringify({ id, text: "x".repeat(10_000) }));
    const large = (id: string) => bench.of(id, 1, { raw: raw(id) });
    const claimed = async (maxBytes: number) => (await bench.claim({ maxBytes })).map(nameOf);
    await bench.accept(...["a", "b", "c", "d", "e"].map(large));
    const size = raw("a").byteLength;
    bench.expect(await claimed(1)).toEqual(["a"]);
    bench.expect(await claimed(size + 1)).toEqual(["b", "c"]);
    const { leases } = await bench.step({ accepts: [large("f")], claim: { limit: 5, maxBytes: 2 * size } });
    bench.expect(leases.map(({ key, raw: { byteLength } }) => [key.name, byteLength])).toEqual([
      ["d", size],
      ["e", size],
    ]);
    bench.expect(await claimed(2 * size)).toEqual(["f"]);
    const fresh = await bench.step({ accepts: ["g", "h", "i"].map(large), claim: { limit: 5, maxBytes: size + 1 } });
    bench.expect(fresh.leases.map(nameOf)).toEqual(["g", "h"]);
    bench.expect([await claimed(1), await claimed(1)]).toEqual([["i"], []]);
  }),
  it("counts the bodies of events that used up their attempts towards maxBytes, and those of untaken ones not", async (bench) => {
    const raw = bytes(JSON.stringify({ text: "x".repeat(10_000) }));
    await bench.accept(...["a", "b", "c"].map((id) => bench.of(id, 1, { raw })));
    for (const lease of await bench.claim()) await bench.settle(bench.retry(lease, 0));
    const retired = await bench.step({ claim: { limit: 5, maxAttempts: 1, maxBytes: raw.byteLength + 1 } });
    bench.expect(retired.retired.map(({ lane }) => lane.name)).toEqual(["a", "b"]);
    await bench.accept(bench.of("d", 1, { raw, eventType: "message.read" }), bench.of("e", 1, { raw }));
    const takes = (_lane: unknown, type: string) => type !== "message.read";
    const { untaken, leases } = await bench.step({ claim: { limit: 5, maxBytes: raw.byteLength + 1, takes } });
    bench.expect(untaken.map(nameOf)).toEqual(["d"]);
    bench.expect(leases.map(nameOf)).toEqual(["c", "e"]);
  }),
  it("settles, accepts and claims in one turn", async (bench) => {
    await bench.accept(bench.of("a", 1), bench.of("a", 2), bench.of("b", 1));
    const [a, b] = await bench.claimTwo();
    const settles = [bench.complete(a), bench.retry(b, 5_000)];
    const result = await bench.step({ settles, accepts: [bench.of("c", 1)], claim: { limit: 5 } });
    bench.expect(result.settled).toEqual([{ status: "settled" }, { status: "settled" }]);
    bench.expect(result.leases).toMatchObject([
      { key: { name: "a" }, sequence: 2, acceptIndex: null },
      { key: { name: "c" }, sequence: 1, acceptIndex: 0 },
    ]);
  }),
];

// Expired leases: recovered one at a time, fenced off, and dead-lettered in the end.

const RECOVER = { limit: 10, mode: "recover" } as const;

/** Leases event 1 of `messageId` and lets the lease expire. */
async function expire(bench: Bench, messageId = "m") {
  await bench.accept(bench.of(messageId, 1));
  const lease = await bench.claimOne({ leaseMs: 30_000 });
  await bench.clock.advance(30_000);
  return lease;
}

export const recoveryCases: readonly ContractCase[] = [
  it("skips an expired lease in ordinary claims and reports it", async (bench) => {
    await expire(bench);
    bench.expect(await bench.step({ claim: { limit: 10 } })).toMatchObject({ leases: [], recoveryDue: true });
  }),
  it("recovers one expired lease at a time: the same event, one more attempt, a new token (I3, I7)", async (bench) => {
    const [a, b] = [await expire(bench, "a"), await expire(bench, "b")];
    await bench.accept(bench.of("due", 1));
    const first = await bench.step({ claim: RECOVER });
    bench.expect(first).toMatchObject({ leases: [{ event: a.event, sequence: 1, attempt: 2 }], recoveryDue: true });
    bench.expect(bench.only(first.leases).token !== a.token).toBe(true);
    const second = await bench.step({ claim: RECOVER });
    bench.expect(second).toMatchObject({ leases: [{ event: b.event, attempt: 2 }], recoveryDue: false });
    bench.expect(await bench.step({ claim: RECOVER })).toMatchObject({ leases: [], recoveryDue: false });
  }),
  it("leases no accepted event in recover mode or while a recovery is due", async (bench) => {
    await expire(bench);
    const due = await bench.step({ accepts: [bench.of("a", 1)], claim: { limit: 5 } });
    bench.expect(due).toMatchObject({ leases: [], accepted: [{ outcome: "accepted" }], recoveryDue: true });
    const recovering = await bench.step({ accepts: [bench.of("b", 1)], claim: RECOVER });
    bench.expect(recovering.leases).toMatchObject([{ key: { name: "m" } }]);
    bench.expect((await bench.claim()).map(nameOf)).toEqual(["a", "b"]);
  }),
  it("recovers the leased event even if an earlier one arrived meanwhile (I4)", async (bench) => {
    await bench.accept(bench.event(3, { gapWaitMs: 0 }));
    const lease = await bench.claimOne();
    await bench.accept(bench.event(2), bench.event(4));
    await bench.clock.advance(30_000);
    bench.expect(await bench.claimOne(RECOVER)).toMatchObject({ event: lease.event, missing: { from: 1, to: 2 } });
  }),
  it("fences off the holder of a lease that was recovered: all its settles are lost (I3)", async (bench) => {
    const stale = await expire(bench);
    const current = await bench.claimOne(RECOVER);
    const settles = [bench.complete(stale), bench.retry(stale, 0), bench.dead(stale), bench.release(stale)];
    bench.expect(await bench.settle(...settles)).toEqual(["lost", "lost", "lost", "lost"]);
    bench.expect(await bench.store.extend([stale, current], 30_000)).toEqual([false, true]);
    bench.expect(await bench.at(1)).toMatchObject({ state: "pending", attempts: 2, errorCode: null });
    bench.expect(await bench.settle(bench.complete(current))).toEqual(["settled"]);
  }),
  it("discards the event of an expired lease, whose holder can no longer settle it (I3)", async (bench) => {
    const lease = await expire(bench);
    await bench.accept(bench.event(2));
    const discarded = { ok: true, event: lease.event, count: 1 };
    bench.expect(await bench.act({ kind: "discard", event: lease.event })).toEqual(discarded);
    bench.expect(await bench.settle(bench.complete(lease))).toEqual(["lost"]);
    bench.expect(await bench.store.extend([lease], 30_000)).toEqual([false]);
    bench.expect(await bench.at(1)).toMatchObject({ state: "discarded", attempts: 1 });
    bench.expect(sequences(await bench.claim())).toEqual([2]);
  }),
  it("erases the event of an expired lease, whose holder can no longer settle it (I3, I5)", async (bench) => {
    const lease = await expire(bench);
    bench.expect(await bench.act({ kind: "erase", subject: { id: "m" } })).toEqual({ ok: true, count: 1 });
    bench.expect(await bench.settle(bench.complete(lease))).toEqual(["lost"]);
    bench.expect(await bench.at(1)).toMatchObject({ state: "discarded", attempts: 1, raw: null });
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", readyAt: null });
    bench.expect(await bench.step({ claim: RECOVER })).toMatchObject({ leases: [], recoveryDue: false });
  }),
  it("does not report an expired lease as in progress: its lane is not blocked, not in a gap, and its event not replayable", async (bench) => {
    const lease = await expire(bench);
    await bench.accept(bench.event(2));
    const wrong = { ok: false, reason: "wrong_state" };
    for (const kind of ["unblock", "release_gap"] as const)
      bench.expect(await bench.act({ kind, lane: lease.lane })).toEqual(wrong);
    bench.expect(await bench.act({ kind: "replay", event: lease.event })).toEqual(wrong);
    bench.expect(await bench.act({ kind: "discard", event: (await bench.at(2)).id })).toMatchObject({ ok: true });
    bench.expect(await bench.claimOne(RECOVER)).toMatchObject({ event: lease.event, attempt: 2 });
  }),
  ...needing("durable", [
    it("lets an operator act at once on the leases of a process that is gone", async (bench) => {
      await bench.store.close();
      bench.store = await bench.another("gone");
      await bench.accept(bench.event(1), bench.of("erased", 1));
      const [lease] = await bench.claimTwo({ leaseMs: 3_600_000 });
      const request = { kind: "discard", event: lease.event } as const;
      bench.expect(await bench.act(request)).toEqual({ ok: false, reason: "in_progress" });
      bench.store = await bench.another();
      bench.expect(await bench.act(request)).toMatchObject({ ok: true });
      bench.expect(await bench.act({ kind: "erase", subject: { id: "erased" } })).toMatchObject({ ok: true });
    }),
  ]),
  it("lets the holder of an expired lease settle or renew it until another process recovers it (I3)", async (bench) => {
    const lease = await expire(bench);
    bench.expect(await bench.store.extend([lease], 30_000)).toEqual([true]);
    bench.expect((await bench.step({ claim: { limit: 1 } })).recoveryDue).toBe(false);
    await bench.clock.advance(30_000);
    const result = await bench.step({ settles: [bench.complete(lease)], claim: { limit: 5 } });
    bench.expect(result).toMatchObject({ settled: [{ status: "settled" }], recoveryDue: false });
  }),
  it("retires an event without attempts left when its lease is recovered, and continues the lane (I7, I10)", async (bench) => {
    await expire(bench);
    await bench.accept(bench.event(2));
    const other = await expire(bench, "other");
    await expire(bench, "third");
    const result = await bench.step({ claim: { ...RECOVER, maxAttempts: 1 } });
    bench.expect(result.leases).toEqual([]);
    bench.expect(result.retired.map((event) => event.lane.name)).toEqual(["m", "other", "third"]);
    bench
      .expect(result.retired)
      .toMatchObject([
        { state: "dead", errorCode: "attempts_exhausted", attempts: 1, finishedAt: bench.clock.now() },
        { id: other.event, attempts: 1 },
        { attempts: 1 },
      ]);
    bench.expect(sequences(await bench.claim())).toEqual([2]);
    bench.expect((await bench.store.stats()).counters.deadLettered).toBe(3);
  }),
  it("blocks the lane of a retired event on request (I7)", async (bench) => {
    const stale = await expire(bench);
    await bench.accept(bench.event(2));
    await bench.step({ claim: { ...RECOVER, maxAttempts: 1, onDead: "block" } });
    bench.expect(await bench.lane()).toMatchObject({ status: "blocked", readyAt: null });
    bench.expect([await bench.claim(), await bench.settle(bench.complete(stale))]).toEqual([[], ["lost"]]);
  }),
  it("retires in an ordinary claim too, and leases the lane's next event in the same turn (I7, I10)", async (bench) => {
    await bench.accept(bench.event(1), bench.event(2));
    await bench.settle(bench.retry(await bench.claimOne(), 0));
    const { leases, retired } = await bench.step({ claim: { limit: 5, maxAttempts: 1 } });
    bench.expect(retired).toMatchObject([{ sequence: 1, state: "dead", errorCode: "attempts_exhausted", attempts: 1 }]);
    bench.expect(sequences(leases)).toEqual([2]);
  }),
  it("checks the limit of attempts before the gap: an event that is retired behind a gap skips nothing (I6, I7)", async (bench) => {
    await bench.accept(bench.event(4));
    await bench.clock.advance(90_000);
    const { leases, retired } = await bench.step({ claim: { limit: 5, maxAttempts: 0 } });
    bench.expect(leases).toEqual([]);
    bench.expect(retired).toMatchObject([{ sequence: 4, state: "dead", attempts: 0 }]);
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", cursor: null, gapSince: null, gaps: [] });
    bench.expect((await bench.store.stats()).counters.gapsSkipped).toBe(0);
  }),
  it(`retires ${ENDED_PER_CLAIM} events in a turn at most, and the others in the next ones (I7, I9)`, async (bench) => {
    const count = 2 * ENDED_PER_CLAIM + 10;
    await bench.accept(...Array.from({ length: count }, (_, n) => bench.of(`m${n}`, 1)));
    await bench.settle(...(await bench.claim({ limit: count })).map((lease) => bench.retry(lease, 0)));
    const retired: number[] = [];
    while (retired.at(-1) !== 0) {
      retired.push((await bench.step({ claim: { limit: 300, maxAttempts: 1 } })).retired.length);
    }
    bench.expect(Math.max(...retired) <= ENDED_PER_CLAIM).toBe(true);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ pending: 0, dead: count });
  }),
  ...needing("durable", [
    it("expires the leases of a process that is gone at once, and keeps the attempt (I3, I7)", async (bench) => {
      await bench.store.close();
      const crashed = await bench.another("gone");
      bench.store = crashed;
      await bench.accept(bench.event(1));
      const stale = await bench.claimOne({ leaseMs: 3_600_000 });
      bench.store = await bench.another();
      bench.expect(await bench.step({ claim: { limit: 5 } })).toMatchObject({ leases: [], recoveryDue: true });
      const lease = await bench.claimOne(RECOVER);
      bench.expect(lease).toMatchObject({ event: stale.event, attempt: 2 });
      bench.expect(await bench.settle(bench.complete(stale), bench.complete(lease))).toEqual(["lost", "settled"]);
    }),
  ]),
  ...needing("shared", [
    it("leaves alone the leases of a running process and of another host (I3)", async (bench) => {
      await bench.accept(bench.event(1));
      const lease = await bench.claimOne({ leaseMs: 60_000 });
      const elsewhere = await bench.second();
      await bench.open(elsewhere, { instance: { ...bench.instance("gone"), host: "another host" } });
      const first = bench.store;
      bench.store = elsewhere;
      await bench.accept(bench.of("far", 1));
      const far = await bench.claimOne({ leaseMs: 60_000 });
      bench.store = await bench.another();
      bench.expect(await bench.step({ claim: RECOVER })).toMatchObject({ leases: [], recoveryDue: false });
      bench.expect(await bench.settle(bench.complete(lease), bench.complete(far))).toEqual(["lost", "lost"]);
      bench.store = first;
      bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
    }),
    it("distributes lanes among several open stores, each lane once (I3)", async (bench) => {
      const ids = Array.from({ length: 20 }, (_, index) => `m${index}`);
      await bench.accept(...ids.map((id) => bench.of(id, 1)));
      const [first, second] = [bench.store, await bench.another()];
      const seen: string[] = [];
      for (let turn = 0; turn < 6; turn++) {
        bench.store = turn % 2 === 0 ? first : second;
        const leases = await bench.claim({ limit: 4 });
        seen.push(...leases.map(nameOf));
        if (turn % 3 === 0) await bench.settle(...leases.map((lease) => bench.complete(lease)));
      }
      bench.expect(seen.toSorted()).toEqual(ids.toSorted());
    }),
  ]),
];

// Priority: events that came lately before those that wait for longer, as far as the claim says.

/** Accepts 3 events, and 3 more when these are no longer fresh. */
async function oldAndFresh(bench: Bench): Promise<void> {
  await bench.accept(bench.of("old 1", 1), bench.of("old 2", 1), bench.of("old 3", 1));
  await bench.clock.advance(FRESH_MS);
  await bench.accept(bench.of("fresh 1", 1), bench.of("fresh 2", 1), bench.of("fresh 3", 1));
}

async function namesOf(bench: Bench, request: Parameters<Bench["claim"]>[0]): Promise<readonly string[]> {
  return (await bench.claim(request)).map(nameOf).toSorted();
}

export const priorityCases: readonly ContractCase[] = [
  it("claims the oldest first without a share of fresh ones", async (bench) => {
    await oldAndFresh(bench);
    bench.expect(await namesOf(bench, { limit: 3 })).toEqual(["old 1", "old 2", "old 3"]);
  }),
  it("claims as many fresh ones as the claim says, the oldest of them first, and the rest from the oldest", async (bench) => {
    await oldAndFresh(bench);
    bench.expect(await namesOf(bench, { limit: 3, fresh: 2 })).toEqual(["fresh 1", "fresh 2", "old 1"]);
    bench.expect(await namesOf(bench, { limit: 3, fresh: 1 })).toEqual(["fresh 3", "old 2", "old 3"]);
  }),
  it("leaves no slot empty if there are fewer of either", async (bench) => {
    await oldAndFresh(bench);
    bench
      .expect(await namesOf(bench, { limit: 5, fresh: 4 }))
      .toEqual(["fresh 1", "fresh 2", "fresh 3", "old 1", "old 2"]);
    await bench.accept(bench.of("fresh 4", 1));
    bench.expect(await namesOf(bench, { limit: 5, fresh: 1 })).toEqual(["fresh 4", "old 3"]);
  }),
  it("takes a replay for one that waits for long, whenever it was asked for", async (bench) => {
    await bench.handle(bench.of("replayed", 1));
    await bench.clock.advance(2 * FRESH_MS);
    const { id } = await bench.at(1, "replayed");
    await bench.accept(bench.of("fresh", 1));
    bench.expect(await bench.act({ kind: "replay", event: id })).toMatchObject({ ok: true });
    bench.expect(await namesOf(bench, { limit: 1, fresh: 1 })).toEqual(["fresh"]);
    bench.expect(await namesOf(bench, { limit: 1, fresh: 1 })).toEqual(["replayed"]);
  }),
  it("takes an event that failed for one that waits for long", async (bench) => {
    await bench.accept(bench.of("failed", 1));
    await bench.settle(bench.retry(await bench.claimOne(), 1_000));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("fresh", 1));
    bench.expect(await namesOf(bench, { limit: 1, fresh: 1 })).toEqual(["fresh"]);
  }),
  it("takes the next event of a lane for what it is: others do not wait for a long lane", async (bench) => {
    await bench.accept(bench.of("long", 1), bench.of("long", 2));
    const first = await bench.claimOne();
    await bench.clock.advance(2 * FRESH_MS);
    await bench.settle(bench.complete(first));
    bench.expect(await bench.lane("long")).toMatchObject({ status: "ready", readyAt: bench.clock.now() - FRESH_MS });
    await bench.accept(bench.of("fresh", 1));
    bench.expect(await namesOf(bench, { limit: 1, fresh: 1 })).toEqual(["fresh"]);
    bench.expect(await namesOf(bench, { limit: 1 })).toEqual(["long"]);
  }),
  it("takes an event that waited for a missing one for fresh when its wait ends", async (bench) => {
    await bench.accept(bench.of("old", 1));
    await bench.clock.advance(FRESH_MS);
    await bench.accept(bench.of("waited", 2, { gapWaitMs: 10_000 }));
    await bench.clock.advance(10_001);
    bench.expect(await namesOf(bench, { limit: 1, fresh: 1 })).toEqual(["waited"]);
  }),
  it("settles in the same batch and still leaves fresh ones their share", async (bench) => {
    await bench.accept(...[1, 2, 3, 4].flatMap((lane) => [bench.of(`long ${lane}`, 1), bench.of(`long ${lane}`, 2)]));
    const running = await bench.claim();
    await bench.clock.advance(2 * FRESH_MS);
    await bench.accept(bench.of("fresh", 1));
    const settles = running.map((lease) => bench.complete(lease));
    const { leases } = await bench.step({ settles, claim: { limit: 2, fresh: 1 } });
    bench.expect(leases.map(nameOf).toSorted()).toEqual(["fresh", "long 1"]);
  }),
];
