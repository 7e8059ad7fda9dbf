/** `inbox.exportSubject()` beside what the store contract shows of it. */
import { describe, expect, it, onTestFinished } from "vitest";
import type { InboxStore, SubjectRecord, TransferredEvent, TransferredLane } from "../../src/index.ts";
import { exportSubject, type SubjectStore } from "../../src/receiver/operator.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { Bench as StoreBench } from "../contracts/store-bench.ts";
import { failureOf } from "../support/failure-of.ts";
import { memoryBench } from "./bench.ts";
import { outbound } from "./events.ts";

const PEER = "+15550100002";
const OTHER = "+15550100003";

async function all(records: AsyncIterable<SubjectRecord>): Promise<SubjectRecord[]> {
  const told: SubjectRecord[] = [];
  for await (const record of records) told.push(record);
  return told;
}

describe("inbox.exportSubject()", () => {
  it("opens the inbox by itself, and tells what erase() then counts", async () => {
    const { receiver, deliver } = memoryBench({ ack: "handled" });
    await receiver.onAny(() => {}).start();
    await deliver(outbound("queued"));
    await deliver(outbound("sent", { messageId: "msg_2", to: "+15550100003" }));
    const told = await all(receiver.inbox.exportSubject({ peer: PEER }));
    expect(told).toMatchObject([{ kind: "event", lane: "msg_1", peer: PEER, body: { text: outbound("queued") } }]);
    expect(await receiver.inbox.erase({ peer: PEER })).toMatchObject({ ok: true, count: told.length });
  });

  it("refuses a subject that names nobody", async () => {
    const { inbox } = memoryBench().receiver;
    for (const subject of [{}, { peer: "+1" }, { phone: PEER }, { peer: PEER, id: "msg_1" }]) {
      const failure = await failureOf(all(inbox.exportSubject(subject as never)));
      expect(failure).toMatchObject({ code: "invalid_option" });
    }
  });
});

/** An open store, and short words for what happens in it. */
async function openStore(): Promise<StoreBench> {
  const bench = new StoreBench({ store: memoryStore({ volatile: true }), dispose: async () => {} }, expect);
  await bench.open();
  return bench;
}

/** The first events of messages `msg_1` and on, one after the other. Returns their names. */
async function acceptFirst(bench: StoreBench, count: number): Promise<string> {
  const ids = Array.from({ length: count }, (_, index) => `msg_${index + 1}`);
  for (const id of ids) await bench.accept(bench.of(id, 1, { peer: PEER }));
  return ids.map((id) => `${id}/1`).join(" ");
}

/** Another store with the same lanes, each changed by hand: what pruning, erasing and older versions can leave. */
async function storeWith(bench: StoreBench, change: (lane: TransferredLane) => TransferredLane): Promise<InboxStore> {
  const lanes = (await bench.store.export(0, 1_000)).map(change);
  const quarantined = await bench.quarantined({ limit: 1_000 });
  const { store } = await openStore();
  await store.import({ source: "test", lanes, quarantined, audit: [], totals: null });
  // The memory store keeps no conflicting body without a body; others may.
  return { ...store, export: async (after, limit) => lanes.filter(({ id }) => id > after).slice(0, limit) };
}

/** `msg_1/2` for sequence 2 of a message, `q4` for a quarantined body. */
function namesOf(records: readonly SubjectRecord[]): string {
  const names = records.map((told) =>
    told.kind === "event" ? `${told.lane ?? told.ownId}/${told.sequence}` : `q${told.id}`,
  );
  return names.join(" ");
}

describe("exportSubject(): what it tells", () => {
  it("tells of an event everything that is kept of it and of its message, and nothing of how the inbox works", async () => {
    const bench = await openStore();
    const raw = Buffer.from(`{"to":"${PEER}"}`);
    const naming = { peer: PEER, externalReference: "order 7" };
    await bench.accept(bench.event(1, { ...naming, raw, trace: "00-aa-bb-01", occurredAt: 1, signedAt: 2 }));
    const acceptedAt = bench.clock.now();
    const [told] = await all(exportSubject(bench.store, { peer: PEER }));
    expect(told).toStrictEqual({
      ...{ kind: "event", source: "service", tenant: "client", lane: "m", order: "sequence" },
      ...{ id: 1, ownId: null, sequence: 1 },
      ...{ eventType: "message.sent", state: "pending", outcome: null, late: false, forced: false },
      ...{ occurredAt: 1, signedAt: 2, acceptedAt, startedAt: null, finishedAt: null, attempts: 0, duplicates: 0 },
      ...{ errorCode: null, error: null, ...naming, failedAttempts: [] },
      ...{ body: { text: raw.toString() }, conflict: null },
    });
  });

  it("tells with each event its own failed attempts", async () => {
    const bench = await openStore();
    await bench.accept(bench.event(1, { peer: PEER }), bench.event(2, { peer: PEER }), bench.event(3, { peer: PEER }));
    for (const message of ["first", "second"]) {
      await bench.settle(bench.dead(await bench.claimOne(), "continue", { code: "failed", message, durationMs: 5 }));
    }
    const told = await all(exportSubject(bench.store, { id: "m" }));
    const attempts = told.map((record) => record.kind === "event" && record.failedAttempts);
    const failed = { attempt: 1, at: bench.clock.now(), durationMs: 5, errorCode: "failed" };
    expect(attempts).toStrictEqual([[{ ...failed, error: "first" }], [{ ...failed, error: "second" }], []]);
  });

  it("tells of a quarantined body that names the subject when it came, why it is kept, and what it says", async () => {
    const bench = await openStore();
    const texts = [`{"to":"${PEER}"`, `{"to":"${OTHER}"`, "{", `{"from":"${PEER}"`];
    const sent = { signedAt: 2, trace: "00-aa-bb-01" };
    await bench.step({ quarantines: texts.map((text) => bench.quarantine(text, sent)) });
    const acceptedAt = bench.clock.now();
    const facts = { kind: "quarantined", reason: "invalid_json", state: "held", signedAt: 2, acceptedAt };
    expect(await all(exportSubject(bench.store, { peer: PEER }))).toStrictEqual([
      { ...facts, id: 4, body: { text: texts[3] } },
      { ...facts, id: 1, body: { text: texts[0] } },
    ]);
    await bench.act({ kind: "erase", subject: { peer: PEER } });
    expect(await all(exportSubject(bench.store, { peer: PEER }))).toEqual([]);
    expect(namesOf(await all(exportSubject(bench.store, { peer: OTHER })))).toBe("q2");
  });

  it("tells the headers that are kept beside a quarantined body", async () => {
    const bench = await openStore();
    await bench.step({ quarantines: [bench.quarantine(`{"to":"${PEER}"`, { head: '{"x-id":"1"}' })] });
    expect(await all(exportSubject(bench.store, { peer: PEER }))).toMatchObject([{ headers: { "x-id": "1" } }]);
  });
});

describe("exportSubject(): what is left of an event", () => {
  const nothing = { raw: null, error: null, errorCode: null, conflicting: null } as const;
  const conflicting = { digest: Buffer.alloc(32), signedAt: 1, at: 2, raw: Buffer.from("{}") };
  const failing = (eventId: number, ...errors: string[]) => ({
    attempts: errors.map((error) => ({ eventId, attempt: 1, at: 3, durationMs: 4, errorCode: "failed", error })),
  });

  // Of message `m` with the sequences 1 and 2: its lane and its first event are changed.
  it.each<[string, Partial<TransferredLane>, Partial<TransferredEvent>, string]>([
    ["nothing but what identifies it", {}, {}, ""],
    ["the number of its message", { peer: PEER }, {}, "m/1 m/2"],
    ["the reference of its message", { externalReference: "" }, {}, "m/1 m/2"],
    ["its body", {}, { raw: Buffer.from("{}") }, "m/1"],
    ["an empty body", {}, { raw: new Uint8Array() }, "m/1"],
    ["its error", {}, { error: "No route." }, "m/1"],
    ["a code of an error, which tells nothing of anybody", {}, { errorCode: "failed" }, ""],
    ["what another delivery of it said", {}, { conflicting }, "m/1"],
    ["the error of a failed attempt", failing(1, "No route."), {}, "m/1"],
    ["a failed attempt whose error was erased", failing(1, ""), {}, ""],
    ["the error of one of its failed attempts", failing(2, "", "No route."), {}, "m/2"],
  ])("is judged by %s", async (_, lane, first, told) => {
    const bench = await openStore();
    await bench.accept(bench.event(1), bench.event(2));
    const store = await storeWith(bench, ({ events, ...facts }) => {
      const changed = events.map((event, index) => ({ ...event, ...nothing, ...(index === 0 && first) }));
      return { ...facts, events: changed, ...lane };
    });
    expect(namesOf(await all(exportSubject(store, { id: "m" })))).toBe(told);
  });

  it("is told with null for the body that is gone", async () => {
    const bench = await openStore();
    await bench.accept(bench.event(1, { peer: PEER }));
    const gone = (event: TransferredEvent) => ({ ...event, ...nothing, conflicting });
    const store = await storeWith(bench, (lane) => ({ ...lane, events: lane.events.map(gone) }));
    const [told] = await all(exportSubject(store, { peer: PEER }));
    expect(told).toMatchObject({ body: null, conflict: { at: 2, body: { text: "{}" } } });
  });

  it("is found by any body of a lane that tells no number: also by what a later delivery said; others are left out", async () => {
    const bench = await openStore();
    await bench.accept(...["a", "b", "c", "d"].map((id) => bench.of(id, 0, { lane: { order: null } })));
    const raw = Buffer.from(`{"to":"${PEER}"}`);
    const left = new Map(Object.entries({ a: { conflicting: { ...conflicting, raw } }, b: { raw: null }, c: { raw } }));
    const store = await storeWith(bench, ({ events, ...lane }) => {
      return { ...lane, events: events.map((event) => ({ ...event, ...left.get(event.ownId ?? "") })) };
    });
    expect(namesOf(await all(exportSubject(store, { peer: PEER })))).toBe("a/0 c/0");
  });
});

describe("exportSubject(): how it reads", () => {
  /** `store`, which gives `size` rows a page at most. Noted: the turn of the event loop of each question, and what it exports. */
  function watched(store: SubjectStore, size = 1_000) {
    const turns: number[] = [];
    const exports: string[] = [];
    const loop = { turn: 0, next: setImmediate(turned) };
    function turned() {
      loop.turn++;
      loop.next = setImmediate(turned);
    }
    onTestFinished(() => clearImmediate(loop.next));
    // The contract: a limit of 1 to 1,000, and `after` only where a page came before.
    const noted = <Q extends { limit: number; after?: number }>(query: Q): Q => {
      expect(query.limit >= 1 && query.limit <= 1_000).toBe(true);
      if ("after" in query) expect(query.after).toBeGreaterThan(0);
      turns.push(loop.turn);
      return { ...query, limit: Math.min(query.limit, size) };
    };
    const small: SubjectStore = {
      find: (query) => store.find(noted(query)),
      findLanes: (query) => store.findLanes(noted(query)),
      quarantined: (id) => store.quarantined(id),
      findQuarantined: (query) => store.findQuarantined(noted(query)),
      export(after, limit) {
        turns.push(loop.turn);
        exports.push(`${limit} after ${after}`);
        return store.export(after, limit);
      },
    };
    return { small, turns, exports };
  }

  it("tells messages in the order in which they came, quarantined bodies last, whatever the size of a page", async () => {
    const bench = await openStore();
    const names = await acceptFirst(bench, 12);
    await bench.step({ quarantines: [`{1 ${PEER}`, `{2 ${PEER}`].map((text) => bench.quarantine(text)) });
    for (const size of [1, 5, 1_000]) {
      const told = await all(exportSubject(watched(bench.store, size).small, { peer: PEER }));
      expect(namesOf(told)).toBe(`${names} q2 q1`);
    }
  });

  it("gives the event loop a turn after each page", async () => {
    const bench = await openStore();
    await acceptFirst(bench, 3);
    await bench.step({ quarantines: ["{1", "{2"].map((text) => bench.quarantine(text)) });
    const far = await storeWith(bench, (lane) => ({ ...lane, id: lane.id * 1_000 }));
    for (const subject of [{ peer: PEER }, { id: "msg_1" }]) {
      const { small, turns } = watched(far, 1);
      await all(exportSubject(small, subject));
      expect(turns.length).toBeGreaterThanOrEqual(5);
      expect(new Set(turns).size).toBe(turns.length);
    }
  });

  it("reads no message of anybody else", async () => {
    const bench = await openStore();
    for (const [index, peer] of [OTHER, PEER, OTHER].entries())
      await bench.accept(bench.of(`msg_${index}`, 1, { peer }));
    for (const subject of [{ peer: PEER }, { id: "msg_1" }]) {
      const { small, exports } = watched(bench.store);
      expect(namesOf(await all(exportSubject(small, subject)))).toBe("msg_1/1");
      expect(exports).toEqual(["1 after 1"]);
    }
  });

  it.each([
    ["near each other at once", [1, 2, 250], ["250 after 0"]],
    ["further from each other one by one", [1, 251, 501], ["1 after 0", "1 after 250", "1 after 500"]],
    ["that begin late from there on", [9_000, 9_010, 9_249], ["250 after 8999"]],
    ["in stretches of 250", [7, 100, 256, 257, 300], ["250 after 6", "44 after 256"]],
  ])("reads messages %s", async (_, ids, asked) => {
    const bench = await openStore();
    const names = await acceptFirst(bench, ids.length);
    const { small, exports } = watched(await storeWith(bench, (lane) => ({ ...lane, id: ids[lane.id - 1] ?? 0 })));
    expect(namesOf(await all(exportSubject(small, { peer: PEER })))).toBe(names);
    expect(exports).toEqual(asked);
  });
});
