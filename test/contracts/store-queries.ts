/** The store contract on opening, searching events and lanes, and figures. */
import type { LaneRecord, LaneSummary } from "../../src/inbox/record.ts";
import type { EventQuery, LaneQuery } from "../../src/inbox/store.ts";
import { EVENTS_BESIDE_CURSOR } from "../../src/inbox/store-rules.ts";
import { type Bench, bytes, type ContractCase, DAY, hex, it, needing, POLICY, sequences } from "./store-bench.ts";

// Opening, searching events, figures.

export const upkeepCases: readonly ContractCase[] = [
  it("finds events by every filter, newest first unless asked otherwise", async (bench) => {
    await bench.accept(bench.of("a", 1, { peer: "+15550001", externalReference: "order 7" }));
    await bench.clock.advance(1_000);
    const failed = { eventType: "message.failed" };
    await bench.accept(bench.of("b", 1, { ...failed, lane: { tenant: "second" } }), bench.of("a", 2));
    const [a, b] = await bench.claimTwo();
    await bench.settle(bench.complete(a, "unhandled"), bench.dead(b));
    await bench.accept(bench.of("a", 0), bench.of("a", 2, { note: "differs" }));
    const found = async (query: object) => (await bench.find(query)).map((e) => `${e.lane.name}${e.sequence}`);
    bench.expect(await found({ order: "newest" })).toEqual(["a0", "a2", "b1", "a1"]);
    bench.expect(await found({ states: ["done", "dead"] })).toEqual(["a1", "b1"]);
    bench.expect(await found({ states: ["dead", "discarded"] })).toEqual(["b1"]);
    bench.expect([await found({ outcome: "unhandled" }), await found({ outcome: "handled" })]).toEqual([["a1"], []]);
    bench.expect([await found({ late: true }), await found({ conflict: true })]).toEqual([["a0"], ["a2"]]);
    bench.expect(await found({ late: false, conflict: false })).toEqual(["a1", "b1"]);
    bench.expect([await found(failed), await found({ eventType: "none" })]).toEqual([["b1"], []]);
    bench.expect([await found({ tenant: "second" }), await found({ tenant: "no" })]).toEqual([["b1"], []]);
    bench.expect([await found({ tenant: null }), await found({ source: "none" })]).toEqual([[], []]);
    bench.expect(await found({ source: "service", tenant: "client" })).toEqual(["a1", "a2", "a0"]);
    bench.expect(await found({ source: "service", late: false, states: ["dead"] })).toEqual(["b1"]);
    bench.expect(await found({ lane: "a", states: ["pending"] })).toEqual(["a2", "a0"]);
    bench.expect(await found({ externalReference: "order 7" })).toEqual(["a1", "a2", "a0"]);
    bench.expect(await found({ peer: "+15550001", late: false })).toEqual(["a1", "a2"]);
    bench.expect(await found({ errorCode: "handler_failed" })).toEqual(["b1"]);
    bench.expect(await found({ errorCode: "no\0ne" })).toEqual([]);
    const now = bench.clock.now();
    bench.expect(await found({ acceptedTo: now - 1_000 })).toEqual(["a1"]);
    bench.expect(await found({ acceptedFrom: now, acceptedTo: now, late: false })).toEqual(["b1", "a2"]);
  }),
  it("pages through events in both directions", async (bench) => {
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
  }),
  it("returns one lane by id and by key, its events in sequence, and null if there is none", async (bench) => {
    await bench.accept(bench.event(3), bench.event(1), bench.event(2), bench.event(1, { eventType: "message.queued" }));
    const lane = await bench.lane();
    bench.expect(lane.events.map((e) => [e.sequence, e.eventType])).toEqual([
      [1, "message.sent"],
      [1, "message.queued"],
      [2, "message.sent"],
      [3, "message.sent"],
    ]);
    bench.expect(JSON.stringify(await bench.store.lane(lane.id))).toBe(JSON.stringify(lane));
    bench.expect(await bench.store.lane(1e9)).toBe(null);
    bench.expect(await bench.store.lane({ ...lane.key, order: "arrival" })).toBe(null);
    bench.expect(await bench.store.lane({ source: "service", tenant: "client", id: "m" })).toBe(null);
  }),
  it("reports figures: how much is pending and since when, and the totals", async (bench) => {
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
  }),
  it("lists the processes that use it", async (bench) => {
    await bench.store.heartbeat({ keyringVersion: "k1", counters: { current: 1 } });
    await bench.clock.advance(10_000);
    await bench.store.heartbeat({ keyringVersion: "k2", counters: { current: 3, bad_signature: 1 } });
    const seen = (await bench.store.stats()).instances.filter((instance) => instance.keyringVersion === "k2");
    bench.expect(seen).toMatchObject([{ seenAt: bench.clock.now(), counters: { current: 3, bad_signature: 1 } }]);
  }),
  ...needing("durable", [
    it("refuses to open for a receiver of another name", async (bench) => {
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
    }),
    it("opens with the rules that were recorded last, and records none itself", async (bench) => {
      await bench.store.close();
      const lastly = { ...bench.rules, toleranceMs: 7 };
      const sequence = { firstSequence: "any", lastRetryMs: 7 } as const;
      for (const rules of [lastly, "recorded", "recorded"] as const) {
        const store = await bench.second();
        bench.store = store;
        bench.expect(await bench.open(store, { rules, migrate: "check" })).toEqual(lastly);
        if (rules === lastly) await store.admit([{ ...bench.entry, sequence }]);
        await bench.clock.advance(1);
        await bench.accept(bench.of(`m${bench.clock.now()}`, 4));
        // With "any", the first arrival counts as the first event and is due at once.
        bench.expect((await bench.claim()).length).toBe(1);
        await store.close();
      }
      bench.store = await bench.another();
    }),
  ]),
  it("stays closed, and can be closed twice", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.store.close();
    await bench.store.close();
    let refused = false;
    await bench.step().catch(() => {
      refused = true;
    });
    bench.expect(refused).toBe(true);
  }),
];

// Searching lanes.

/** The names of lanes, or the own ids of events that are alone in them. */
async function found(bench: Bench, query: Partial<LaneQuery> = {}): Promise<readonly string[]> {
  const { items } = await bench.store.findLanes({ limit: 1_000, ...query });
  return items.map(({ key, newest }) => key.name ?? newest.ownId ?? "");
}

function factsOf({ events: _events, more: _more, gaps: _gaps, attempts: _attempts, ...facts }: LaneRecord) {
  return facts;
}

export const laneCases: readonly ContractCase[] = [
  it("lists lanes with their newest event, the newest lane first", async (bench) => {
    const wish = { peer: "+15550001", externalReference: "order 7" };
    await bench.accept(bench.of("a", 3, wish), bench.of("b", 0, { lane: { order: null } }));
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("a", 1, { eventType: "message.queued" }));
    const { items, next } = await bench.store.findLanes({ limit: 10 });
    bench.expect([items.map(({ key }) => key), next]).toEqual([
      [
        { source: "service", tenant: "client", order: null, name: null },
        { source: "service", tenant: "client", order: "sequence", name: "a" },
      ],
      null,
    ]);
    const [, a] = items as readonly [LaneSummary, LaneSummary];
    const lane = await bench.lane("a");
    const { id } = await bench.at(1, "a");
    const newest = {
      id,
      ownId: null,
      eventType: "message.queued",
      sequence: 1,
      acceptedAt: bench.clock.now(),
      state: "pending",
    };
    bench.expect(a).toEqual({ ...factsOf(lane), newest });
    bench.expect(a).toMatchObject({ peer: "+15550001", externalReference: "order 7" });
  }),
  it("reads bodies in the order asked for, up to the one that reaches maxBytes", async (bench) => {
    const raw = (id: string) => bytes(JSON.stringify({ id, text: "x".repeat(1_000) }));
    await bench.accept(...["a", "b", "c"].map((id) => bench.of(id, 1, { raw: raw(id) })));
    const ids = (await bench.find()).map(({ id }) => id).toReversed();
    const size = raw("a").byteLength;
    const read = async (of: readonly number[], maxBytes: number) =>
      [...(await bench.store.bodies(of, maxBytes))].map(([id, body]) => [id, hex(body.raw), body.head]);
    const [c, b, a] = ids.map((id, index) => [id, hex(raw(["c", "b", "a"][index] ?? "")), null]);
    bench.expect(await read(ids, 3 * size)).toEqual([c, b, a]);
    bench.expect(await read(ids, size + 1)).toEqual([c, b]);
    bench.expect(await read(ids, size)).toEqual([c]);
    bench.expect(await read([0, ...ids], 1)).toEqual([c]);
    bench.expect([await read([], 1), await read([0], 1)]).toEqual([[], []]);
    await bench.act({ kind: "erase", subject: { id: "c" } });
    bench.expect(await read(ids, 1)).toEqual([b]);
    const [row] = (await bench.store.find({ limit: 1 })).items;
    bench.expect([row?.hasBody, row !== undefined && "raw" in row]).toEqual([false, false]);
  }),
  it("shows the events of a long lane that are next to its cursor, with their attempts", async (bench) => {
    const all = Array.from({ length: EVENTS_BESIDE_CURSOR + 100 }, (_, index) => index + 1);
    const isNoise = (n: number) => n > 1 && n !== EVENTS_BESIDE_CURSOR && n < EVENTS_BESIDE_CURSOR + 50;
    await bench.accept(...all.map((n) => bench.event(n, isNoise(n) ? { eventType: "noise" } : {})));
    const passNoise = async () => {
      const claim = { limit: 1, takes: (_lane: unknown, type: string) => type !== "noise" };
      // One claim ends a bounded number.
      const leases = [...(await bench.step({ claim })).leases, ...(await bench.step({ claim })).leases];
      await bench.settle(bench.complete(bench.only(leases)));
    };
    for (const lease of await bench.claim()) await bench.settle(bench.retry(lease, 0));
    const whole = await bench.lane();
    bench.expect([whole.cursor, whole.events.length, whole.more]).toEqual([1, EVENTS_BESIDE_CURSOR, true]);
    bench.expect(whole.attempts.length).toBe(1);
    await bench.settle(bench.complete(await bench.claimOne()));
    await passNoise();
    const { events, cursor } = await bench.lane();
    const behind = (await bench.lane()).more;
    bench.expect([cursor, events.length, behind]).toEqual([EVENTS_BESIDE_CURSOR, all.length, false]);
    await passNoise();
    const late = await bench.lane();
    bench.expect([late.cursor, late.more]).toEqual([EVENTS_BESIDE_CURSOR + 50, true]);
    bench.expect(sequences(late.events)).toEqual(all.slice(49));
    bench.expect(late.attempts).toEqual([]);
  }),
  it("finds lanes of every status, alone and together", async (bench) => {
    const ids = ["idle", "blocked", "leased", "backoff"];
    await bench.accept(...ids.map((id) => bench.of(id, 1)));
    const [idle, blocked, , backoff] = await bench.claim();
    if (idle === undefined || blocked === undefined || backoff === undefined) throw new Error("All lanes were due.");
    await bench.settle(bench.complete(idle), bench.dead(blocked, "block"), bench.retry(backoff, 60_000));
    await bench.accept(bench.of("gap", 3), bench.of("ready", 1));
    for (const status of ["idle", "blocked", "leased", "backoff", "gap", "ready"] as const)
      bench.expect(await found(bench, { statuses: [status] })).toEqual([status]);
    bench.expect(await found(bench, { statuses: ["gap", "idle", "blocked"] })).toEqual(["gap", "blocked", "idle"]);
    bench.expect(await found(bench, { statuses: ["leased", "leased"], order: "sequence" })).toEqual(["leased"]);
    bench.expect(await found(bench, { statuses: [] })).toEqual([]);
    bench.expect(await found(bench, { statuses: ["blocked"], order: null })).toEqual([]);
  }),
  it("finds a lane once, even if its status changes meanwhile", async (bench) => {
    const wish = { statuses: ["ready", "leased"], order: "sequence" } as const;
    await bench.accept(bench.of("a", 1), bench.of("a", 2));
    const [whenReady, leases] = await Promise.all([found(bench, wish), bench.claim()]);
    bench.expect(whenReady).toEqual(["a"]);
    const complete = leases.map((lease) => bench.complete(lease));
    const [whenLeased] = await Promise.all([found(bench, wish), bench.settle(...complete)]);
    bench.expect(whenLeased).toEqual(["a"]);
  }),
  it("finds lanes by order, tenant, number, missing event types, and the time since their last event", async (bench) => {
    const at = bench.clock.now();
    const terminal = ["message.delivery", "message.failed"];
    await bench.accept(
      bench.of("open", 1, { peer: "+15550001" }),
      bench.of("delivered", 1),
      bench.of("failed", 2, { eventType: "message.failed" }),
      bench.of("in", 0, { lane: { order: null }, eventType: "message.inbound" }),
    );
    await bench.clock.advance(1_000);
    await bench.accept(bench.of("delivered", 2, { eventType: "message.delivery" }));
    await bench.accept(bench.of("young", 1, { lane: { tenant: "second" } }));
    bench.expect(await found(bench, { order: "sequence", without: terminal })).toEqual(["young", "open"]);
    bench.expect(await found(bench, { without: terminal, quietSince: at, order: "sequence" })).toEqual(["open"]);
    bench.expect(await found(bench, { quietSince: at })).toEqual(["in", "failed", "open"]);
    bench.expect(await found(bench, { quietSince: at - 1 })).toEqual([]);
    bench.expect(await found(bench, { without: ["message.never"], order: null })).toEqual(["in"]);
    bench.expect((await found(bench, { without: [] })).length).toBe(5);
    bench.expect(await found(bench, { peer: "+15550001" })).toEqual(["open"]);
    bench.expect(await found(bench, { peer: "+1555" })).toEqual([]);
    bench.expect(await found(bench, { peer: null, order: "sequence" })).toEqual(["young", "failed", "delivered"]);
    bench.expect(await found(bench, { tenant: "second" })).toEqual(["young"]);
    bench.expect(await found(bench, { tenant: "none" })).toEqual([]);
  }),
  it("does not report a lane as missing a type when its latest event, possibly of that type, was pruned", async (bench) => {
    const wish = { without: ["message.delivery"], order: "sequence" } as const;
    await bench.accept(bench.of("ended", 1), bench.of("dead", 1), bench.of("pruned", 1));
    const [ended, dead, pruned] = await bench.claim();
    if (ended === undefined || dead === undefined || pruned === undefined) throw new Error("All lanes were due.");
    await bench.settle(bench.dead(ended), bench.dead(dead), bench.complete(pruned));
    await bench.handle(bench.of("ended", 2, { eventType: "message.delivery" }));
    bench.expect(await found(bench, wish)).toEqual(["pruned", "dead"]);
    await bench.clock.advance(31 * DAY);
    await bench.accept(bench.of("new", 3), bench.of("dead", 4));
    await bench.store.prune(POLICY);
    bench.expect((await bench.lane("ended")).events.map(({ sequence }) => sequence)).toEqual([1]);
    bench.expect(await found(bench, wish)).toEqual(["new", "dead"]);
    bench.expect(await found(bench, { ...wish, without: [] })).toEqual(["new", "dead", "ended"]);
  }),
  it("pages through lanes, also of several statuses", async (bench) => {
    const ids = ["1", "2", "3", "4", "5"];
    await bench.accept(...ids.map((id) => bench.of(id, Number(id) % 2)));
    const gaps = [{}, { order: "sequence" }, { statuses: ["gap", "ready"] }] as const;
    for (const query of gaps) {
      const pages: string[][] = [];
      for (let after: number | null = 1e9; after !== null; ) {
        const page = await bench.store.findLanes({ ...query, limit: 2, after });
        pages.push(page.items.map(({ key }) => key.name ?? ""));
        after = page.next;
      }
      bench.expect(pages).toEqual([["5", "4"], ["3", "2"], ["1"]]);
    }
  }),
];
