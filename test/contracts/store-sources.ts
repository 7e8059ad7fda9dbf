/** The store contract on events of other sources: one lane each, an id of their own, headers next to the body, and who may read them. */
import type { NewEvent } from "../../src/inbox/record.ts";
import { type Bench, bytes, type ContractCase, DAY, hex, it, needing, POLICY } from "./store-bench.ts";

interface Wish extends Partial<Pick<NewEvent, "eventType" | "head" | "untimed" | "externalReference" | "repeats">> {
  readonly source?: string;
  readonly tenant?: string | null;
  readonly body?: string;
}

/** An event of the source `billing`, alone in its lane. */
function event(
  bench: Bench,
  ownId: string,
  { source = "billing", tenant = null, body = "the same", ...rest }: Wish = {},
): NewEvent {
  const lane = { source, tenant, order: null, name: ownId } as const;
  return bench.event(0, {
    eventType: "invoice.paid",
    gapWaitMs: 0,
    ...rest,
    lane,
    raw: bytes(JSON.stringify({ body })),
  });
}

export const sourceCases: readonly ContractCase[] = [
  it("keeps an event of another source under its own id, whatever type and reference a repeat has", async (bench) => {
    await bench.accept(event(bench, "evt_1", { externalReference: "first" }));
    const repeat = event(bench, "evt_1", { eventType: "an.invented.type", externalReference: "second" });
    const { accepted } = await bench.accept(repeat, event(bench, "evt_1"));
    const duplicate = { outcome: "duplicate", reference: "first" };
    bench.expect(accepted).toMatchObject([duplicate, duplicate]);
    const [found] = await bench.find();
    bench.expect(found).toMatchObject({ eventType: "invoice.paid", duplicates: 2, conflict: false, sequence: 0 });
    const lane = await bench.lane("evt_1", { source: "billing", tenant: null, order: null });
    bench.expect([lane.events.length, lane.externalReference]).toEqual([1, "first"]);
  }),
  it("knows an event again in the batch that brings it twice", async (bench) => {
    const { accepted } = await bench.accept(event(bench, "evt_1"), event(bench, "evt_1", { eventType: "other" }));
    bench.expect(accepted.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate"]);
  }),
  it("notices other content under a known id, and keeps it", async (bench) => {
    await bench.accept(event(bench, "evt_1"));
    const { accepted } = await bench.accept(event(bench, "evt_1", { body: "other" }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate", conflict: true }]);
  }),
  it("keeps sources, and the tenants of one, apart under one id", async (bench) => {
    const owners = [{}, { source: "code" }, { source: "code", tenant: "a" }, { source: "code-a", tenant: "a" }];
    const same = owners.map((owner) => event(bench, "m", owner));
    const { accepted } = await bench.accept(...same, bench.event(1, { lane: { source: "billing" } }));
    bench.expect(accepted.map(({ outcome }) => outcome)).toEqual(Array(5).fill("accepted"));
    const of = async (query: object) => (await bench.find(query)).map(({ lane }) => [lane.source, lane.tenant]);
    bench.expect(await of({ source: "billing", id: "m" })).toEqual([["billing", null]]);
    bench.expect(await of({ source: "code" })).toEqual([
      ["code", null],
      ["code", "a"],
    ]);
    bench.expect(await of({ tenant: "a" })).toEqual([
      ["code", "a"],
      ["code-a", "a"],
    ]);
    bench.expect(await of({ tenant: null })).toEqual([
      ["billing", null],
      ["code", null],
    ]);
    bench.expect(await of({ source: "cod" })).toEqual([]);
    const lanes = await bench.store.findLanes({ source: "code", limit: 10 });
    bench.expect(lanes.items.map(({ key }) => key.tenant)).toEqual(["a", null]);
  }),
  it("pages through the events of a source or a tenant, in both directions, past many others", async (bench) => {
    const many = (owner: Wish, count: number, from: string) =>
      Array.from({ length: count }, (_, index) => event(bench, `${from} ${index}`, owner));
    await bench.accept(...many({ tenant: "a" }, 3, "a"), ...many({ tenant: "b" }, 2, "b"));
    await bench.accept(...many({ source: "other", tenant: "a" }, 60, "others"), ...many({ tenant: "a" }, 2, "last"));
    const pages = async (query: object) => {
      const all: (string | null)[] = [];
      for (let after: number | undefined; ; ) {
        const page = await bench.store.find({ ...query, limit: 2, ...(after !== undefined && { after }) });
        all.push(...page.items.map(({ ownId }) => ownId));
        if (page.next === null) return all;
        after = page.next;
      }
    };
    const billing = ["a 0", "a 1", "a 2", "b 0", "b 1", "last 0", "last 1"];
    bench.expect(await pages({ source: "billing", order: "oldest" })).toEqual(billing);
    bench.expect(await pages({ source: "billing" })).toEqual(billing.toReversed());
    bench.expect(await pages({ source: "billing", states: ["pending"] })).toEqual(billing.toReversed());
    bench.expect(await pages({ source: "billing", tenant: "b" })).toEqual(["b 1", "b 0"]);
    bench.expect((await pages({ tenant: "a" })).length).toBe(65);
    bench
      .expect((await pages({ tenant: "a", order: "oldest" })).slice(0, 4))
      .toEqual(["a 0", "a 1", "a 2", "others 0"]);
  }),
  it("handles each by itself, in the order of arrival, and never as late", async (bench) => {
    await bench.accept(event(bench, "evt_2"), event(bench, "evt_1"));
    const leases = await bench.claimTwo();
    bench.expect(leases.map(({ ownId, late, missing }) => [ownId, late, missing])).toEqual([
      ["evt_2", false, null],
      ["evt_1", false, null],
    ]);
  }),
  it("keeps the headers of an event with its body: claimed, found, exported, replayed, erased and pruned together", async (bench) => {
    const head = '{"x-type":"push"}';
    await bench.accept(event(bench, "evt_1", { head, body: "evt_1" }), event(bench, "evt_2"), bench.event(1));
    const leases = await bench.claim();
    bench.expect(leases.map((lease) => lease.head)).toEqual([head, null, null]);
    bench.expect((await bench.find()).map((found) => found.head)).toEqual([head, null, null]);
    const [lane] = await bench.store.export(0, 1);
    bench.expect(lane?.events.map((found) => found.head)).toEqual([head]);
    for (const lease of leases) await bench.settle(bench.dead(lease));
    await bench.act({ kind: "replay", event: leases[0]?.event ?? 0 });
    const again = await bench.claimOne();
    bench.expect(again.head).toBe(head);
    await bench.settle(bench.complete(again));
    await bench.act({ kind: "erase", subject: { id: "evt_1" } });
    bench.expect((await bench.find()).map((found) => found.head)).toEqual([null, null, null]);
  }),
  it("leases an event at once with its headers", async (bench) => {
    const { leases } = await bench.step({ accepts: [event(bench, "evt_1", { head: "{}" })], claim: { limit: 1 } });
    bench.expect(leases.map(({ head, acceptIndex }) => [head, acceptIndex])).toEqual([["{}", 0]]);
  }),
  it("erases an event by its own id, or by its body", async (bench) => {
    const named = [
      event(bench, "msg_1", { body: "of somebody else" }),
      event(bench, "evt_2", { body: "msg_1" }),
      { ...event(bench, "evt_3"), raw: bytes('{"id":15550100002}') },
      { ...event(bench, "evt_4"), raw: bytes("To=%2B15550100002&Body=Hi") },
    ];
    await bench.accept(...named, bench.of("msg_1", 1));
    bench.expect(await bench.act({ kind: "erase", subject: { id: "msg_1" } })).toEqual({ ok: true, count: 3 });
    const kept = async () => (await bench.find()).flatMap(({ ownId, raw }) => (raw === null ? [] : [ownId]));
    bench.expect(await kept()).toEqual(["evt_3", "evt_4"]);
    await bench.act({ kind: "erase", subject: { peer: "+15550100002" } });
    await bench.act({ kind: "erase", subject: { id: "15550100002" } });
    bench.expect(await kept()).toEqual([]);
  }),
  it("does not take the time of acceptance for a signed one", async (bench) => {
    const untimed = true as const;
    await bench.accept(event(bench, "evt_1", { untimed }));
    bench.clock.advance(60_000);
    await bench.accept(event(bench, "evt_1", { untimed }));
    await bench.accept(event(bench, "evt_1", { untimed, repeats: { count: 2, signedAt: null } }));
    const body = bench.quarantine("{", { source: "billing", untimed });
    await bench.step({ quarantines: [body] });
    const { newestSignedAt, serviceResigns, counters } = await bench.store.stats();
    bench.expect([newestSignedAt, serviceResigns, counters.duplicates]).toEqual([null, false, 4]);
    await bench.accept(event(bench, "evt_2"));
    bench.expect((await bench.store.stats()).newestSignedAt).toBe(bench.clock.now());
  }),
  it("prunes what its source signed no time for by the clock, and the rest by the newest signed time (I1)", async (bench) => {
    const untimed = true as const;
    await bench.handle(bench.event(1));
    await bench.handle(event(bench, "evt_1", { untimed }));
    await bench.accept(event(bench, "evt_2", { untimed }), event(bench, "evt_3"));
    for (const lease of await bench.claim()) await bench.settle(bench.dead(lease));
    await bench.step({ quarantines: [bench.quarantine("{", { untimed }), bench.quarantine("[")] });
    const kept = async () =>
      (await bench.find()).map(({ lane, ownId, untimed, raw }) => [lane.name ?? ownId, untimed, raw === null]);
    await bench.clock.advance(8 * DAY);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1, events: 0, more: false });
    const all = [
      ["m", false, false],
      ["evt_1", true, true],
      ["evt_2", true, false],
      ["evt_3", false, false],
    ];
    bench.expect(await kept()).toEqual(all);
    await bench.clock.advance(400 * DAY);
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 2, lanes: 2, quarantined: 1, more: false });
    bench.expect(await kept()).toEqual([all[0], all[3]]);
    bench.expect((await bench.quarantined({ limit: 9 })).map((row) => row.untimed)).toEqual([false]);
    await bench.accept(bench.of("new", 1));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ events: 2, quarantined: 1 });
  }),
  it("keeps the headers of a quarantined body until it is erased", async (bench) => {
    await bench.step({
      quarantines: [bench.quarantine('{"to":"somebody"', { head: '{"x-id":"1"}' }), bench.quarantine("[")],
    });
    const heads = async () =>
      (await bench.quarantined({ limit: 10 })).map(({ head, raw }) => [head, hex(raw) === null]);
    bench.expect(await heads()).toEqual([
      [null, false],
      ['{"x-id":"1"}', false],
    ]);
    await bench.act({ kind: "erase", subject: { id: "somebody" } });
    bench.expect((await heads())[1]).toEqual([null, true]);
  }),
  it("records entries, and refuses one that comes back as another kind of source", async (bench) => {
    const { entry } = bench;
    const billing = { name: "billing", preset: "stripe", shows: ["id", "data.object.id"], sequence: null };
    const code = { name: "code", preset: "github", shows: [], sequence: null };
    bench.expect(await bench.store.admit([])).toEqual([entry]);
    bench.expect(await bench.store.admit([billing])).toEqual([billing, entry]);
    bench.expect(await bench.store.admit([code])).toEqual([billing, code, entry]);
    const app = {
      name: "app",
      preset: "slack",
      shows: [],
      sequence: { firstSequence: "any", lastRetryMs: 7 },
    } as const;
    bench.expect(await bench.store.admit([code, app])).toEqual([app, billing, code, entry]);
    const refusal = await bench.store
      .admit([{ ...billing, preset: "github" }])
      .catch((error: { code?: string }) => error.code);
    bench.expect(refusal).toBe("wrong_source");
    const renewed = { ...billing, shows: ["id"] };
    bench.expect(await bench.store.admit([renewed])).toEqual([app, renewed, code, entry]);
    bench.expect(await bench.store.admit([])).toEqual([app, renewed, code, entry]);
  }),
  ...needing("shared", [
    it("tells every process which entries there are", async (bench) => {
      const other = await bench.another();
      const billing = { name: "billing", preset: "stripe", shows: ["id"], sequence: null };
      await bench.store.admit([billing]);
      bench.expect(await other.admit([])).toEqual([billing, bench.entry]);
    }),
  ]),
];
