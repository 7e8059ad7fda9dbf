/** The store contract on copying an inbox: what is exported and imported, and that the copy behaves the same. */
import { copyOpen } from "../../src/inbox/copy.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { Bench, bytes, type ContractCase, hex, it, needing, sequences } from "./store-bench.ts";

const MINUTE = 60_000;
const NOTHING = { lanes: [], quarantined: [], audit: [], totals: null } as const;

/** A bench with a memory store on the clock of `bench`, which closes it: the other end of a copy. */
export async function beside(bench: Bench): Promise<Bench> {
  const place = { store: memoryStore({ volatile: true }), dispose: async () => {} };
  await bench.open(place.store);
  return new Bench(place, bench.expect, 1, bench.clock);
}

/** Fills a memory store, and copies it into the store under test. */
async function takeFilled(bench: Bench): Promise<Bench> {
  const other = await beside(bench);
  await fill(other);
  await copyOpen({ from: other.store, to: bench.store }, bench.clock);
  return other;
}

/** Creates one lane of every kind, quarantined bodies and an audit. */
async function fill(bench: Bench): Promise<void> {
  await bench.accept(bench.of("done", 1, { peer: "+15550001", externalReference: "order 7", trace: "00-a-b-01" }));
  await bench.settle(bench.complete(bench.only(await bench.claim())));
  await bench.accept(bench.of("unhandled", 1, { lane: { tenant: "c\0é" }, eventType: "message.new\0" }));
  await bench.settle(bench.complete(bench.only(await bench.claim()), "unhandled"));
  await bench.accept(bench.of("dead", 1), bench.of("blocked", 1), bench.of("discarded", 1));
  const [dead, blocked, discarded] = await bench.claim();
  if (dead === undefined || blocked === undefined || discarded === undefined) throw new Error("Three lanes were due.");
  await bench.settle(bench.dead(dead), bench.dead(blocked, "block"), bench.dead(discarded));
  await bench.act({ kind: "discard", event: discarded.event });
  await bench.accept(bench.of("late", 3));
  await bench.clock.advance(2 * MINUTE);
  await bench.settle(bench.complete(bench.only(await bench.claim())));
  await bench.accept(bench.of("late", 1), bench.of("late", 2, { note: "first" }));
  await bench.accept(bench.of("late", 2, { note: "second" }));
  await bench.accept(bench.of("recorded", 5));
  await bench.clock.advance(2 * MINUTE);
  for (const lease of await bench.claim()) if (lease.sequence === 5) await bench.settle(bench.complete(lease));
  await bench.record(bench.of("recorded", 2));
  await bench.accept(bench.of("backoff", 1), bench.of("backoff", 2), bench.of("blocked", 2));
  await bench.settle(
    bench.retry(bench.only((await bench.claim()).filter(({ key }) => key.name === "backoff")), MINUTE),
  );
  await bench.accept(bench.of("leased", 1), bench.of("leased", 2));
  await bench.claim();
  await bench.accept(bench.of("filtered", 1, { filtered: true }), bench.of("filtered", 3));
  await bench.accept(bench.of("gap", 3), bench.of("ready", 1), bench.of("in", 0, { lane: { order: null } }));
  await bench.step({
    quarantines: [bench.quarantine("{"), bench.quarantine("[", { slot: "previous", signer: "signer-2" })],
  });
  const quarantined = (await bench.quarantined({ limit: 1 }))[0];
  await bench.act({ kind: "discard_quarantined", quarantine: quarantined?.id ?? 0 });
  await bench.clock.advance(1);
}

const KEYS = [
  "done",
  "dead",
  "blocked",
  "discarded",
  "late",
  "recorded",
  "backoff",
  "leased",
  "gap",
  "ready",
  "filtered",
];

/** Everything that an operator sees, in a form that every `expect` compares in the same way. */
async function view(bench: Bench): Promise<unknown> {
  const lanes = [];
  for (const key of KEYS) {
    const { events, ...facts } = await bench.lane(key);
    // A lease is not copied: the event is ready.
    const lane = facts.status === "leased" ? { ...facts, status: "ready" } : facts;
    lanes.push({
      ...lane,
      readyAt: lane.status === "ready" ? 0 : lane.readyAt,
      events: (await bench.withBodies(events)).map((e) => ({ ...e, digest: hex(e.digest), raw: hex(e.raw) })),
    });
  }
  const quarantined = await bench.quarantined({ limit: 100 });
  const { instances: _instances, ...stats } = await bench.store.stats();
  return JSON.parse(
    JSON.stringify({
      ...{ lanes, stats, audit: await bench.store.audit(100) },
      quarantined: quarantined.map((row) => ({ ...row, digest: hex(row.digest), raw: hex(row.raw) })),
      newest: (await bench.find({ order: "newest" })).map(({ id }) => id),
    }),
  );
}

/** Claims and completes events until none waits any more, and returns their leases. */
async function handOuts(bench: Bench): Promise<unknown[]> {
  const seen: unknown[] = [];
  for (let round = 0; round < 20; round++) {
    for (const lease of await bench.claim({ limit: 3 })) {
      // Each store numbers new lanes and events in its own way.
      const { lane: _lane, event: _event, token: _token, acceptIndex: _index, raw, ...facts } = lease;
      seen.push(JSON.parse(JSON.stringify({ ...facts, raw: hex(raw) })));
      await bench.settle(bench.complete(lease));
    }
    await bench.accept(bench.of("gap", 3), bench.of("done", 1), bench.of("gap", round), bench.of("late", 4));
    await bench.clock.advance(MINUTE);
  }
  return seen;
}

export const copyCases: readonly ContractCase[] = [
  it("exports everything to another store, and keeps it", async (bench) => {
    await fill(bench);
    const other = await beside(bench);
    const before = await view(bench);
    const copied = await copyOpen({ from: bench.store, to: other.store }, bench.clock);
    bench.expect(copied).toMatchObject({ lanes: 13, pending: 11, done: 5, dead: 2, late: 1, discarded: 1 });
    bench.expect(copied).toMatchObject({ gaps: 2, attempts: 4, conflicts: 1, quarantined: 2, audit: 2 });
    bench.expect(await view(bench)).toEqual(before);
    bench.expect(await view(other)).toEqual(before);
    bench.expect((await bench.lane("leased")).status).toBe("leased");
  }),
  it("imports another store's inbox, and shows the same", async (bench) => {
    const other = await takeFilled(bench);
    bench.expect(await view(bench)).toEqual(await view(other));
    const { status, readyAt, events } = await bench.lane("leased");
    bench.expect([status, (readyAt ?? 0) <= bench.clock.now(), events[0]?.attempts]).toEqual(["ready", true, 1]);
  }),
  it("leases imported events in the same order as the other store (I4)", async (bench) => {
    const other = await takeFilled(bench);
    const twin = await beside(bench);
    await copyOpen({ from: other.store, to: twin.store }, bench.clock);
    const startedAt = bench.clock.now();
    const own = await handOuts(bench);
    twin.clock.set(startedAt);
    bench.expect(own).toEqual(await handOuts(twin));
  }),
  it("recognises imported identities, and assigns higher ids to new events (I1)", async (bench) => {
    const other = await takeFilled(bench);
    const newestId = async () => bench.only(await bench.find({ order: "newest", limit: 1 })).id;
    const newest = await newestId();
    const { accepted } = await bench.accept(other.of("done", 1), other.of("new", 1));
    bench.expect(accepted.map(({ outcome }) => outcome)).toEqual(["duplicate", "accepted"]);
    bench.expect((await newestId()) > newest).toBe(true);
    const { quarantined } = await bench.step({ quarantines: [bench.quarantine("{"), bench.quarantine("]")] });
    bench.expect(quarantined).toEqual(["duplicate", "held"]);
    await bench.act({ kind: "unblock", lane: (await bench.lane("blocked")).id });
    bench.expect((await bench.store.audit(10)).map(({ id }) => id)).toEqual([3, 2, 1]);
  }),
  it("imports a page twice without duplicates, and reports its progress", async (bench) => {
    const other = await beside(bench);
    await fill(other);
    const source = "elsewhere:";
    const lanes = await other.store.export(0, 5);
    const last = lanes.at(-1)?.id ?? 0;
    const quarantined = await other.quarantined({ limit: 10 });
    const audit = await other.store.audit(10);
    const page = { ...NOTHING, source, lanes, quarantined, audit };
    bench.expect(await bench.store.import({ ...NOTHING, source })).toEqual({ ok: true, lastLane: 0, finished: false });
    // A page that stopped in between: one of its two bodies, the held one, is there already.
    await bench.store.import({ ...NOTHING, source, quarantined: quarantined.slice(1) });
    const first = await bench.store.import(page);
    const { gauges } = await bench.store.stats();
    const there = (await other.store.stats()).gauges;
    bench.expect([gauges.quarantined, gauges.quarantinedBytes]).toEqual([there.quarantined, there.quarantinedBytes]);
    bench.expect([first, await bench.store.import(page)]).toEqual([
      { ok: true, lastLane: last, finished: false },
      { ok: true, lastLane: last, finished: false },
    ]);
    bench.expect((await bench.store.stats()).gauges).toEqual(gauges);
    bench.expect((await bench.store.export(0, 100)).length).toBe(5);
    bench.expect((await bench.store.export(last, 100)).length).toBe(0);
  }),
  it("imports an audit row whose actor has a NUL in the name", async (bench) => {
    const other = await beside(bench);
    await other.accept(other.event(1));
    await other.store.act({ kind: "reveal", lane: (await other.lane()).id }, "some\0one");
    await copyOpen({ from: other.store, to: bench.store }, bench.clock);
    const [row] = await bench.store.audit(10);
    bench.expect(row?.by.replace("\ufffd", "\0")).toBe("some\0one");
  }),
  it("refuses to open for work while a copy into it is unfinished", async (bench) => {
    await bench.store.import({ ...NOTHING, source: "elsewhere:" });
    await bench.store.close();
    const opening = await bench.open().then(
      () => "open",
      (error: { readonly code?: string }) => error.code,
    );
    bench.expect(opening).toBe("copy_unfinished");
    await bench.open(bench.store, { copying: true });
    const other = await beside(bench);
    const { counters, newestSignedAt, serviceResigns } = await other.store.stats();
    const totals = { counters, newestSignedAt, serviceResigns };
    const ended = await bench.store.import({ ...NOTHING, source: "elsewhere:", totals });
    bench.expect(ended).toEqual({ ok: true, lastLane: 0, finished: true });
    await bench.store.close();
    await bench.open();
  }),
  it("is marked as moved, refuses every open but a copy's to the same place, and opens again without the mark", async (bench) => {
    await bench.accept(bench.event(1));
    bench.expect(await bench.store.markMoved("elsewhere:")).toEqual([]);
    // The one that marked it goes on, to read what it copies.
    bench.expect((await bench.store.export(0, 10)).length).toBe(1);
    await bench.store.close();
    const refusals = [];
    for (const overrides of [{}, { rules: "recorded" }, { copying: true }, { movedTo: "third:" }] as const) {
      const opening = bench.open(bench.store, overrides);
      refusals.push(await opening.then(String, ({ code, fields }) => [code, fields.movedTo]));
    }
    bench.expect(refusals).toEqual(Array(4).fill(["inbox_moved", "elsewhere:"]));
    await bench.open(bench.store, { rules: "recorded", movedTo: "elsewhere:" });
    bench.expect(await bench.store.markMoved("elsewhere:")).toEqual([]);
    await bench.store.close();
    await bench.open(bench.store, { rules: "recorded", movedTo: true });
    bench.expect(await bench.store.markMoved(null)).toEqual([]);
    await bench.store.close();
    await bench.open();
    bench.expect(sequences(await bench.find())).toEqual([1]);
  }),
  it("is moved by a copy, which marks nothing without being asked", async (bench) => {
    await bench.accept(bench.event(1));
    const [first, second] = [await beside(bench), await beside(bench)];
    const opens = () =>
      bench.open().then(
        () => "open",
        ({ code }) => code,
      );
    bench.expect((await copyOpen({ from: bench.store, to: first.store }, bench.clock)).moved).toBe(false);
    await bench.store.close();
    bench.expect(await opens()).toBe("open");
    const move = { from: bench.store, to: second.store, move: true };
    bench.expect((await copyOpen(move, bench.clock)).moved).toBe(true);
    await bench.store.close();
    bench.expect(await opens()).toBe("inbox_moved");
    bench.expect(sequences(await second.find())).toEqual([1]);
  }),
  it("refuses an import when it already holds events, or events from another source", async (bench) => {
    await bench.handle(bench.event(1));
    bench.expect(await bench.store.import({ ...NOTHING, source: "elsewhere:" })).toEqual({ ok: false });
    const other = await beside(bench);
    await other.store.import({ ...NOTHING, source: "elsewhere:" });
    bench.expect(await other.store.import({ ...NOTHING, source: "third:" })).toEqual({ ok: false });
  }),
  it("refuses another source than the first, and imports nothing after the end", async (bench) => {
    const other = await beside(bench);
    await other.accept(other.of("a", 1));
    await copyOpen({ from: other.store, to: bench.store }, bench.clock);
    bench.expect(await bench.store.import({ ...NOTHING, source: "third:" })).toEqual({ ok: false });
    await other.accept(other.of("b", 1));
    const lanes = await other.store.export(0, 100);
    const { location: source } = other.store;
    bench.expect(await bench.store.import({ ...NOTHING, source, lanes })).toMatchObject({ ok: true, finished: true });
    bench.expect(sequences(await bench.find())).toEqual([1]);
  }),
  it("exports bodies and the first conflicting bodies byte for byte, and null for erased ones", async (bench) => {
    const raw = bytes(`{"big":"${"é😀\\u0000".repeat(20_000)}"}`);
    await bench.accept(bench.of("a", 1, { raw }), bench.of("b", 1, { note: "one" }));
    await bench.accept(bench.of("a", 1, { raw }), bench.of("b", 1, { note: "two" }));
    await bench.act({ kind: "erase", subject: { id: "b" } });
    await bench.accept(bench.of("c", 1, { note: "one" }), bench.of("c", 1, { note: "two" }));
    const lanes = await bench.store.export(0, 100);
    const events = lanes.flatMap((lane) => lane.events);
    bench.expect(events.map((event) => hex(event.raw)?.length ?? null)).toMatchObject([2 * raw.byteLength, null, {}]);
    bench.expect(hex(events[0]?.raw ?? null)).toBe(hex(raw));
    bench.expect(events.map(({ conflicting }) => conflicting !== null)).toEqual([false, false, true]);
    bench.expect(new TextDecoder().decode(events[2]?.conflicting?.raw).includes("two")).toBe(true);
  }),
  ...needing("shared", [
    it("is not marked as moved while another process has it open, heartbeat or not", async (bench) => {
      const other = await bench.another();
      bench.expect(await bench.store.markMoved("elsewhere:")).toEqual([process.pid]);
      await other.close();
      // Nobody waits for one that was killed.
      await bench.another("gone");
      bench.expect(await bench.store.markMoved("elsewhere:")).toEqual([]);
      const opening = bench.another();
      bench
        .expect(
          await opening.then(
            () => "open",
            ({ code }) => code,
          ),
        )
        .toBe("inbox_moved");
    }),
  ]),
];
