/** What the command line prints and the inspector shows of events, messages and quarantined bodies. */
import { describe, expect, it } from "vitest";
import type { EventSummary, LaneRecord, LaneSummary, QuarantineRecord } from "../../../src/inbox/record.ts";
import {
  bodyShape,
  eventShape,
  laneShape,
  messageShape,
  quarantineShape,
  summaryShape,
} from "../../../src/receiver/shown.ts";

const VIEW = { reveal: false, shows: ["messageId", "to"] };
const REVEALED = { reveal: true, shows: [] };
const PEER = "+15550100002";
const SENT = "message.sent";
/** `printf '["service","apc_1","msg_1",2,"message.sent"]' | openssl dgst -sha256` */
const IDENTITY = "2d50110bf5beb875f23c8316b93369bc2e04b9d33078f71cd8555408dc0649b4";
/** `printf '["service","apc_1","msg_in_1"]' | openssl dgst -sha256` */
const INBOUND_IDENTITY = "68eb67b2e691b8859e578093f0540f52f7eadfa6a5733f07160b2b5708932cc6";
const BODY = Buffer.from(JSON.stringify({ messageId: "msg_1", to: PEER }));
/** `printf '["service","apc_1","%064d"]' 7 | openssl dgst -sha256` */
const DIGEST_IDENTITY = "80281704b7a36551a9d8c552b6421c18c6f9b3bc411288c80ea34bcf5b6f98ef";
const DIGEST = "7".padStart(64, "0");
const owner = { source: "service", tenant: "apc_1" } as const;
const key = { ...owner, name: "msg_1", order: "sequence" } as const;
const ALONE = { ...owner, name: null, order: null } as const;
/** A lane that its source names by the digest of a body. */
const OF_DIGEST = { source: "code", tenant: null, name: DIGEST, order: "arrival" } as const;
/** As it is shown. */
const SHOWN_KEY = { ...owner, lane: "msg_1", order: "sequence", laneId: 3 } as const;

const FACTS: Omit<EventSummary, "ownId" | "untimed" | "laneId" | "lane" | "trace" | "digest" | "hasBody"> = {
  ...{ id: 7, sequence: 2, eventType: SENT, state: "done", outcome: "handled", late: false, forced: true },
  ...{ occurredAt: 1, signedAt: 2, acceptedAt: 3, startedAt: 4, finishedAt: 5, attempts: 1, duplicates: 2 },
  ...{ conflict: false, errorCode: "handler_failed", error: "No route to …02." },
};

function event(wish: Partial<EventSummary> = {}): EventSummary {
  return {
    ...FACTS,
    laneId: 3,
    lane: key,
    trace: "00-aa-bb-01",
    digest: Buffer.alloc(32, 1),
    hasBody: true,
    ownId: null,
    untimed: false,
    ...wish,
  };
}

const attempt = {
  eventId: 7,
  attempt: 1,
  at: 4,
  durationMs: 5,
  errorCode: "handler_failed",
  error: "No route to …02.",
};
const gap = { from: 3, to: 4, skippedAt: 9, filledAt: null };
const LANE = { cursor: 2, status: "idle", readyAt: null, gapSince: null, more: false } as const;
const BODIES = new Map([[7, { raw: BODY, head: null }]]);
const naming = { peer: PEER, externalReference: `order 7 of ${PEER}` };

function lane(wish: Partial<LaneRecord> = {}): LaneRecord {
  return { ...LANE, ...naming, id: 3, key, events: [event()], gaps: [gap], attempts: [attempt], ...wish };
}

/** Plain JSON of it is all of it. */
function expectPlain(shape: object): void {
  expect(JSON.parse(JSON.stringify(shape))).toStrictEqual(shape);
}

describe("eventShape()", () => {
  it("tells what is kept of an event and which message it is of, without its body, digest and trace", () => {
    const shape = eventShape(event(), false);
    expect(shape).toStrictEqual({ ...FACTS, ...SHOWN_KEY, ownId: null, identity: IDENTITY, hasBody: true });
    expectPlain(shape);
    expect(eventShape(event({ hasBody: false }), false).hasBody).toBe(false);
  });

  it("names an inbound event by its message alone (EVT-12)", () => {
    const inbound = { lane: ALONE, ownId: "msg_in_1", sequence: 0 } as const;
    const shape = eventShape(event({ ...inbound, eventType: "message.inbound" }), false);
    const place = { ...owner, lane: null, order: null, laneId: 3 };
    expect(shape).toMatchObject({ ...place, ownId: "msg_in_1", identity: INBOUND_IDENTITY });
  });

  it("shows an id that is the digest of a body, and the identity made of it, only where bodies are revealed", () => {
    const other = event({ lane: ALONE, ownId: DIGEST, sequence: 0, eventType: "contact.optout" });
    expect(eventShape(other, false)).toMatchObject({ ...owner, lane: null, ownId: null, identity: null });
    expect(eventShape(other, true)).toMatchObject({ ...owner, lane: null, ownId: DIGEST, identity: DIGEST_IDENTITY });
  });
});

describe("bodyShape()", () => {
  const unreadable = Uint8Array.of(0x7b, 0xff);

  it("masks a body unless it is to be revealed", () => {
    expect(bodyShape(BODY, VIEW)).toStrictEqual({ masked: { messageId: "msg_1", to: "…02" } });
    expect(bodyShape(BODY, REVEALED)).toStrictEqual({ text: BODY.toString() });
    expect([bodyShape(null, VIEW), bodyShape(null, REVEALED)]).toEqual([null, null]);
  });

  it("tells the size of what is no JSON, and reveals what is no text in base64", () => {
    expect(bodyShape(unreadable, VIEW)).toStrictEqual({ masked: "[2 bytes that are not JSON]" });
    expect(bodyShape(unreadable, REVEALED)).toStrictEqual({ base64: "e/8=" });
  });

  it.each([
    [[], { text: "" }],
    [[0x7b, 0x7d], { text: "{}" }],
    [[0xc3, 0xa9], { text: "é" }],
    [[0xff], { base64: "/w==" }],
    [[0x61, 0xc3], { base64: "YcM=" }],
  ])("reveals the bytes %j as %j", (bytes, body) => {
    expect(bodyShape(Uint8Array.from(bytes), REVEALED)).toStrictEqual(body);
  });

  it("reveals of a larger buffer only the part that is the body", () => {
    const larger = new TextEncoder().encode("before{}after");
    expect(bodyShape(larger.subarray(6, 8), REVEALED)).toStrictEqual({ text: "{}" });
    expect(bodyShape(Uint8Array.of(0xfe, 0xff, 0xfe).subarray(1, 2), REVEALED)).toStrictEqual({ base64: "/w==" });
  });
});

describe("summaryShape()", () => {
  const newest = { id: 7, ownId: null, eventType: SENT, sequence: 2, acceptedAt: 3, state: "done" } as const;
  const summary: LaneSummary = { ...LANE, ...naming, id: 3, key, newest };

  it("tells what a row of a list tells, with the number masked, also in the reference", () => {
    const shape = summaryShape(summary);
    const masked = { peer: "…02", externalReference: "order 7 of …02" };
    expect(shape).toStrictEqual({ ...LANE, ...SHOWN_KEY, ...masked, newest });
    expectPlain(shape);
    const { name: _name, ...shown } = OF_DIGEST;
    expect(summaryShape({ ...summary, key: OF_DIGEST })).toMatchObject({ ...shown, lane: null });
    const newestOf = (ownId: string) => summaryShape({ ...summary, key: ALONE, newest: { ...newest, ownId } }).newest;
    expect([newestOf(DIGEST), newestOf("msg_in_1")]).toEqual([newest, { ...newest, ownId: "msg_in_1" }]);
  });

  it("leaves null what a lane does not tell, and as it is what holds no number", () => {
    const silent = summaryShape({ ...summary, peer: null, externalReference: null });
    expect([silent.peer, silent.externalReference]).toEqual([null, null]);
    const short = summaryShape({ ...summary, peer: "", externalReference: "order-77" });
    expect([short.peer, short.externalReference]).toEqual(["", "order-77"]);
  });
});

describe("laneShape()", () => {
  it("tells of a message what it is, without its lease, events, gaps and attempts", () => {
    const shape = laneShape(lane(), false);
    expect(shape).toStrictEqual({ ...LANE, ...SHOWN_KEY, peer: "…02", externalReference: "order 7 of …02" });
    expectPlain(shape);
  });

  it("reveals the number and the reference, and the digest of a body that stands for an id", () => {
    const { name, ...shown } = OF_DIGEST;
    expect(laneShape(lane({ key: OF_DIGEST }), false)).toMatchObject({ ...shown, lane: null });
    expect(laneShape(lane({ key: OF_DIGEST }), true)).toMatchObject({ ...shown, lane: name });
    expect(laneShape(lane(), true)).toStrictEqual({ ...LANE, ...SHOWN_KEY, ...naming });
  });
});

describe("messageShape()", () => {
  const second = event({ id: 8, sequence: 5, hasBody: false });
  const two = lane({
    events: [event(), second],
    attempts: [attempt, { ...attempt, eventId: 8 }, { ...attempt, attempt: 2 }],
  });
  const told = { ...FACTS, ...SHOWN_KEY, ownId: null, identity: IDENTITY, hasBody: true };

  it("tells all of a message: itself, its events with their bodies, its gaps and failed attempts", () => {
    const shape = messageShape(lane(), BODIES, VIEW);
    expect(shape).toStrictEqual({
      ...{ ...LANE, ...SHOWN_KEY, peer: "…02", externalReference: "order 7 of …02" },
      events: [{ ...told, body: { masked: { messageId: "msg_1", to: "…02" } } }],
      ...{ gaps: [gap], attempts: [attempt] },
    });
    expectPlain(shape);
  });

  it("reveals the number, the reference and the bodies", () => {
    const shape = messageShape(two, BODIES, REVEALED);
    expect(shape).toMatchObject({ ...naming, events: [{ body: { text: BODY.toString() } }, { body: null }] });
  });

  it.each<[number | undefined, number[], string[]]>([
    [undefined, [7, 8], ["7 1", "8 1", "7 2"]],
    [7, [7], ["7 1", "7 2"]],
    [8, [8], ["8 1"]],
    [0, [], []],
  ])(
    "tells events and attempts in their order, of all or of event %s alone; the gaps are the message's",
    (only, ids, meant) => {
      const { events, attempts, gaps } = messageShape(two, BODIES, { ...VIEW, only });
      expect(events.map(({ id }) => id)).toEqual(ids);
      expect(attempts.map(({ eventId, attempt: number }) => `${eventId} ${number}`)).toEqual(meant);
      expect(gaps).toEqual([gap]);
    },
  );

  it("tells of a message of which nothing is left what it was", () => {
    const shape = messageShape(lane({ events: [], gaps: [], attempts: [] }), BODIES, VIEW);
    expect(shape).toMatchObject({ laneId: 3, lane: "msg_1", events: [], gaps: [], attempts: [] });
  });
});

describe("quarantineShape()", () => {
  const facts: Omit<QuarantineRecord, "untimed" | "trace" | "digest" | "raw" | "head" | "signer"> = {
    ...{ id: 4, reason: "invalid_json", slot: "current", source: "code", tenant: null, kinds: ["inbound"] },
    ...{ state: "replayed", replayedAs: 7, signedAt: 2, acceptedAt: 3 },
  };
  const kept = { ...facts, trace: "00-aa-bb-01", signer: "f00d", digest: Uint8Array.of(0, 0xab, 0x0f) };
  const row: QuarantineRecord = { ...kept, head: null, untimed: false, raw: Buffer.from(`{"to":"${PEER}"`) };

  it("tells what is kept of it and how large it is, and its digest in hex; not the body", () => {
    const shape = quarantineShape(row);
    expect(shape).toStrictEqual({ ...facts, digest: "00ab0f", hasBody: true, bytes: 20 });
    expectPlain(shape);
  });

  it("tells an empty body from one that is gone", () => {
    expect(quarantineShape({ ...row, raw: null })).toMatchObject({ hasBody: false, bytes: 0 });
    expect(quarantineShape({ ...row, raw: new Uint8Array() })).toMatchObject({ hasBody: true, bytes: 0 });
  });
});
