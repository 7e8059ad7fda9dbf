/** The store contract on keys: what is equal in all parts but one is another event, another lane or another lease. */
import type { LaneKey, NewEvent } from "../../src/inbox/record.ts";
import type { LeaseRef } from "../../src/inbox/store.ts";
import { type Bench, type ContractCase, DAY, it, needing } from "./store-bench.ts";

type Change = Partial<Omit<NewEvent, "lane">> & { readonly lane?: Partial<LaneKey> };

const MESSAGE: Change = { lane: { source: "service", tenant: "client", order: "sequence", name: "m" }, sequence: 1 };
const OF_SOURCE: Change = {
  lane: { source: "billing", tenant: "a", order: "position", name: "sub_1" },
  ...{ ownId: "evt_1", sequence: 5, eventType: "invoice.paid" },
};

/** What differs, the event, its change, and whether the two share a lane. */
const EVENTS: readonly (readonly [part: string, event: Change, change: Change, lanes: 1 | 2])[] = [
  ["the tenant of a message", MESSAGE, { lane: { tenant: "other" } }, 2],
  ["the source of a message", MESSAGE, { lane: { source: "another" } }, 2],
  ["the message", MESSAGE, { lane: { name: "n" } }, 2],
  ["the sequence", MESSAGE, { sequence: 2 }, 1],
  ["the type", MESSAGE, { eventType: "message.delivery" }, 1],
  ["the source", OF_SOURCE, { lane: { source: "code" } }, 2],
  ["the tenant", OF_SOURCE, { lane: { tenant: "b" } }, 2],
  ["the tenant, which one has not", OF_SOURCE, { lane: { tenant: null } }, 2],
  ["the own id", OF_SOURCE, { ownId: "evt_2" }, 1],
  ["the own id of an event by itself", { lane: { order: null } }, { lane: { name: "n" } }, 2],
];

const eventCases = EVENTS.flatMap(([part, event, change, lanes]) =>
  ([true, false] as const).map((together) =>
    it(`keeps events apart that differ in ${part}, ${together ? "in one batch" : "one after the other"} (I1)`, async (bench: Bench) => {
      const base = (more: Change = {}) =>
        bench.event(1, { gapWaitMs: 0, ...event, ...more, lane: { ...event.lane, ...more.lane } });
      const both = [base(), base(change)];
      const answers = async () =>
        together
          ? (await bench.accept(...both)).accepted
          : (await Promise.all(both.map((one) => bench.accept(one)))).flatMap(({ accepted }) => accepted);
      bench.expect((await answers()).map(({ outcome }) => outcome)).toEqual(["accepted", "accepted"]);
      bench.expect((await answers()).map(({ outcome }) => outcome)).toEqual(["duplicate", "duplicate"]);
      const found = await bench.find();
      bench.expect(found.map(({ duplicates, conflict }) => [duplicates, conflict])).toEqual(Array(2).fill([1, false]));
      bench.expect(new Set(found.map(({ laneId }) => laneId)).size).toBe(lanes);
      bench.expect((await bench.claim()).length).toBe(lanes);
    }),
  ),
);

const LEASE_PARTS = ["lane", "token", "event"] as const satisfies readonly (keyof LeaseRef)[];

const leaseCases = LEASE_PARTS.map((part) =>
  it(`ends and renews no lease by a reference that differs in its ${part} (I3)`, async (bench: Bench) => {
    await bench.accept(bench.of("a", 1), bench.of("b", 1), bench.of("a", 2));
    const [one, other] = await bench.claimTwo();
    const others = { lane: other.lane, token: other.token, event: (await bench.at(2, "a")).id };
    const wrong = { ...one, [part]: others[part] };
    bench.expect(await bench.store.extend([wrong, one], 30_000)).toEqual([false, true]);
    const effects = [bench.place.effects?.statement("of no lease")].flatMap((effect) => effect ?? []);
    const completes = [bench.complete(wrong), bench.complete(wrong, "handled", effects)];
    const ends = [...completes, bench.retry(wrong, 0), bench.dead(wrong), bench.release(wrong)];
    for (const end of ends) bench.expect(await bench.settle(end)).toEqual(["lost"]);
    bench.expect(await bench.settle(bench.complete(one), bench.complete(other))).toEqual(["settled", "settled"]);
  }),
);

const NOTE_NAMES = ["rate a", "rate A", "rate a ", "rate  a", "rate", "rate a\u0301", "rate \u00e1"];

export const apartCases: readonly ContractCase[] = [
  ...eventCases,
  ...leaseCases,
  ...needing("shared", [
    it("ends and renews no lease that another store holds (I3)", async (bench) => {
      const other = await bench.another();
      await bench.accept(bench.event(1));
      const lease = await bench.claimOne();
      bench.expect(await other.extend([lease], 30_000)).toEqual([false]);
      const mine = bench.store;
      bench.store = other;
      bench.expect(await bench.settle(bench.complete(lease))).toEqual(["lost"]);
      bench.store = mine;
      bench.expect(await bench.settle(bench.complete(lease))).toEqual(["settled"]);
    }),
  ]),
  it("keeps notes apart by their names", async (bench) => {
    const written = new Map(NOTE_NAMES.map((name) => [name, { value: `of ${name}`, keepMs: DAY }]));
    await bench.store.changeNotes(NOTE_NAMES, () => written);
    let read: ReadonlyMap<string, string> = new Map();
    await bench.store.changeNotes(NOTE_NAMES, (notes) => {
      read = notes;
      return new Map();
    });
    bench.expect([...read].toSorted()).toEqual(NOTE_NAMES.map((name) => [name, `of ${name}`]).toSorted());
  }),
  it("keeps quarantined bodies apart by their digest, and their quotas by the signer alone", async (bench) => {
    const quarantineQuota = { maxRows: 1, maxBytes: 1_000 };
    const same = { reason: "too_deep", slot: "next", kinds: ["inbound"], head: '{"x":"1"}' };
    const hold = async (text: string, wish: object) =>
      (await bench.step({ quarantines: [bench.quarantine(text, wish)], quarantineQuota })).quarantined[0];
    bench.expect(await hold("a", {})).toBe("held");
    bench.expect(await hold("a", { ...same, signer: "signer-2" })).toBe("duplicate");
    bench.expect(await hold("b", same)).toBe("full");
    bench.expect(await hold("b", { signer: "signer-2" })).toBe("held");
  }),
];
