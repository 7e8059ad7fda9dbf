/** The store contract on claims: which lanes, in which order, and what an accepted event's lease depends on. */
import { type ContractCase, hex, sequences } from "./store-contract-bench.ts";

export const claimCases: readonly ContractCase[] = [
  {
    name: "leases a lane's head with everything a handler needs (I3)",
    async run(bench) {
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
      bench
        .expect(await bench.lane())
        .toMatchObject({ status: "leased", readyAt: now + 30_000, cursor: 1, epoch: lease.epoch });
      bench.expect(record).toMatchObject({ state: "pending", attempts: 1, startedAt: now });
    },
  },
  {
    name: "claims lanes due longest first, within the limit",
    async run(bench) {
      await bench.accept(bench.of("waits", 2));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("b", 1), bench.of("a", 1));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("c", 1));
      await bench.clock.advance(88_000);
      await bench.accept(bench.of("d", 1));
      const claims: string[][] = [];
      for (const limit of [2, 2, 2]) claims.push((await bench.claim({ limit })).map((lease) => lease.key.messageId));
      bench.expect(claims).toEqual([["b", "a"], ["c", "waits"], ["d"]]);
    },
  },
  {
    name: "keeps a ready lane's place when more events arrive for it",
    async run(bench) {
      await bench.accept(bench.of("first", 1));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("second", 1));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("first", 2));
      bench.expect(await bench.claimOne({ limit: 1 })).toMatchObject({ key: { messageId: "first" }, sequence: 1 });
    },
  },
  {
    name: "gives a lane to one worker at a time, and a new epoch to each lease (I3)",
    async run(bench) {
      await bench.accept(bench.event(1), bench.event(2));
      const first = await bench.claimOne();
      bench.expect(await bench.claim()).toEqual([]);
      await bench.settle(bench.complete(first));
      const second = await bench.claimOne();
      bench.expect([second.sequence, second.epoch > first.epoch]).toEqual([2, true]);
    },
  },
  {
    name: "does not delay a lane by others that wait, fail or are blocked (I9)",
    async run(bench) {
      await bench.accept(bench.of("gap", 5), bench.of("backoff", 1), bench.of("blocked", 1), bench.of("leased", 1));
      for (const lease of await bench.claim()) {
        if (lease.key.messageId === "backoff") await bench.settle(bench.retry(lease, 600_000));
        if (lease.key.messageId === "blocked") await bench.settle(bench.dead(lease, "block"));
      }
      await bench.accept(...["gap", "backoff", "blocked", "leased"].map((id) => bench.of(id, 6)), bench.of("free", 1));
      bench.expect((await bench.claim()).map((lease) => lease.key.messageId)).toEqual(["free"]);
    },
  },
  {
    name: "tells when a lane is due next: never for idle and blocked ones",
    async run(bench) {
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
    },
  },
  {
    name: "leases accepted events at once while slots are free, and names their places",
    async run(bench) {
      const accepts = [bench.of("gap", 2), bench.of("a", 1), bench.of("a", 2), bench.of("b", 1), bench.of("c", 1)];
      const { leases } = await bench.step({ accepts, claim: { limit: 2 } });
      bench.expect(leases).toMatchObject([
        { key: { messageId: "a" }, sequence: 1, acceptIndex: 1, attempt: 1 },
        { key: { messageId: "b" }, sequence: 1, acceptIndex: 3, attempt: 1 },
      ]);
      bench.expect((await bench.lane("c")).status).toBe("ready");
      bench.expect(sequences(await bench.claim())).toEqual([1]);
    },
  },
  {
    name: "leases the first of a message that came second in its batch",
    async run(bench) {
      const { leases } = await bench.step({ accepts: [bench.event(2), bench.event(1)], claim: { limit: 5 } });
      bench.expect(leases).toMatchObject([{ sequence: 1, acceptIndex: 1, missing: null }]);
    },
  },
  {
    name: "serves lanes that were due before the events it accepts",
    async run(bench) {
      await bench.accept(bench.of("old", 1));
      const { leases } = await bench.step({ accepts: [bench.of("new", 1)], claim: { limit: 1 } });
      bench.expect(leases).toMatchObject([{ key: { messageId: "old" }, acceptIndex: null }]);
    },
  },
  {
    name: "leases no duplicate",
    async run(bench) {
      const event = bench.event(1);
      await bench.settle(
        bench.release(bench.only((await bench.step({ accepts: [event], claim: { limit: 1 } })).leases)),
      );
      const { leases } = await bench.step({ accepts: [event], claim: { limit: 5 } });
      bench.expect(leases).toMatchObject([{ sequence: 1, acceptIndex: null, attempt: 1 }]);
    },
  },
  {
    name: "claims one lane alone on request, after what it accepts",
    async run(bench) {
      await bench.accept(bench.of("a", 2), bench.of("b", 1));
      const { id: lane } = await bench.lane("a");
      bench.expect(await bench.claim({ lane })).toEqual([]);
      const accepts = [bench.of("c", 1), bench.of("a", 1)];
      const { leases } = await bench.step({ accepts, claim: { limit: 5, lane } });
      bench.expect(leases).toMatchObject([{ lane, sequence: 1 }]);
      bench.expect((await bench.claim()).map((lease) => lease.key.messageId)).toEqual(["b", "c"]);
    },
  },
  {
    name: "claims nothing with limit 0",
    async run(bench) {
      await bench.accept(bench.event(1));
      const { leases } = await bench.step({ accepts: [bench.of("b", 1)], claim: { limit: 0 } });
      bench.expect(leases).toEqual([]);
    },
  },
  {
    name: "settles, accepts and claims in one turn",
    async run(bench) {
      await bench.accept(bench.of("a", 1), bench.of("a", 2), bench.of("b", 1));
      const [a, b] = await bench.claimTwo();
      const settles = [bench.complete(a), bench.retry(b, 5_000)];
      const result = await bench.step({ settles, accepts: [bench.of("c", 1)], claim: { limit: 5 } });
      bench.expect(result.settled).toEqual([{ status: "settled" }, { status: "settled" }]);
      bench.expect(result.leases).toMatchObject([
        { key: { messageId: "a" }, sequence: 2, acceptIndex: null },
        { key: { messageId: "c" }, sequence: 1, acceptIndex: 0 },
      ]);
    },
  },
];
