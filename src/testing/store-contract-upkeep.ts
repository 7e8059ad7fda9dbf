/** The store contract on opening, searching, figures and retention. */
import type { PrunePolicy } from "../inbox/store.ts";
import { type Bench, type ContractCase, hex, sequences } from "./store-contract-bench.ts";

const DAY = 86_400_000;

const POLICY: PrunePolicy = {
  handledBodiesMs: 7 * DAY,
  otherBodiesMs: 30 * DAY,
  identitiesMs: 30 * DAY,
  deadMs: 90 * DAY,
  batch: 1_000,
};

/** Days pass, and the service goes on sending: its timestamps move with the clock. */
async function days(bench: Bench, count: number): Promise<void> {
  await bench.clock.advance(count * DAY + 1);
  await bench.step({ repeats: [{ event: (await bench.at(1, "witness")).id, count: 1, signedAt: bench.clock.now() }] });
}

/** One event under a lease that nobody recovers: its repeats bring the newest timestamps, and no claim meets it. */
async function witness(bench: Bench): Promise<void> {
  await bench.accept(bench.of("witness", 1));
  await bench.claimOne();
}

export const upkeepCases: readonly ContractCase[] = [
  {
    name: "finds events by every filter, newest first unless asked otherwise",
    async run(bench) {
      await bench.accept(bench.of("a", 1, { peer: "+15550001", externalReference: "order 7" }));
      await bench.clock.advance(1_000);
      const failed = { eventType: "message.failed" };
      await bench.accept(bench.of("b", 1, { ...failed, lane: { apiClientId: "second" } }), bench.of("a", 2));
      const [a, b] = await bench.claim();
      if (a === undefined || b === undefined) throw new Error("Two lanes were due.");
      await bench.settle(bench.complete(a, "unhandled"), bench.dead(b));
      await bench.accept(bench.of("a", 0), bench.of("a", 2, { note: "differs" }));
      const found = async (query: object) => (await bench.find(query)).map((e) => `${e.lane.messageId}${e.sequence}`);
      bench.expect(await found({ order: "newest" })).toEqual(["a0", "a2", "b1", "a1"]);
      bench.expect(await found({ states: ["done", "dead"] })).toEqual(["a1", "b1"]);
      bench.expect(await found({ outcome: "unhandled" })).toEqual(["a1"]);
      bench.expect([await found({ late: true }), await found({ conflict: true })]).toEqual([["a0"], ["a2"]]);
      bench.expect(await found({ late: false, conflict: false })).toEqual(["a1", "b1"]);
      bench.expect([await found(failed), await found({ eventType: "none" })]).toEqual([["b1"], []]);
      bench.expect(await found({ apiClientId: "second" })).toEqual(["b1"]);
      bench.expect(await found({ messageId: "a", states: ["pending"] })).toEqual(["a2", "a0"]);
      bench.expect(await found({ externalReference: "order 7" })).toEqual(["a1", "a2", "a0"]);
      bench.expect(await found({ peer: "+15550001", late: false })).toEqual(["a1", "a2"]);
      bench.expect(await found({ errorCode: "handler_failed" })).toEqual(["b1"]);
      const now = bench.clock.now();
      bench.expect(await found({ acceptedTo: now - 1_000 })).toEqual(["a1"]);
      bench.expect(await found({ acceptedFrom: now, acceptedTo: now, late: false })).toEqual(["b1", "a2"]);
    },
  },
  {
    name: "pages through events in both directions",
    async run(bench) {
      await bench.accept(...[1, 2, 3, 4, 5].map((n) => bench.of(`m${n}`, n)));
      for (const [order, expected] of [
        ["newest", [[5, 4], [3, 2], [1]]],
        ["oldest", [[1, 2], [3, 4], [5]]],
      ] as const) {
        const pages: number[][] = [];
        let page = await bench.store.find({ order, limit: 2 });
        pages.push(sequences(page.items));
        while (page.next !== null) {
          page = await bench.store.find({ order, limit: 2, after: page.next });
          pages.push(sequences(page.items));
        }
        bench.expect(pages).toEqual(expected);
      }
    },
  },
  {
    name: "shows one lane by id and by key, its events in sequence, and null where there is none",
    async run(bench) {
      await bench.accept(
        bench.event(3),
        bench.event(1),
        bench.event(2),
        bench.event(1, { eventType: "message.queued" }),
      );
      const lane = await bench.lane();
      bench.expect(lane.events.map((e) => [e.sequence, e.eventType])).toEqual([
        [1, "message.sent"],
        [1, "message.queued"],
        [2, "message.sent"],
        [3, "message.sent"],
      ]);
      bench.expect(JSON.stringify(await bench.store.lane(lane.id))).toBe(JSON.stringify(lane));
      bench.expect(await bench.store.lane(1e9)).toBe(null);
      bench.expect(await bench.store.lane({ ...lane.key, tag: "inbound" })).toBe(null);
    },
  },
  {
    name: "keeps figures: what is pending and since when, and what has happened",
    async run(bench) {
      const empty = await bench.store.stats();
      bench.expect(empty).toMatchObject({ oldestPendingAt: null, newestSignedAt: null, serviceResigns: false });
      bench
        .expect(
          Object.values(empty.gauges)
            .concat(Object.values(empty.counters))
            .every((n) => n === 0),
        )
        .toBe(true);
      const start = bench.clock.now();
      await bench.accept(bench.of("a", 1), bench.of("b", 2, { signedAt: start + 7 }));
      await bench.clock.advance(1_000);
      await bench.accept(bench.of("c", 1, { signedAt: start }));
      bench.expect(await bench.store.stats()).toMatchObject({ oldestPendingAt: start, newestSignedAt: start + 7 });
      await bench.settle(...(await bench.claim()).map((lease) => bench.complete(lease)));
      const { gauges, counters, oldestPendingAt } = await bench.store.stats();
      bench.expect([gauges.pending, oldestPendingAt]).toEqual([1, start]);
      bench.expect(counters).toMatchObject({ accepted: 3, handled: 2, unhandled: 0, retried: 0, deadLettered: 0 });
    },
  },
  {
    name: "shows the processes that work on it",
    async run(bench) {
      await bench.store.heartbeat({ keyringVersion: "k1", counters: { current: 1 } });
      await bench.clock.advance(10_000);
      await bench.store.heartbeat({ keyringVersion: "k2", counters: { current: 3, bad_signature: 1 } });
      const seen = (await bench.store.stats()).instances.filter((instance) => instance.keyringVersion === "k2");
      bench.expect(seen).toMatchObject([{ seenAt: bench.clock.now(), counters: { current: 3, bad_signature: 1 } }]);
    },
  },
  {
    name: "prunes bodies of handled events first, then others, and identities last (I1)",
    async run(bench) {
      await witness(bench);
      await bench.handle(bench.of("handled", 1));
      await bench.accept(bench.of("unhandled", 1));
      await bench.settle(bench.complete(await bench.claimOne(), "unhandled"));
      await days(bench, 6);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, lanes: 0, more: false });
      await days(bench, 1);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1, events: 0 });
      const { raw, digest } = await bench.at(1, "handled");
      bench.expect([raw, digest.byteLength, (await bench.at(1, "unhandled")).raw === null]).toEqual([null, 32, false]);
      const { accepted } = await bench.accept(bench.of("handled", 1, { note: "differs" }));
      bench.expect(accepted).toMatchObject([{ outcome: "duplicate", state: "done", conflict: false }]);
      const { id } = await bench.at(1, "handled");
      bench.expect(await bench.act({ kind: "replay", event: id })).toEqual({ ok: false, reason: "body_pruned" });
      await days(bench, 23);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2, more: false });
      bench.expect((await bench.find()).map((event) => event.lane.messageId)).toEqual(["witness"]);
      bench.expect((await bench.accept(bench.of("handled", 1))).accepted).toMatchObject([{ outcome: "accepted" }]);
    },
  },
  {
    name: "never prunes pending events, and dead letters only at the very last (I10)",
    async run(bench) {
      await witness(bench);
      await bench.accept(bench.of("dead", 1), bench.of("pending", 2));
      await bench.settle(bench.dead(await bench.claimOne()));
      await bench.step({ quarantines: [bench.quarantine("{broken")] });
      await days(bench, 89);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, quarantined: 0 });
      bench.expect(hex((await bench.at(1, "dead")).raw) === null).toBe(false);
      await days(bench, 1);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1, quarantined: 1 });
      bench.expect((await bench.find()).map((event) => event.lane.messageId)).toEqual(["witness", "pending"]);
      bench.expect((await bench.step({ quarantines: [bench.quarantine("{broken")] })).quarantined).toEqual(["held"]);
    },
  },
  {
    name: "counts an identity's retention from its end, however long ago it was accepted (I1)",
    async run(bench) {
      await witness(bench);
      await bench.accept(bench.event(2));
      await days(bench, 40);
      await bench.settle(bench.complete(await bench.claimOne()));
      await days(bench, 29);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1, events: 0 });
      await days(bench, 1);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
    },
  },
  {
    name: "prunes the body of a discarded event with the other bodies, before its identity",
    async run(bench) {
      await witness(bench);
      await bench.accept(bench.of("set aside", 1));
      await bench.act({ kind: "discard", event: (await bench.at(1, "set aside")).id });
      const policy = { ...POLICY, otherBodiesMs: DAY };
      await days(bench, 2);
      bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
      bench.expect(await bench.at(1, "set aside")).toMatchObject({ state: "discarded", raw: null });
    },
  },
  {
    name: "prunes the body of a late event with the other bodies",
    async run(bench) {
      await witness(bench);
      await bench.handle(bench.event(3, { gapWaitMs: 0 }));
      await bench.step({ accepts: [bench.event(2)], lateEvents: "record" });
      const policy = { ...POLICY, identitiesMs: 60 * DAY };
      await days(bench, 29);
      bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
      bench.expect([(await bench.at(2)).raw === null, (await bench.at(3)).raw]).toEqual([false, null]);
      await days(bench, 1);
      bench.expect(await bench.store.prune(policy)).toMatchObject({ bodies: 1, events: 0 });
    },
  },
  {
    name: "keeps a lane and its gaps until its last event goes, and no attempts of events that went",
    async run(bench) {
      await witness(bench);
      await bench.accept(bench.event(3, { gapWaitMs: 0 }));
      await bench.settle(bench.retry(await bench.claimOne(), 0));
      await bench.settle(bench.complete(await bench.claimOne()));
      await days(bench, 20);
      await bench.step({ accepts: [bench.event(2)], lateEvents: "record" });
      await days(bench, 11);
      bench.expect((await bench.lane()).attempts.length).toBe(1);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 0 });
      const lane = await bench.lane();
      bench.expect(lane).toMatchObject({ cursor: 3, events: [{ sequence: 2 }], gaps: [{ from: 1, to: 2 }] });
      bench.expect(lane.attempts).toEqual([]);
      await days(bench, 20);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
    },
  },
  {
    name: "prunes nothing by a clock that ran ahead of the service's timestamps (I1)",
    async run(bench) {
      await bench.handle(bench.event(1));
      await bench.clock.advance(400 * DAY);
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 0, events: 0, lanes: 0, quarantined: 0 });
      await bench.accept(bench.of("new", 1));
      bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 1, lanes: 1 });
    },
  },
  {
    name: "prunes in batches",
    async run(bench) {
      await bench.accept(...[1, 2, 3].map((n) => bench.of(`m${n}`, 1)));
      await bench.settle(...(await bench.claim()).map((lease) => bench.complete(lease)));
      await bench.clock.advance(31 * DAY);
      await bench.accept(bench.of("new", 1));
      const policy = { ...POLICY, batch: 2 };
      bench.expect(await bench.store.prune(policy)).toMatchObject({ events: 2, lanes: 2, more: true });
      bench.expect(await bench.store.prune(policy)).toMatchObject({ events: 1, lanes: 1, more: false });
    },
  },
  {
    name: "refuses to open for a receiver of another name",
    needs: "durable",
    async run(bench) {
      await bench.store.close();
      const store = await bench.place.reopen?.();
      if (store === undefined) throw new Error("A durable store needs reopen().");
      let code: unknown = null;
      try {
        await bench.open(store, { rules: { ...bench.rules, name: "another" } });
      } catch (error) {
        code = error instanceof Error && "code" in error ? error.code : error;
      }
      bench.expect(code).toBe("wrong_receiver_name");
      bench.store = await bench.another();
    },
  },
  {
    name: "opens by the rules that were recorded last, and records none itself",
    needs: "durable",
    async run(bench) {
      await bench.store.close();
      const lastly = { ...bench.rules, firstSequence: "any", toleranceMs: 7 } as const;
      for (const rules of [lastly, "recorded", "recorded"] as const) {
        const store = await bench.place.reopen?.();
        if (store === undefined) throw new Error("A durable store needs reopen().");
        bench.store = store;
        bench.expect(await bench.open(store, { rules, migrate: "check" })).toEqual(lastly);
        await bench.clock.advance(1);
        await bench.accept(bench.of(`m${bench.clock.now()}`, 4));
        // With "any" the first arrival is the first, and is due at once.
        bench.expect((await bench.claim()).length).toBe(1);
        await store.close();
      }
      bench.store = await bench.another();
    },
  },
  {
    name: "closes once and for all, and twice without harm",
    async run(bench) {
      await bench.accept(bench.event(1));
      await bench.store.close();
      await bench.store.close();
      let refused = false;
      await bench.step().catch(() => {
        refused = true;
      });
      bench.expect(refused).toBe(true);
    },
  },
];
