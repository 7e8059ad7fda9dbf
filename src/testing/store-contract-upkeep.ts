/** The store contract on opening, searching and figures. */
import type { EventQuery } from "../inbox/store.ts";
import { type ContractCase, sequences } from "./store-contract-bench.ts";

export const upkeepCases: readonly ContractCase[] = [
  {
    name: "finds events by every filter, newest first unless asked otherwise",
    async run(bench) {
      await bench.accept(bench.of("a", 1, { peer: "+15550001", externalReference: "order 7" }));
      await bench.clock.advance(1_000);
      const failed = { eventType: "message.failed" };
      await bench.accept(bench.of("b", 1, { ...failed, lane: { apiClientId: "second" } }), bench.of("a", 2));
      const [a, b] = await bench.claimTwo();
      await bench.settle(bench.complete(a, "unhandled"), bench.dead(b));
      await bench.accept(bench.of("a", 0), bench.of("a", 2, { note: "differs" }));
      const found = async (query: object) => (await bench.find(query)).map((e) => `${e.lane.messageId}${e.sequence}`);
      bench.expect(await found({ order: "newest" })).toEqual(["a0", "a2", "b1", "a1"]);
      bench.expect(await found({ states: ["done", "dead"] })).toEqual(["a1", "b1"]);
      bench.expect(await found({ states: ["dead", "discarded"] })).toEqual(["b1"]);
      bench.expect([await found({ outcome: "unhandled" }), await found({ outcome: "handled" })]).toEqual([["a1"], []]);
      bench.expect([await found({ late: true }), await found({ conflict: true })]).toEqual([["a0"], ["a2"]]);
      bench.expect(await found({ late: false, conflict: false })).toEqual(["a1", "b1"]);
      bench.expect([await found(failed), await found({ eventType: "none" })]).toEqual([["b1"], []]);
      bench.expect([await found({ apiClientId: "second" }), await found({ apiClientId: "no" })]).toEqual([["b1"], []]);
      bench.expect(await found({ messageId: "a", states: ["pending"] })).toEqual(["a2", "a0"]);
      bench.expect(await found({ externalReference: "order 7" })).toEqual(["a1", "a2", "a0"]);
      bench.expect(await found({ peer: "+15550001", late: false })).toEqual(["a1", "a2"]);
      bench.expect(await found({ errorCode: "handler_failed" })).toEqual(["b1"]);
      bench.expect(await found({ errorCode: "no\0ne" })).toEqual([]);
      const now = bench.clock.now();
      bench.expect(await found({ acceptedTo: now - 1_000 })).toEqual(["a1"]);
      bench.expect(await found({ acceptedFrom: now, acceptedTo: now, late: false })).toEqual(["b1", "a2"]);
    },
  },
  {
    name: "pages through events in both directions",
    async run(bench) {
      await bench.accept(...[1, 2, 3, 4, 5].map((n) => bench.of(`m${n}`, n)));
      const pagesOf = async (query: Pick<EventQuery, "order" | "states">) => {
        const pages: number[][] = [];
        let page = await bench.store.find({ ...query, limit: 2 });
        pages.push(sequences(page.items));
        while (page.next !== null) {
          page = await bench.store.find({ ...query, limit: 2, after: page.next });
          pages.push(sequences(page.items));
        }
        return pages;
      };
      for (const filter of [{}, { states: ["pending"] }] as const) {
        bench.expect(await pagesOf({ ...filter, order: "newest" })).toEqual([[5, 4], [3, 2], [1]]);
        bench.expect(await pagesOf({ ...filter, order: "oldest" })).toEqual([[1, 2], [3, 4], [5]]);
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
    name: "refuses to open for a receiver of another name",
    needs: "durable",
    async run(bench) {
      await bench.store.close();
      const store = await bench.second();
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
        const store = await bench.second();
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
