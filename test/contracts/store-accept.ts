/** The store contract on accepting: identities, duplicates, conflicts, bodies, quarantine. */
import type { LaneKey, NewQuarantine } from "../../src/inbox/record.ts";
import { bytes, type ContractCase, hex, it, needing, sequences, sha256Of } from "./store-bench.ts";

/** Keys that a careless store would confuse, because it joins, folds or truncates them. */
const AWKWARD_KEYS: readonly LaneKey[] = [
  ...[
    ["a", "bc"],
    ["ab", "c"],
    ["a", "BC"],
    ["a", "bc "],
    ["a", "bc\u0000"],
    ["a", "bc\u0000d"],
    ["a", 'b","c'],
    ['a","b', "c"],
    ["a:b|c/d%2e", "e'--\n\t\\"],
    ["a", "😀"],
    ["a", "😁"],
    ["a", "\u00e9"],
    ["a", "e\u0301"],
    ["a", "x".repeat(512)],
    [null, "bc"],
  ].map(([tenant = null, name = ""]) => ({ source: "service", tenant, name: name ?? "", order: "sequence" as const })),
  { source: "services", tenant: "a", name: "bc", order: "sequence" },
];

export const acceptCases: readonly ContractCase[] = [
  it("stores an event with all its facts (I2)", async (bench) => {
    const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const wish = { trace, peer: "+15550001", externalReference: "order 7", occurredAt: 1_000, signedAt: 2_000 };
    const event = bench.event(1, wish);
    const { accepted } = await bench.accept(event);
    const record = bench.only(await bench.find());
    const { lane, sequence, eventType } = event;
    bench.expect(record).toMatchObject({ lane, sequence, eventType, trace, occurredAt: 1_000, signedAt: 2_000 });
    bench
      .expect(record)
      .toMatchObject({ state: "pending", outcome: null, late: false, forced: false, conflict: false });
    bench.expect(record).toMatchObject({ acceptedAt: bench.clock.now(), startedAt: null, finishedAt: null });
    bench.expect(record).toMatchObject({ attempts: 0, duplicates: 0, errorCode: null, error: null });
    bench.expect([hex(record.raw), hex(record.digest)]).toEqual([hex(event.raw), hex(event.digest)]);
    bench.expect(accepted).toEqual([{ outcome: "accepted", event: record.id, lane: record.laneId }]);
    const stored = await bench.lane();
    bench.expect(stored).toMatchObject({ id: record.laneId, key: lane, cursor: null, status: "ready", gapSince: null });
    bench.expect(stored).toMatchObject({ peer: "+15550001", externalReference: "order 7", gaps: [], attempts: [] });
  }),
  it("keeps a body of 1 MiB byte for byte, even if its buffer changes later", async (bench) => {
    const raw = new Uint8Array(1024 * 1024).map((_, index) => (index * 31 + (index >> 8)) & 0xff);
    const digest = hex(sha256Of(raw));
    await bench.accept(bench.event(1, { raw }));
    raw.fill(0);
    const lease = await bench.claimOne();
    bench.expect(hex(sha256Of(lease.raw))).toBe(digest);
    bench.expect(hex(sha256Of((await bench.at(1)).raw ?? bytes("")))).toBe(digest);
  }),
  it("keeps ids apart that differ in separators, emoji, NUL, case or composition (I1)", async (bench) => {
    const events = AWKWARD_KEYS.map((lane) => bench.event(1, { lane }));
    const { accepted } = await bench.accept(...events);
    bench.expect(accepted.map((a) => a.outcome)).toEqual(AWKWARD_KEYS.map(() => "accepted"));
    for (const key of AWKWARD_KEYS) bench.expect((await bench.store.lane(key))?.key).toEqual(key);
    const again = await bench.accept(...events);
    bench.expect(again.accepted.map((a) => a.outcome)).toEqual(AWKWARD_KEYS.map(() => "duplicate"));
    bench.expect((await bench.claim()).map((lease) => lease.key)).toEqual(AWKWARD_KEYS);
  }),
  it("keeps own ids apart in the same way, and a digest from a text of its bytes (I1)", async (bench) => {
    const ids = [...AWKWARD_KEYS.map(({ name }) => name ?? ""), "ab".repeat(32), "AB".repeat(32), "\u00ab".repeat(32)];
    const keys = [...new Set(ids)].map((ownId) => ({ ownId, lane: { order: null } }));
    const events = [...keys, { ownId: "bc", lane: { order: null, tenant: null } }].map((wish) => bench.event(0, wish));
    const { accepted } = await bench.accept(...events);
    bench.expect(accepted.map((a) => a.outcome)).toEqual(events.map(() => "accepted"));
    bench.expect((await bench.find()).map(({ ownId }) => ownId)).toEqual(events.map(({ ownId }) => ownId));
    const again = await bench.accept(...events);
    bench.expect(again.accepted.map((a) => a.outcome)).toEqual(events.map(() => "duplicate"));
    for (const { ownId = "", lane } of events) {
      const { source, tenant } = lane;
      const found = await bench.store.lane({ source, tenant, id: ownId });
      bench.expect(found?.events.map((event) => [event.ownId, event.lane.tenant])).toEqual([[ownId, tenant]]);
    }
  }),
  it("knows an event by its own id, source and tenant, whatever its lane, order and type (I1)", async (bench) => {
    const wish = (lane: Partial<LaneKey>, more = {}) =>
      bench.event(1, { gapWaitMs: 0, ownId: "evt_1", lane: { source: "billing", ...lane }, ...more });
    const lanes: readonly Partial<LaneKey>[] = [
      { name: "sub_1", order: "position" },
      { name: "sub_2", order: "position" },
      { name: "sub_1", order: "arrival" },
      { order: null },
    ];
    for (const first of lanes) {
      const owner = { tenant: JSON.stringify(first) };
      const { accepted } = await bench.accept(wish({ ...first, ...owner }));
      const [event] = accepted.map((one) => (one.outcome === "accepted" ? one : null));
      const repeats = lanes.map((lane) => wish({ ...lane, ...owner }, { eventType: "another" }));
      const answers = [await bench.accept(...repeats), ...(await Promise.all(repeats.map((one) => bench.accept(one))))];
      for (const answer of answers.flatMap((result) => result.accepted))
        bench.expect(answer).toMatchObject({ outcome: "duplicate", event: event?.event, lane: event?.lane });
      await bench.settle(...(await bench.claim()).map((lease) => bench.complete(lease)));
      bench
        .expect((await bench.accept(...repeats)).accepted.map(({ outcome }) => outcome))
        .toEqual(Array(4).fill("duplicate"));
    }
    bench.expect((await bench.find()).map(({ duplicates }) => duplicates)).toEqual([12, 12, 12, 12]);
    bench.expect((await bench.store.findLanes({ limit: 9 })).items.length).toBe(4);
    bench.expect(await bench.claim()).toEqual([]);
  }),
  it("treats two types at one sequence, and types with the same beginning, as different events (I1)", async (bench) => {
    const types = ["message.sent", "message.sent ", "message.delivery", "Message.sent", "m\u0000"];
    const { accepted } = await bench.accept(...types.map((eventType) => bench.event(1, { eventType })));
    bench.expect(accepted.map((a) => a.outcome)).toEqual(types.map(() => "accepted"));
    bench.expect((await bench.find()).map((event) => event.eventType)).toEqual(types);
  }),
  it("keeps sequences from -(2^53 - 1) to 2^53 - 1", async (bench) => {
    const all = [Number.MIN_SAFE_INTEGER, -1, 0, 1, Number.MAX_SAFE_INTEGER];
    const { accepted } = await bench.accept(...all.map((one) => bench.of(`m${one}`, one, { gapWaitMs: 0 })));
    bench.expect(accepted.map(({ outcome }) => outcome)).toEqual(all.map(() => "accepted"));
    bench.expect((await bench.claim()).map((lease) => lease.sequence)).toEqual(all);
    bench.expect((await bench.lane(`m${Number.MAX_SAFE_INTEGER}`)).cursor).toBe(Number.MAX_SAFE_INTEGER);
  }),
  it("stores a message id of 20,000 characters, or fails only that event (I2)", async (bench) => {
    // Random, so that a database cannot compress it to fit into an index.
    const long = Array.from({ length: 313 }, (_, index) => hex(sha256Of(bytes(`${index}`)))).join("");
    const { accepted } = await bench.accept(bench.of("before", 1), bench.of(long, 1), bench.of("after", 1));
    const [before, outcome, after] = accepted.map((a) => a.outcome);
    bench.expect([before, after]).toEqual(["accepted", "accepted"]);
    const stored = outcome === "failed" ? ["before", "after"] : ["before", long, "after"];
    bench.expect((await bench.find()).map((event) => event.lane.name)).toEqual(stored);
  }),
  it("assigns ids that grow in the order of acceptance", async (bench) => {
    await bench.accept(bench.of("b", 1), bench.of("a", 1));
    await bench.accept(bench.of("c", 1));
    const ids = (await bench.find({ order: "oldest" })).map((event) => event.id);
    bench.expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    bench.expect((await bench.find()).map((event) => event.lane.name)).toEqual(["b", "a", "c"]);
  }),
  it("answers a duplicate inside a batch and across batches, and keeps one row (I1, RCV-6)", async (bench) => {
    const event = bench.event(1);
    const first = await bench.accept(event, event);
    const { id, laneId } = await bench.at(1);
    const { signedAt } = event;
    const duplicate = { outcome: "duplicate", event: id, lane: laneId, state: "pending", signedAt, conflict: false };
    bench.expect(first.accepted[0]).toEqual({ outcome: "accepted", event: id, lane: laneId });
    bench.expect(first.accepted[1]).toMatchObject(duplicate);
    await bench.settle(bench.complete(await bench.claimOne()));
    const second = await bench.accept(event);
    bench.expect(second.accepted[0]).toMatchObject({ ...duplicate, state: "done" });
    bench.expect(await bench.at(1)).toMatchObject({ state: "done", duplicates: 2 });
    bench.expect(await bench.claim()).toEqual([]);
  }),
  ...needing("durable", [
    it("recognises a duplicate after a restart, and keeps every fact (I1, I2, RCV-6)", async (bench) => {
      await bench.handle(bench.event(1));
      await bench.accept(bench.event(2), bench.event(4, { note: "waits" }));
      const before = await bench.lane();
      await bench.restart();
      bench.expect(JSON.stringify(await bench.lane())).toBe(JSON.stringify(before));
      const { accepted } = await bench.accept(bench.event(1), bench.event(2), bench.event(4, { note: "waits" }));
      bench.expect(accepted.map((a) => a.outcome)).toEqual(["duplicate", "duplicate", "duplicate"]);
      bench.expect(sequences(await bench.claim())).toEqual([2]);
    }),
  ]),
  it("reports a duplicate with other content as a conflict, and passes the first body to the handler (RCV-6)", async (bench) => {
    const first = bench.event(1, { note: "first" });
    const { accepted } = await bench.accept(
      first,
      bench.event(1, { note: "other" }),
      bench.event(1, { note: "third" }),
    );
    bench.expect(accepted.slice(1)).toMatchObject([{ conflict: true }, { conflict: true }]);
    const [, answer] = accepted;
    bench.expect(answer?.outcome === "duplicate" && hex(answer.digest)).toBe(hex(first.digest));
    bench.expect(await bench.at(1)).toMatchObject({ conflict: true, duplicates: 2 });
    const lease = await bench.claimOne();
    bench.expect(hex(lease.raw)).toBe(hex(first.raw));
    bench.expect((await bench.store.stats()).counters).toMatchObject({ accepted: 1, duplicates: 2, conflicts: 2 });
  }),
  it("takes a message's number and reference from the stored event, not from a conflicting one (RCV-6)", async (bench) => {
    const wish = { peer: "+15550001", externalReference: "order 7" };
    const other = { peer: "+15550002", externalReference: "order 8", note: "other" };
    await bench.accept(bench.event(1, wish), bench.event(1, other));
    await bench.accept(bench.of("next", 1, { peer: "+15550001" }), bench.of("next", 1, other));
    bench.expect(await bench.lane()).toMatchObject(wish);
    bench.expect(await bench.lane("next")).toMatchObject({ peer: "+15550001", externalReference: null });
  }),
  it("does not treat a duplicate that was serialised again as a conflict (RCV-6)", async (bench) => {
    const raw = bytes('{"a":1,"b":[true,"é"]}');
    const again = bytes('{ "b": [true, "\\u00e9"],\n  "a": 1.0 }');
    const { accepted } = await bench.accept(bench.event(1, { raw }), bench.event(1, { raw: again }));
    bench.expect(accepted[1]).toMatchObject({ outcome: "duplicate", conflict: false });
    bench.expect(await bench.at(1)).toMatchObject({ conflict: false, duplicates: 1 });
  }),
  it("asks an event's source whether other bytes are the same event, with the stored body and its headers", async (bench) => {
    const asked: (string | null)[][] = [];
    const isSame = (raw: Uint8Array, head: string | null) => {
      asked.push([Buffer.from(raw).toString(), head]);
      return Buffer.from(raw).toString() === "a=%31";
    };
    const wish = { head: '{"x":"1"}', isSame };
    const spelled = (text: string) => bench.event(1, { ...wish, raw: bytes(text) });
    const together = await bench.accept(spelled("a=%31"), spelled("a=1"));
    const later = await bench.accept(spelled("a=1"), spelled("a=%31"));
    const conflicts = [...together.accepted.slice(1), ...later.accepted].map(
      (answer) => "conflict" in answer && answer.conflict,
    );
    bench.expect(conflicts).toEqual([false, false, false]);
    // Equal bytes are not asked about.
    bench.expect(asked).toEqual([
      ["a=%31", '{"x":"1"}'],
      ["a=%31", '{"x":"1"}'],
    ]);
    const other = await bench.accept(bench.event(1, { ...wish, raw: bytes("a=2"), isSame: () => false }));
    bench.expect(other.accepted).toMatchObject([{ outcome: "duplicate", conflict: true }]);
  }),
  it("counts the repeats that come with a new event, and with one that it knows (RCV-6)", async (bench) => {
    const signedAt = bench.clock.now();
    await bench.accept(bench.event(1, { repeats: { count: 3, signedAt } }));
    bench.expect((await bench.at(1)).duplicates).toBe(3);
    const { serviceResigns, counters } = await bench.store.stats();
    bench.expect([serviceResigns, counters.accepted, counters.duplicates]).toEqual([false, 1, 3]);
    const { accepted } = await bench.accept(bench.event(1, { repeats: { count: 1, signedAt: signedAt + 60_000 } }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate" }]);
    bench.expect((await bench.at(1)).duplicates).toBe(5);
    const stats = await bench.store.stats();
    bench.expect(stats).toMatchObject({ serviceResigns: true, newestSignedAt: signedAt + 60_000 });
  }),
  it("notices that the service signs each attempt anew", async (bench) => {
    await bench.accept(bench.event(1));
    await bench.accept(bench.event(1));
    bench.expect((await bench.store.stats()).serviceResigns).toBe(false);
    const signedAt = bench.clock.now() + 60_000;
    await bench.accept(bench.event(1, { signedAt }));
    bench.expect(await bench.store.stats()).toMatchObject({ serviceResigns: true, newestSignedAt: signedAt });
    bench.expect((await bench.at(1)).signedAt).toBe(signedAt - 60_000);
  }),
  it("holds a quarantined body once, byte for byte (I10)", async (bench) => {
    const body = bench.quarantine("{broken", { reason: "invalid_json", kinds: ["inbound"], slot: "previous" });
    bench.expect((await bench.step({ quarantines: [body, body] })).quarantined).toEqual(["held", "duplicate"]);
    bench.expect((await bench.step({ quarantines: [body] })).quarantined).toEqual(["duplicate"]);
    const row = bench.only(await bench.quarantined({ limit: 10 }));
    bench.expect(row).toMatchObject({ reason: "invalid_json", kinds: ["inbound"], slot: "previous", state: "held" });
    bench.expect(row).toMatchObject({ replayedAs: null, signedAt: body.signedAt, acceptedAt: bench.clock.now() });
    bench.expect([hex(row.raw), hex(row.digest)]).toEqual([hex(body.raw), hex(body.digest)]);
    const { gauges, counters } = await bench.store.stats();
    bench.expect(gauges).toMatchObject({ quarantined: 1, quarantinedBytes: body.raw.byteLength });
    bench.expect(counters.quarantined).toBe(1);
  }),
  it("refuses quarantined bodies beyond the quota of their signer, by rows and by bytes", async (bench) => {
    const bodies = ["a1", "a2", "a3"].map((text) => bench.quarantine(text));
    const other = bench.quarantine("b1", { signer: "signer-2" });
    const quarantineQuota = { maxRows: 2, maxBytes: 1_000 };
    const { quarantined } = await bench.step({ quarantines: [...bodies, other], quarantineQuota });
    bench.expect(quarantined).toEqual(["held", "held", "full", "held"]);
    const long = bench.quarantine("b".repeat(999), { signer: "signer-2", slot: "next", kinds: [] });
    bench.expect((await bench.step({ quarantines: [long], quarantineQuota })).quarantined).toEqual(["full"]);
    const oldest = (await bench.quarantined({ limit: 10 })).at(-1);
    await bench.act({ kind: "discard_quarantined", quarantine: oldest?.id ?? 0 });
    bench
      .expect((await bench.step({ quarantines: bodies, quarantineQuota })).quarantined)
      .toEqual(["duplicate", "duplicate", "held"]);
  }),
  it("lets the oldest body whose reason may give way do so where the quota of its signer is used up, and no other", async (bench) => {
    const quarantineQuota = { maxRows: 3, maxBytes: 1_000, givingWay: ["too_deep", "forbidden_key"] };
    const hold = async (...quarantines: readonly NewQuarantine[]) =>
      (await bench.step({ quarantines, quarantineQuota })).quarantined;
    const kept = (text: string) => bench.quarantine(text, { reason: "invalid_event" });
    const shaped = (text: string, wish: Partial<NewQuarantine> = {}) =>
      bench.quarantine(text, { reason: "too_deep", head: '{"a":"1"}', ...wish });
    const held = async () => {
      const rows = await bench.quarantined({ states: ["held"], limit: 100 });
      return rows.map(({ raw }) => Buffer.from(raw ?? []).toString()).toSorted();
    };
    const apart = [shaped("of another", { signer: "signer-2" }), shaped("set aside")];
    bench.expect(await hold(...apart)).toEqual(["held", "held"]);
    const aside = (await bench.quarantined({ limit: 1 }))[0];
    await bench.act({ kind: "discard_quarantined", quarantine: aside?.id ?? 0 });

    await hold(kept("k1"), shaped("s1"), shaped("s2", { reason: "forbidden_key", slot: "next", kinds: [] }));
    const gaveWay = { outcome: "made_room", dropped: 1 };
    // Of one batch too: what has just been held gives way to what comes next.
    bench.expect(await hold(shaped("s3"), kept("k2"))).toEqual([gaveWay, gaveWay]);
    bench.expect(await held()).toEqual(["k1", "k2", "of another", "s3"]);
    bench.expect(await hold(kept("k3"))).toEqual([gaveWay]);
    bench.expect(await hold(kept("k4"), shaped("s4"))).toEqual(["full", "full"]);
    bench.expect(await held()).toEqual(["k1", "k2", "k3", "of another"]);

    // What gave way is known and seen, without its body; an operator's discards keep theirs.
    bench.expect(await hold(shaped("s1"))).toEqual(["duplicate"]);
    const discarded = await bench.quarantined({ states: ["discarded"], limit: 100 });
    const facts = discarded.map(({ reason, raw, head }) => [
      reason,
      raw === null ? null : Buffer.from(raw).toString(),
      head,
    ]);
    bench.expect(facts).toEqual([
      ["too_deep", null, null],
      ["forbidden_key", null, null],
      ["too_deep", null, null],
      ["too_deep", "set aside", '{"a":"1"}'],
    ]);
    const { gauges, counters } = await bench.store.stats();
    bench.expect(gauges).toMatchObject({ quarantined: 4, quarantinedBytes: 6 + "of another".length });
    bench.expect(counters.quarantined).toBe(8);
    const replay = { kind: "replay_quarantined", quarantine: discarded[0]?.id ?? 0, event: bench.event(1) } as const;
    const replayed = await bench.store.act({ ...replay }, "tester");
    bench.expect(replayed).toEqual({ ok: false, reason: "wrong_state" });
    bench.expect((await bench.store.audit(10)).map(({ act }) => act)).toEqual(["discard_quarantined"]);
  }),
  it("lets as many bodies give way as another one's bytes need, and none where that is not enough", async (bench) => {
    const quarantineQuota = { maxRows: 100, maxBytes: 12, givingWay: ["too_deep"] };
    const hold = async (reason: string, ...texts: readonly string[]) =>
      (await bench.step({ quarantines: texts.map((text) => bench.quarantine(text, { reason })), quarantineQuota }))
        .quarantined;
    await hold("too_deep", "aaa", "bbb", "ccc");
    await hold("invalid_json", "kkk");
    bench.expect(await hold("invalid_json", "x".repeat(10))).toEqual(["full"]);
    bench.expect(await hold("too_deep", "y".repeat(13))).toEqual(["full"]);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ quarantined: 4, quarantinedBytes: 12 });
    bench.expect(await hold("invalid_json", "zzzz")).toEqual([{ outcome: "made_room", dropped: 2 }]);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ quarantined: 3, quarantinedBytes: 10 });
  }),
  it("holds nothing of a body that gave way, so an erasure finds nothing", async (bench) => {
    const quarantineQuota = { maxRows: 1, maxBytes: 1_000, givingWay: ["too_deep"] };
    for (const text of ['"+15550001"', '"+15550002"'])
      await bench.step({ quarantines: [bench.quarantine(text, { reason: "too_deep" })], quarantineQuota });
    bench.expect(await bench.act({ kind: "erase", subject: { peer: "+15550001" } })).toEqual({ ok: true, count: 0 });
    bench.expect(await bench.act({ kind: "erase", subject: { peer: "+15550002" } })).toEqual({ ok: true, count: 1 });
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ quarantined: 0, quarantinedBytes: 0 });
  }),
  it("counts a signer's quarantined bodies together, in whichever slot its secret was", async (bench) => {
    const quarantines = ["next", "current", "previous"].map((slot) => bench.quarantine(slot, { slot }));
    const quarantineQuota = { maxRows: 2, maxBytes: 1_000 };
    bench.expect((await bench.step({ quarantines, quarantineQuota })).quarantined).toEqual(["held", "held", "full"]);
    const rows = await bench.quarantined({ limit: 10 });
    bench.expect(rows.map(({ slot, signer }) => [slot, signer])).toEqual([
      ["current", "signer-1"],
      ["next", "signer-1"],
    ]);
  }),
];
