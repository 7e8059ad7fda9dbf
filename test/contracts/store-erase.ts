/** The store contract on a person's data: what is exported, what erasing removes, and what stays to identify events. */
import { setImmediate } from "node:timers/promises";
import type { NewEvent } from "../../src/inbox/record.ts";
import type { Subject } from "../../src/inbox/subject.ts";
import { exportSubject, type SubjectRecord } from "../../src/receiver/operator.ts";
import { type Bench, bytes, type ContractCase, DAY, hex, it, POLICY, sha256Of } from "./store-bench.ts";

// The export of a person's data: everything that erasing then removes, and nothing about anyone else.

const PEER = "+15550001";

/** An event of an unknown type, whose lane names neither the number nor the message. */
function unlanedEvent(bench: Bench, body: object | string): NewEvent {
  const raw = bytes(typeof body === "string" ? body : JSON.stringify(body));
  const lane = { order: null, name: hex(sha256Of(raw)) ?? "" } as const;
  return bench.event(0, { eventType: "message.read", lane, raw });
}

async function told(bench: Bench, subject: Subject): Promise<SubjectRecord[]> {
  const records: SubjectRecord[] = [];
  for await (const record of exportSubject(bench.store, subject)) records.push(record);
  return records;
}

/** Exports the records of the subject, erases them, and checks that none is left. */
async function askAndErase(bench: Bench, subject: Subject): Promise<readonly SubjectRecord[]> {
  const records = await told(bench, subject);
  bench.expect(await bench.act({ kind: "erase", subject })).toEqual({ ok: true, count: records.length });
  bench.expect(await told(bench, subject)).toEqual([]);
  return records;
}

export const subjectCases: readonly ContractCase[] = [
  it("exports an event's body, number, reference, error, failed attempts and conflicting body as plain JSON", async (bench) => {
    const wish = { peer: PEER, externalReference: "order 7", note: "first" };
    await bench.accept(bench.event(1, wish), bench.event(1, { ...wish, note: "second" }));
    const failure = { code: "handler_failed", message: "No route to …01.", durationMs: 5 };
    await bench.settle(bench.dead(await bench.claimOne(), "continue", failure));
    const [record] = await askAndErase(bench, { peer: PEER });
    bench.expect(JSON.parse(JSON.stringify(record))).toEqual(record);
    bench.expect(record).toMatchObject({
      ...{ kind: "event", source: "service", tenant: "client", lane: "m", order: "sequence" },
      ...{ ownId: null, sequence: 1, state: "dead" },
      ...{ peer: PEER, externalReference: "order 7", errorCode: "handler_failed", error: "No route to …01." },
      failedAttempts: [{ attempt: 1, errorCode: "handler_failed", error: "No route to …01." }],
    });
    const { body, conflict } = record as Extract<SubjectRecord, { kind: "event" }>;
    bench.expect([body, conflict?.body].map((one) => JSON.stringify(one).includes("first"))).toEqual([true, false]);
    bench.expect(JSON.stringify(conflict?.body).includes("second")).toBe(true);
  }),
  it("exports for a number what erasing it removes: lanes, events of unknown types, quarantined bodies", async (bench) => {
    const named = [unlanedEvent(bench, { from: PEER }), unlanedEvent(bench, { from: `${PEER}2` })];
    const read = { eventType: "message.read", raw: bytes(`{"data":{"to":"${PEER}"}}`) };
    const bodies = [`{"to":"${PEER}"`, "{of no interest"].map((text) => bench.quarantine(text));
    await bench.step({
      accepts: [bench.event(1, { peer: PEER }), bench.event(2), bench.of("other", 1, { peer: "+15550002" })],
    });
    await bench.step({ accepts: [...named, bench.of("read", 5, read)], quarantines: bodies });
    const records = await askAndErase(bench, { peer: PEER });
    bench.expect(records.map(({ kind }) => kind)).toEqual(["event", "event", "event", "event", "quarantined"]);
    bench.expect(JSON.stringify(records).includes("5550002")).toBe(false);
  }),
  it("exports for a message what erasing it removes, in every state, and bytes that are not text as base64", async (bench) => {
    await bench.handle(bench.of("msg_1", 1));
    const inbound = bench.of("msg_1", 0, { lane: { order: null } });
    const broken = bench.quarantine("", { raw: Buffer.concat([bytes("{msg_1,"), Buffer.of(0xff)]) });
    await bench.step({ accepts: [bench.of("msg_1", 4), inbound, bench.of("msg_10", 1)], quarantines: [broken] });
    const records = await askAndErase(bench, { id: "msg_1" });
    bench.expect(records.map(({ state }) => state)).toEqual(["done", "pending", "pending", "held"]);
    bench.expect(records[3]?.body).toEqual({ base64: Buffer.from(broken.raw).toString("base64") });
  }),
  it("exports many messages and quarantined bodies of one number, page by page", async (bench) => {
    const bodies = Array.from({ length: 120 }, (_, index) => bench.quarantine(`{${index} ${PEER}`));
    await bench.step({ quarantines: bodies });
    const ids = Array.from({ length: 600 }, (_, index) => `m${index}`);
    await bench.accept(
      ...ids.map((id, index) => bench.of(id, 1, index % 2 === 0 ? { peer: PEER } : { peer: "+1999" })),
    );
    bench.expect((await askAndErase(bench, { peer: PEER })).length).toBe(420);
  }),
];

// Erasing: what is removed, and what stays to identify events.

/** Which of the events of unknown types still have their bodies, in the order they were accepted. */
async function kept(bench: Bench): Promise<readonly boolean[]> {
  return (await bench.find({ eventType: "message.read" })).map((event) => event.raw !== null);
}

/** Everything a store shows that could hold a person's data, as text. */
async function shown(bench: Bench): Promise<string> {
  const items = await bench.quarantined({ limit: 100 });
  const events = await bench.find();
  const bodies = [...events, ...items].map((row) => Buffer.from(row.raw ?? []).toString());
  return JSON.stringify([bodies, events.map((event) => event.error), await bench.lane()]);
}

/** Quarantines a body, and replays it as an event of message `m` with another number. */
async function replayFromQuarantine(bench: Bench, text: string) {
  await bench.step({ quarantines: [bench.quarantine(text)] });
  const { id } = bench.only(await bench.quarantined({ limit: 1 }));
  const event = bench.event(1, { peer: "+15550002" });
  await bench.act({ kind: "replay_quarantined", quarantine: id, event });
  return { event: (await bench.at(1)).id };
}

export const eraseCases: readonly ContractCase[] = [
  it("erases a number: bodies, numbers, references and error texts go, identities stay (I1)", async (bench) => {
    const wish = { peer: PEER, externalReference: "order 7", note: PEER };
    await bench.accept(bench.event(1, wish), bench.event(1, { ...wish, note: `${PEER} again` }));
    const failure = { code: "handler_failed", message: `No route to ${PEER}.`, durationMs: 5 };
    await bench.settle(bench.retry(await bench.claimOne(), 0, failure));
    await bench.settle(bench.complete(await bench.claimOne()));
    await bench.accept(bench.of("other", 1, { peer: "+15550002" }));
    const before = await bench.at(1);

    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 1 });
    const after = await bench.at(1);
    bench.expect(after).toMatchObject({ state: "done", raw: null, error: null, errorCode: "handler_failed" });
    bench.expect([after.id, hex(after.digest)]).toEqual([before.id, hex(before.digest)]);
    bench.expect(await bench.lane()).toMatchObject({ peer: null, externalReference: null, status: "idle" });
    bench.expect((await bench.lane()).attempts).toMatchObject([{ errorCode: "handler_failed", error: "" }]);
    bench.expect((await shown(bench)).includes("5550001")).toBe(false);
    const { accepted } = await bench.accept(bench.event(1, { note: "yet another" }));
    bench.expect(accepted).toMatchObject([{ outcome: "duplicate", conflict: false }]);
    bench.expect((await bench.find({ peer: "+15550002" })).length).toBe(1);
  }),
  it("counts only the events that still held data, none when erased before", async (bench) => {
    await bench.accept(bench.event(1, { peer: PEER, externalReference: "order 7" }), bench.of("m2", 1, { peer: PEER }));
    const erase = (subject: { peer: string } | { id: string }) => bench.act({ kind: "erase", subject });
    bench.expect(await erase({ id: "m" })).toEqual({ ok: true, count: 1 });
    bench.expect(await erase({ id: "m" })).toEqual({ ok: true, count: 0 });
    bench.expect(await erase({ peer: PEER })).toEqual({ ok: true, count: 1 });
    bench.expect(await erase({ peer: PEER })).toEqual({ ok: true, count: 0 });
    bench
      .expect((await bench.store.audit(10)).map(({ detail }) => detail))
      .toEqual(["0 rows", "1 rows", "0 rows", "1 rows"]);
  }),
  it("counts an event that held only an attempt's text", async (bench) => {
    await bench.accept(bench.event(1, { peer: null, externalReference: null }));
    const failure = { code: "handler_failed", message: "It failed.", durationMs: 5 };
    await bench.settle(bench.retry(await bench.claimOne(), 0, failure));
    await bench.settle(bench.complete(await bench.claimOne()));
    // Without a newer event, no time has passed for the inbox.
    await bench.clock.advance(8 * DAY);
    await bench.accept(bench.of("new", 1, { peer: null }));
    bench.expect(await bench.store.prune(POLICY)).toMatchObject({ bodies: 1 });
    const erase = () => bench.act({ kind: "erase", subject: { id: "m" } });
    bench.expect([await erase(), await erase()]).toMatchObject([{ count: 1 }, { count: 0 }]);
  }),
  it("erases a message, and discards its pending events (I5, I10)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(2), bench.event(4), bench.event(0, { lane: { order: null } }), bench.of("m2", 1));
    const finishedAt = bench.clock.now();
    bench.expect(await bench.act({ kind: "erase", subject: { id: "m" } })).toEqual({ ok: true, count: 4 });
    bench.expect((await bench.lane()).events).toMatchObject([
      { sequence: 1, state: "done", hasBody: false },
      { sequence: 2, state: "discarded", hasBody: false, finishedAt },
      { sequence: 4, state: "discarded", hasBody: false },
    ]);
    bench.expect(await bench.lane()).toMatchObject({ status: "idle", readyAt: null, gapSince: null });
    bench.expect((await bench.claim()).map((lease) => lease.key.name)).toEqual(["m2"]);
    bench.expect((await bench.store.stats()).counters.discarded).toBe(3);
  }),
  it("ends the wait of a blocked lane when its waiting events are erased: later ones wait for their own time (I6)", async (bench) => {
    await bench.handle(bench.event(1));
    await bench.accept(bench.event(3));
    await bench.act({ kind: "replay", event: (await bench.at(1)).id });
    await bench.settle(bench.dead(await bench.claimOne(), "block"));
    await bench.act({ kind: "erase", subject: { id: "m" } });
    await bench.clock.advance(89_000);
    await bench.accept(bench.event(5));
    const { id } = await bench.lane();
    await bench.act({ kind: "unblock", lane: id });
    const since = bench.clock.now();
    bench.expect(await bench.lane()).toMatchObject({ status: "gap", gapSince: since, readyAt: since + 90_000 });
  }),
  it("erases a lane in backoff and a blocked one, which stays blocked", async (bench) => {
    await bench.accept(bench.of("a", 1, { peer: PEER }), bench.of("b", 1, { peer: PEER }), bench.of("b", 2));
    const [a, b] = await bench.claimTwo();
    await bench.settle(bench.retry(a, 600_000), bench.dead(b, "block"));
    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 3 });
    bench.expect(await bench.lane("a")).toMatchObject({ status: "idle", readyAt: null });
    bench
      .expect(await bench.lane("b"))
      .toMatchObject({ status: "blocked", events: [{ state: "dead" }, { state: "discarded" }] });
  }),
  it("erases nothing at all while one of the events is being handled", async (bench) => {
    await bench.accept(bench.of("a", 1, { peer: PEER }), bench.of("b", 1, { peer: PEER }));
    const lease = await bench.claimOne({ limit: 1 });
    const request = { kind: "erase", subject: { peer: PEER } } as const;
    bench.expect(await bench.act(request)).toEqual({ ok: false, reason: "in_progress" });
    bench.expect((await bench.find()).map((event) => event.raw === null)).toEqual([false, false]);
    await bench.settle(bench.complete(lease));
    bench.expect(await bench.act(request)).toEqual({ ok: true, count: 2 });
  }),
  it("erases quarantined bodies that hold the number or the message id as text", async (bench) => {
    const bodies = [`{"to":"${PEER}"`, "{broken m-17", "{of no interest"].map((text) => bench.quarantine(text));
    await bench.step({ quarantines: bodies, accepts: [bench.event(1)] });
    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 1 });
    bench.expect(await bench.act({ kind: "erase", subject: { id: "m-17" } })).toEqual({ ok: true, count: 1 });
    const items = await bench.quarantined({ limit: 10 });
    bench.expect(items.toReversed().map((row) => [row.state, row.raw === null])).toEqual([
      ["discarded", true],
      ["discarded", true],
      ["held", false],
    ]);
    const { gauges } = await bench.store.stats();
    bench.expect(gauges).toMatchObject({ quarantined: 1, quarantinedBytes: "{of no interest".length });
  }),
  it("erases the body of a replayed row, which still names its event (I8)", async (bench) => {
    const { event } = await replayFromQuarantine(bench, `{"to":"${PEER}"`);
    // The message has another number: only the quarantined body names this one.
    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 1 });
    const items = await bench.quarantined({ limit: 10 });
    bench.expect(items).toMatchObject([{ state: "replayed", replayedAs: event, raw: null }]);
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ quarantined: 0, quarantinedBytes: 0 });
  }),
  it("leaves nothing of a quarantined body that is replayed meanwhile (I10)", async (bench) => {
    await bench.handle(bench.of("other", 1));
    for (let rounds = 0; rounds < 8; rounds++) {
      const raw = bytes(`{"to":"${PEER}","round":${rounds}}`);
      await bench.step({ quarantines: [bench.quarantine("", { raw })] });
      const { id } = bench.only(await bench.quarantined({ limit: 1 }));
      const erasing = bench.act({ kind: "erase", subject: { peer: PEER } });
      // A little later in each round, so that one round falls between the steps of a store that erases in several.
      for (let round = 0; round < rounds; round++) await setImmediate();
      const event = bench.of(`m${rounds}`, 1, { peer: PEER, raw });
      const replayed = await bench.act({ kind: "replay_quarantined", quarantine: id, event });
      bench.expect(await erasing).toMatchObject({ ok: true });
      const row = bench.only(await bench.quarantined({ limit: 1 }));
      bench.expect([row.state, row.raw]).toEqual([replayed.ok ? "replayed" : "discarded", null]);
      bench.expect(await bench.find({ peer: PEER })).toEqual([]);
      bench.expect((await bench.find({ lane: `m${rounds}` })).some((one) => one.raw !== null)).toBe(false);
    }
    bench.expect((await bench.store.stats()).gauges).toMatchObject({ pending: 0, quarantined: 0 });
  }),
  it("erases events of unknown types whose bodies name the number or the message id (I10)", async (bench) => {
    await bench.accept(
      unlanedEvent(bench, { data: { from: PEER } }),
      unlanedEvent(bench, { data: { to: `${PEER}2` } }),
      unlanedEvent(bench, { data: { messageId: "msg_1" } }),
      unlanedEvent(bench, { data: { messageId: "msg_10" } }),
      unlanedEvent(bench, '{"data":{"to":"\\u002b15550001"}}'),
      // Its sequence is known, so it is in its message's lane, but the lane does not name the number.
      bench.of("read", 5, { eventType: "message.read", raw: bytes(`{"data":{"to":"${PEER}"}}`) }),
    );
    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 3 });
    bench.expect(await kept(bench)).toEqual([false, true, true, true, false, false]);
    const request = { kind: "erase", subject: { id: "msg_1" } } as const;
    bench.expect(await bench.act(request)).toEqual({ ok: true, count: 1 });
    bench.expect(await kept(bench)).toEqual([false, true, false, true, false, false]);
    bench.expect((await bench.store.stats()).counters.discarded).toBe(4);
    bench.expect((await bench.claim()).length).toBe(2);
  }),
  it("does not erase an event whose body names the number while it is being handled", async (bench) => {
    await bench.accept(unlanedEvent(bench, { from: PEER }));
    const lease = await bench.claimOne();
    await bench.accept(bench.of("a", 1, { peer: PEER }));
    const request = { kind: "erase", subject: { peer: PEER } } as const;
    bench.expect(await bench.act(request)).toEqual({ ok: false, reason: "in_progress" });
    bench.expect((await bench.find()).map((event) => event.raw === null)).toEqual([false, false]);
    await bench.settle(bench.complete(lease));
    bench.expect(await bench.act(request)).toEqual({ ok: true, count: 2 });
  }),
  it("does not mistake a longer message id in a quarantined body, JSON or not", async (bench) => {
    const bodies = ['{"id":"msg_10"}', '["msg_1"]', '["msg\\u005f1"]', "{msg_10", "{msg_1,"];
    await bench.step({ quarantines: bodies.map((body) => bench.quarantine(body)) });
    const request = { kind: "erase", subject: { id: "msg_1" } } as const;
    bench.expect(await bench.act(request)).toEqual({ ok: true, count: 3 });
    const items = await bench.quarantined({ limit: 10 });
    bench.expect(items.toReversed().map((row) => row.raw === null)).toEqual([false, true, true, false, true]);
    bench.expect((await bench.store.stats()).gauges.quarantined).toBe(2);
  }),
  it("erases a number from many lanes, with one audit row", async (bench) => {
    const ids = Array.from({ length: 700 }, (_, index) => `m${index}`);
    await bench.accept(...ids.map((id) => bench.of(id, 1, { peer: PEER })));
    await bench.accept(bench.of("other", 1, { peer: "+15550002" }), unlanedEvent(bench, { from: PEER }));
    bench.expect(await bench.act({ kind: "erase", subject: { peer: PEER } })).toEqual({ ok: true, count: 701 });
    bench.expect((await bench.find({ states: ["pending"] })).length).toBe(1);
    bench.expect(await bench.store.audit(10)).toMatchObject([{ act: "erase", detail: "701 rows" }]);
    bench.expect((await bench.store.stats()).gauges.pending).toBe(1);
  }),
];
