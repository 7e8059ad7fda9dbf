/** The store contract on what a row holds: each optional column alone, on each way into the inbox, out of a lease, and back. */
import { copyOpen } from "../../src/inbox/copy.ts";
import type { EventRecord, LaneTag, NewEvent, NewQuarantine } from "../../src/inbox/record.ts";
import type { Effect, Lease } from "../../src/inbox/store.ts";
import { type Bench, bytes, type ContractCase, hex, it, needing, type WholeEvent } from "./store-bench.ts";
import { beside } from "./store-copy.ts";

const TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
type Column = readonly [what: string, tag: LaneTag, wish: Partial<NewEvent>];

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

const columns = (tag: LaneTag, ...names: readonly (keyof typeof EACH)[]): readonly Column[] =>
  names.map((name) => [name, tag, EACH[name]]);

/** One column differs from what most events have. Headers and unsigned times are in lanes of other sources alone. */
const COLUMNS: readonly Column[] = [
  ...columns("outbound", "nothing", "a trace", "a number", "a reference", "when it happened", "when it was signed"),
  ...columns("outbound", "a type"),
  ...columns("single", "nothing", "a trace", "a reference", "headers", "an unsigned time"),
  ...columns("position", "nothing", "a trace", "when it happened", "a type", "headers", "an unsigned time"),
  ...columns("arrival", "nothing", "headers", "an unsigned time"),
];

/** The event of a column, in a lane of its own, of one of two clients. `place` is its sequence, or its position. */
function eventOf(bench: Bench, [what, tag, wish]: Column, place = 1, note = "second"): NewEvent {
  const isEven = COLUMNS.findIndex((column) => column[0] === what && column[1] === tag) % 2 === 0;
  const isShared = tag === "position" || tag === "arrival";
  const rest = { gapWaitMs: 0, ...(isShared && { identity: `${what} ${place}` }), ...wish };
  const sequence = tag === "outbound" || tag === "position" ? place : 0;
  const raw = bytes(JSON.stringify({ what, tag, note }));
  return bench.event(sequence, { ...rest, lane: { apiClientId: isEven ? "c:a" : "c:b", tag, messageId: what }, raw });
}

/** What is stored of an event. */
function wanted(event: NewEvent) {
  const { lane, identity = null, sequence, untimed = false, head = null, digest, raw, ...facts } = event;
  const { eventType, occurredAt, signedAt, trace, peer, externalReference } = facts;
  const place = lane.tag === "arrival" ? "its id" : lane.tag === "position" ? sequence * 1_000 : sequence;
  return {
    ...{ lane, identity, place, eventType, occurredAt, signedAt, untimed, trace, peer, externalReference, head },
    ...{ digest: hex(digest), raw: hex(raw) },
  };
}

const placeOf = ({ lane, sequence, id }: Pick<WholeEvent, "lane" | "sequence" | "id">) =>
  lane.tag === "arrival" && sequence === id ? "its id" : sequence;

/** What a store holds of the event that came last into its lane. */
async function stored(bench: Bench, { lane: key }: NewEvent) {
  const { events, peer, externalReference } = await bench.lane(key.messageId, key);
  const [event] = await bench.withBodies(events.slice(-1));
  if (event === undefined) throw new Error("The event is not there.");
  const { lane, identity, eventType, occurredAt, signedAt, untimed, trace, head, digest, raw, ...rest } = event;
  const facts = { lane, identity, place: placeOf(event), eventType, occurredAt, signedAt, untimed, trace };
  return { rest, facts: { ...facts, peer, externalReference, head, digest: hex(digest), raw: hex(raw) } };
}

/** What a handler gets. */
function leased({ key: lane, event: id, sequence, ...lease }: Lease) {
  const { identity, eventType, signedAt, trace, head, raw } = lease;
  return { lane, identity, place: placeOf({ lane, sequence, id }), eventType, signedAt, trace, head, raw: hex(raw) };
}

function expectLease(bench: Bench, lease: Lease, event: NewEvent): void {
  const { lane, identity, place, eventType, signedAt, trace, head, raw } = wanted(event);
  bench.expect(leased(lease)).toEqual({ lane, identity, place, eventType, signedAt, trace, head, raw });
}

/** Names that a store knows already go another way than new ones. */
async function warm(bench: Bench): Promise<void> {
  const wishes = ["c:a", "c:b"].flatMap((apiClientId) =>
    ["message.sent", "message.failed"].map((eventType) => ({ eventType, lane: { apiClientId, messageId: eventType } })),
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
  { scope: "source:billing:a" },
  { signer: "another" },
  { reason: "source_failed" },
];

export const columnCases: readonly ContractCase[] = [
  ...Object.entries(WAYS).map(([what, way]) =>
    it<Bench>(`keeps each column of an event that comes ${what}`, async (bench) => {
      await warm(bench);
      for (const column of COLUMNS) {
        if (what.startsWith("behind") && column[1] === "single") continue;
        const event = await way(bench, column);
        bench
          .expect([column.slice(0, 2), (await stored(bench, event)).facts])
          .toEqual([column.slice(0, 2), wanted(event)]);
        const found = await bench.find({ messageId: column[0], apiClientId: event.lane.apiClientId });
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
];

/** The rows of the quarantine, oldest first. */
async function held(bench: Bench) {
  return (await bench.quarantined()).toReversed().map((row) => {
    const { reason, slot, signer, scope, signedAt, untimed, trace, head, digest, raw } = row;
    return { reason, slot, signer, scope, signedAt, untimed, trace, head, digest: hex(digest), raw: hex(raw) };
  });
}

function wantedBody(body: NewQuarantine) {
  const { untimed = false, head = null, digest, raw, ...facts } = body;
  return { ...facts, untimed, head, digest: hex(digest), raw: hex(raw) };
}
