/** The store contract on what a row holds: each optional column alone, on each way into the inbox, out of a lease, and back. */
import { copyOpen } from "../../src/inbox/copy.ts";
import type { EventRecord, LaneOrder, NewEvent, NewQuarantine } from "../../src/inbox/record.ts";
import type { Effect, Lease } from "../../src/inbox/store.ts";
import { type Bench, bytes, type ContractCase, hex, it, needing, type WholeEvent } from "./store-bench.ts";
import { beside } from "./store-copy.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
type Column = readonly [what: string, order: LaneOrder | null, wish: Partial<NewEvent>];

const EACH = {
  nothing: {},
  "a trace": { trace: TRACE },
  "a number": { peer: "+15550100009" },
  "a reference": { externalReference: "order 7" },
  "when it happened": { occurredAt: 1_759_999_000_000 },
  "when it was signed": { signedAt: 1_759_999_990_000 },
  "a type": { eventType: "message.failed" },
  headers: { head: '{"x-type":"push"}' },
  "an unsigned time": { untimed: true },
} as const satisfies Readonly<Record<string, Partial<NewEvent>>>;

const columns = (order: LaneOrder | null, ...names: readonly (keyof typeof EACH)[]): readonly Column[] =>
  names.map((name) => [name, order, EACH[name]]);

/** One column differs from what most events have. Headers and unsigned times are in lanes of other sources alone. */
const COLUMNS: readonly Column[] = [
  ...columns("sequence", "nothing", "a trace", "a number", "a reference", "when it happened", "when it was signed"),
  ...columns("sequence", "a type"),
  ...columns(null, "nothing", "a trace", "a reference", "headers", "an unsigned time"),
  ...columns("position", "nothing", "a trace", "when it happened", "a type", "headers", "an unsigned time"),
  ...columns("arrival", "nothing", "headers", "an unsigned time"),
];

/** The event of a column, in a lane of its own, of one of two clients. `place` is its sequence, or its position. */
function eventOf(bench: Bench, [what, order, wish]: Column, place = 1, note = "second"): NewEvent {
  const isEven = COLUMNS.findIndex((column) => column[0] === what && column[1] === order) % 2 === 0;
  const isShared = order === "position" || order === "arrival";
  const rest = { gapWaitMs: 0, ...(isShared && { ownId: `${order} ${what} ${place}` }), ...wish };
  const sequence = order === "sequence" || order === "position" ? place : 0;
  const raw = bytes(JSON.stringify({ what, order, note }));
  return bench.event(sequence, { ...rest, lane: { source: "c", tenant: isEven ? "a" : "b", order, name: what }, raw });
}

/** What is stored of an event. */
function wanted(event: NewEvent) {
  const { lane, ownId = null, sequence, untimed = false, head = null, digest, raw, ...facts } = event;
  const { eventType, occurredAt, signedAt, trace, peer, externalReference } = facts;
  const place = lane.order === "arrival" ? "its id" : lane.order === "position" ? sequence * 1_000 : sequence;
  return {
    ...{ lane, ownId, place, eventType, occurredAt, signedAt, untimed, trace, peer, externalReference, head },
    ...{ digest: hex(digest), raw: hex(raw) },
  };
}

const placeOf = ({ lane, sequence, id }: Pick<WholeEvent, "lane" | "sequence" | "id">) =>
  lane.order === "arrival" && sequence === id ? "its id" : sequence;

/** What a store holds of the event that came last into its lane. */
async function stored(bench: Bench, { lane: key, ownId }: NewEvent) {
  const { events, peer, externalReference } = await bench.lane(key.name ?? ownId, key);
  const [event] = await bench.withBodies(events.slice(-1));
  if (event === undefined) throw new Error("The event is not there.");
  const { lane, eventType, occurredAt, signedAt, untimed, trace, head, digest, raw, ...rest } = event;
  const facts = { lane, ownId: event.ownId, place: placeOf(event), eventType, occurredAt, signedAt, untimed, trace };
  return { rest, facts: { ...facts, peer, externalReference, head, digest: hex(digest), raw: hex(raw) } };
}

/** What a handler gets. */
function leased({ key: lane, event: id, sequence, ...lease }: Lease) {
  const { ownId, eventType, signedAt, trace, head, raw } = lease;
  return { lane, ownId, place: placeOf({ lane, sequence, id }), eventType, signedAt, trace, head, raw: hex(raw) };
}

function expectLease(bench: Bench, lease: Lease, event: NewEvent): void {
  const { lane, ownId, place, eventType, signedAt, trace, head, raw } = wanted(event);
  bench.expect(leased(lease)).toEqual({ lane, ownId, place, eventType, signedAt, trace, head, raw });
}

/** Most inboxes have the tenants and types of an event already. */
async function warm(bench: Bench): Promise<void> {
  const wishes = ["a", "b"].flatMap((tenant) =>
    ["message.sent", "message.failed"].map((eventType) => ({
      eventType,
      lane: { source: "c", tenant, name: eventType },
    })),
  );
  await bench.accept(...wishes.map((wish) => bench.event(1, wish)));
  for (const lease of await bench.claim()) await bench.settle(bench.complete(lease));
}

/** Accepts the event of a column. */
type Way = (bench: Bench, column: Column) => Promise<NewEvent>;

const laterIn = async (bench: Bench, column: Column) => {
  await bench.accept(eventOf(bench, [column[0], column[1], {}], 1, "first"));
  return eventOf(bench, column, 2);
};

const WAYS: Readonly<Record<string, Way>> = {
  "by itself": async (bench, column) => {
    const event = eventOf(bench, column);
    await bench.accept(event);
    return event;
  },
  "between two that have none of it": async (bench, column) => {
    const event = eventOf(bench, column);
    const other = (when: string) => eventOf(bench, [`${when} ${column[0]}`, column[1], {}]);
    const [before, after] = [other("before"), other("after")];
    await bench.accept(before, event, after);
    for (const one of [before, after]) bench.expect((await stored(bench, one)).facts).toEqual(wanted(one));
    return event;
  },
  "leased at once": async (bench, column) => {
    const event = eventOf(bench, column);
    const { leases } = await bench.step({ accepts: [event], claim: { limit: 1 } });
    expectLease(bench, bench.only(leases), event);
    return event;
  },
  "out of the quarantine": async (bench, column) => {
    const event = eventOf(bench, column);
    await bench.step({ quarantines: [bench.quarantine(column.slice(0, 2).join())] });
    const [row] = await bench.quarantined({ limit: 1 });
    const act = { kind: "replay_quarantined", quarantine: row?.id ?? 0, event } as const;
    bench.expect(await bench.act(act)).toMatchObject({ ok: true });
    return event;
  },
  "behind one that waits": async (bench, column) => {
    const event = await laterIn(bench, column);
    await bench.accept(event);
    return event;
  },
  "behind one that has ended": async (bench, column) => {
    const event = await laterIn(bench, column);
    for (const lease of await bench.claim()) await bench.settle(bench.complete(lease));
    await bench.accept(event);
    return event;
  },
};

/** Ends an event that was accepted at 0 s, and that is due at 1 s; some seconds pass. Returns what its row has of that. */
type End = (bench: Bench, lease: Lease) => Promise<object>;

const second = (bench: Bench) => bench.clock.advance(1_000);
const DONE = { state: "done", outcome: "handled", attempts: 1, started: 1, ended: 2 };

/** @param kinds - how its effects write */
const completed =
  (...kinds: readonly ("write" | "statement")[]): End =>
  async (bench, lease) => {
    const { effects } = bench.place;
    const all = kinds.map(
      (kind): Effect<unknown> =>
        kind === "write" ? (tx) => effects?.write(tx, kind) : (effects?.statement(kind) ?? { text: "", values: [] }),
    );
    bench.expect(await bench.settle(bench.complete(lease, "handled", all))).toEqual(["settled"]);
    return DONE;
  };

const ENDS: Readonly<Record<string, End>> = {
  "is handled": completed(),
  "has no handler": async (bench, lease) => {
    await bench.settle(bench.complete(lease, "unhandled"));
    return { ...DONE, outcome: "unhandled" };
  },
  "is a dead letter": async (bench, lease) => {
    await bench.settle(bench.dead(lease));
    return { ...DONE, state: "dead", outcome: null };
  },
  "is retried, and handled": async (bench, lease) => {
    await bench.settle(bench.retry(lease, 1_000));
    await second(bench);
    const again = await bench.claimOne();
    bench.expect(leased(again)).toEqual(leased(lease));
    await bench.settle(bench.complete(again));
    return { ...DONE, attempts: 2, ended: 3 };
  },
  "returns to its queue": async (bench, lease) => {
    await bench.settle(bench.release(lease));
    const again = await bench.claimOne();
    bench.expect(leased(again)).toEqual(leased(lease));
    await bench.settle(bench.complete(again));
    return DONE;
  },
  "loses its lease, and is recovered": async (bench, lease) => {
    await bench.clock.advance(30_000);
    const again = await bench.claimOne({ mode: "recover" });
    bench.expect(leased(again)).toEqual(leased(lease));
    await bench.settle(bench.complete(again));
    return { ...DONE, attempts: 2, ended: 32 };
  },
  "is retired, as its record says": async (bench, lease) => {
    await bench.settle(bench.retry(lease, 0));
    const { retired } = await bench.step({ claim: { limit: 1, maxAttempts: 1 } });
    const [row] = await bench.find({ states: ["dead"] });
    const plain = (one: EventRecord | undefined) =>
      one && { ...one, hasBody: true, digest: hex(one.digest), raw: hex(one.raw) };
    bench.expect(retired.map(plain)).toEqual([plain(row)]);
    await bench.act({ kind: "discard", event: lease.event });
    return { ...DONE, state: "discarded", outcome: null };
  },
  "is discarded": async (bench, lease) => {
    await bench.settle(bench.retry(lease, 60_000));
    await bench.act({ kind: "discard", event: lease.event });
    return { ...DONE, state: "discarded", outcome: null };
  },
  "is replayed": async (bench, lease) => {
    await bench.settle(bench.dead(lease));
    await bench.act({ kind: "replay", event: lease.event });
    const again = await bench.claimOne();
    bench.expect(leased(again)).toEqual(leased(lease));
    await bench.settle(bench.complete(again));
    return DONE;
  },
};

const ENDS_WITH_EFFECTS: typeof ENDS = {
  "is handled with effects": completed("write"),
  "is handled with declared effects": completed("statement"),
  "is handled with both": completed("statement", "write"),
};

const endCases = (ends: typeof ENDS): readonly ContractCase[] =>
  Object.entries(ends).map(([what, end]) =>
    it<Bench>(`keeps each column when an event ${what}`, async (bench) => {
      await warm(bench);
      for (const column of COLUMNS) {
        const event = eventOf(bench, column);
        const at = bench.clock.now();
        await bench.accept(event);
        await second(bench);
        const lease = await bench.claimOne();
        expectLease(bench, lease, event);
        await second(bench);
        const wish = await end(bench, lease);
        const { rest, facts } = await stored(bench, event);
        const { state, outcome, attempts, startedAt, finishedAt } = rest;
        const since = (time: number | null) => (time === null ? null : (time - at) / 1_000);
        const row = { state, outcome, attempts, started: since(startedAt), ended: since(finishedAt) };
        bench.expect([column.slice(0, 2), row]).toEqual([column.slice(0, 2), wish]);
        bench.expect(facts).toEqual(wanted(event));
      }
    }),
  );

const QUARANTINED: readonly Partial<NewQuarantine>[] = [
  {},
  { trace: TRACE },
  { head: '{"x-type":"push"}' },
  { untimed: true },
  { slot: "previous" },
  { source: "billing", tenant: "a" },
  { tenant: null },
  { kinds: ["delivery", "inbound"] },
  { kinds: [] },
  { signer: "another" },
  { reason: "source_failed" },
];

/** As long as `isIdText` allows, and as different as random texts: no index can make them shorter. */
function longest(seed: number): string {
  let state = seed;
  return Array.from({ length: 433 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return String.fromCharCode(0x4e00 + (state >>> 18));
  }).join("");
}

export const columnCases: readonly ContractCase[] = [
  it("keeps tenants, lanes, types and ids apart that are as long as they may be", async (bench) => {
    const [tenant, name, eventType, id] = [longest(1), longest(2), longest(3), longest(4)];
    const pairs = (a: string, b: string) =>
      [a, `${a.slice(1)}a`].flatMap((x) => [b, `${b.slice(1)}a`].map((y) => [x, y]));
    const [keys, ids] = [pairs(tenant, name), pairs(tenant, id)];
    const first = keys.map(([tenant = "", name = ""]) => bench.event(1, { lane: { tenant, name }, eventType }));
    const own = ids.map(([tenant = "", ownId = ""]) => {
      return bench.event(0, {
        ownId,
        eventType,
        gapWaitMs: 0,
        lane: { source: "s".repeat(32), tenant, name, order: "position" },
      });
    });
    const second = first.map(({ lane }) => bench.event(2, { lane, eventType }));
    const outcomes = async (...events: readonly NewEvent[]) =>
      new Set((await bench.accept(...events)).accepted.map(({ outcome }) => outcome));
    for (const events of [first, own, second]) {
      bench.expect([...(await outcomes(...events))]).toEqual(["accepted"]);
      bench.expect([...(await outcomes(...events))]).toEqual(["duplicate"]);
    }
    for (const { lane: key } of first) {
      const lane = await bench.lane(key.name ?? "", key);
      bench.expect([lane.key, lane.events.map((event) => event.eventType)]).toEqual([key, [eventType, eventType]]);
    }
    const found = [
      await bench.find({ tenant, lane: name }),
      await bench.find({ id, tenant }),
      await bench.find({ eventType }),
    ];
    bench.expect(found.map(({ length }) => length)).toEqual([4, 1, 12]);
  }),
  ...Object.entries(WAYS).map(([what, way]) =>
    it<Bench>(`keeps each column of an event that comes ${what}`, async (bench) => {
      await warm(bench);
      for (const column of COLUMNS) {
        if (what.startsWith("behind") && column[1] === null) continue;
        const event = await way(bench, column);
        bench
          .expect([column.slice(0, 2), (await stored(bench, event)).facts])
          .toEqual([column.slice(0, 2), wanted(event)]);
        const { ownId: id, lane } = event;
        const named = lane.name === null ? {} : { lane: lane.name };
        const found = await bench.find({ ...(id !== undefined && { id }), ...named, tenant: lane.tenant });
        bench.expect(found.map(({ raw }) => hex(raw)).includes(hex(event.raw))).toBe(true);
        for (const lease of await bench.claim()) await bench.settle(bench.complete(lease));
      }
    }),
  ),
  ...endCases(ENDS),
  ...needing("transactional", endCases(ENDS_WITH_EFFECTS)),
  it<Bench>("copies each column of an event and of a quarantined body, in and out", async (bench) => {
    const events = COLUMNS.map((column) => eventOf(bench, column));
    const bodies = QUARANTINED.map((wish, index) => bench.quarantine(`${index}`, wish));
    const [first, last] = [await beside(bench), await beside(bench)];
    await first.step({ accepts: events, quarantines: bodies });
    for (const [from, to] of [
      [first, bench],
      [bench, last],
    ] as const) {
      await copyOpen({ from: from.store, to: to.store }, bench.clock);
      for (const event of events) bench.expect((await stored(to, event)).facts).toEqual(wanted(event));
      bench.expect(await held(to)).toEqual(bodies.map(wantedBody));
    }
    const leases = await bench.claim();
    bench.expect(leases.length).toBe(events.length);
    for (const [index, event] of events.entries()) {
      const lease = leases[index];
      if (lease !== undefined) expectLease(bench, lease, event);
    }
  }),
  it<Bench>("keeps each column of a quarantined body, and knows each as another body by its digest", async (bench) => {
    const bodies = QUARANTINED.map((wish, index) => bench.quarantine(`${index}`, wish));
    const { quarantined } = await bench.step({ quarantines: bodies });
    bench.expect(quarantined).toEqual(bodies.map(() => "held"));
    bench.expect(await held(bench)).toEqual(bodies.map(wantedBody));
  }),
  it<Bench>("keeps the kinds of a quarantined body as they were written, after its release and in a copy", async (bench) => {
    const bodies = KINDS.map((kinds, index) => bench.quarantine(`{${index}`, { kinds }));
    await bench.step({ quarantines: bodies });
    await expectKinds(bench);
    const ids = (await bench.quarantined()).map(({ id }) => id);
    for (const [index, quarantine] of ids.entries()) {
      const release =
        index % 2 === 0
          ? ({ kind: "replay_quarantined", quarantine, event: bench.of(`m${index}`, 1) } as const)
          : ({ kind: "discard_quarantined", quarantine } as const);
      bench.expect(await bench.act(release)).toMatchObject({ ok: true });
    }
    await expectKinds(bench);
    const copy = await beside(bench);
    await copyOpen({ from: bench.store, to: copy.store }, bench.clock);
    await expectKinds(copy);
  }),
];

/** Lists of kinds that a text of their names could mistake for each other. */
const KINDS = [["delivery", "inbound"], [], ["inbound", "delivery"], ["delivery,inbound"], [""], ['a"b\\', "é\0"]];

/** Both a list of the quarantine and each row of it have these kinds. */
async function expectKinds(bench: Bench): Promise<void> {
  const newestFirst = KINDS.toReversed();
  const { items } = await bench.store.findQuarantined({ limit: 100 });
  bench.expect(items.map(({ kinds }) => kinds)).toEqual(newestFirst);
  bench.expect((await bench.quarantined()).map(({ kinds }) => kinds)).toEqual(newestFirst);
}

/** The rows of the quarantine, oldest first. */
async function held(bench: Bench) {
  return (await bench.quarantined()).toReversed().map((row) => {
    const { reason, slot, signer, source, tenant, kinds, signedAt, untimed, trace, head, digest, raw } = row;
    return {
      reason,
      slot,
      signer,
      source,
      tenant,
      kinds,
      signedAt,
      untimed,
      trace,
      head,
      digest: hex(digest),
      raw: hex(raw),
    };
  });
}

function wantedBody(body: NewQuarantine) {
  const { untimed = false, head = null, digest, raw, ...facts } = body;
  return { ...facts, untimed, head, digest: hex(digest), raw: hex(raw) };
}
