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
/** `printf '["o","apc_1","msg_1",2,"message.sent"]' | openssl dgst -sha256` */
const IDENTITY = "62b68d4a8b1f38368f75d4ff0f4f3a651bfd4d934030cca0833d3db35c47b594";
/** `printf '["i","apc_1","msg_in_1"]' | openssl dgst -sha256` */
const INBOUND_IDENTITY = "955b5b5d8faf890f520071a72326d057debb2e040d82b80852cb1084b85398f4";
const BODY = Buffer.from(JSON.stringify({ messageId: "msg_1", to: PEER }));
/** `printf '["u","apc_1","%064d"]' 7 | openssl dgst -sha256` */
const UNLANED_IDENTITY = "648708eef9906bab4c43e9f97f390d70dfcb819622d0c650ccb0c3965bca9a28";
const UNLANED = { apiClientId: "apc_1", tag: "unlaned", messageId: "7".padStart(64, "0") } as const;
const key = { apiClientId: "apc_1", tag: "outbound", messageId: "msg_1" } as const;

const FACTS: Omit<EventSummary, "identity" | "untimed" | "laneId" | "lane" | "trace" | "digest" | "hasBody"> = {
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
    identity: null,
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
    expect(shape).toStrictEqual({ ...FACTS, ...key, lane: 3, identity: IDENTITY, hasBody: true });
    expectPlain(shape);
    expect(eventShape(event({ hasBody: false }), false).hasBody).toBe(false);
  });

  it("names an inbound event by its message alone (EVT-12)", () => {
    const inbound = { lane: { ...key, tag: "inbound", messageId: "msg_in_1" }, sequence: 0 } as const;
    const shape = eventShape(event({ ...inbound, eventType: "message.inbound" }), false);
    expect(shape).toMatchObject({ ...inbound.lane, lane: 3, identity: INBOUND_IDENTITY });
  });

  it("tells the digest of an unlaned event's body, and the identity made of it, only where bodies are revealed", () => {
    const other = event({ lane: UNLANED, sequence: 0, eventType: "contact.optout" });
    expect(eventShape(other, false)).toMatchObject({ ...UNLANED, messageId: "", identity: null });
    expect(eventShape(other, true)).toMatchObject({ ...UNLANED, identity: UNLANED_IDENTITY });
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
  const newest = { id: 7, eventType: SENT, sequence: 2, acceptedAt: 3, state: "done" } as const;
  const summary: LaneSummary = { ...LANE, ...naming, id: 3, key, newest };

  it("tells what a row of a list tells, with the number masked, also in the reference", () => {
    const shape = summaryShape(summary);
    const masked = { peer: "…02", externalReference: "order 7 of …02" };
    expect(shape).toStrictEqual({ ...LANE, ...key, ...masked, lane: 3, newest });
    expectPlain(shape);
    expect(summaryShape({ ...summary, key: UNLANED })).toMatchObject({ ...UNLANED, messageId: "" });
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
    expect(shape).toStrictEqual({ ...LANE, ...key, lane: 3, peer: "…02", externalReference: "order 7 of …02" });
    expectPlain(shape);
  });

  it("reveals the number and the reference, and the digest of a body that stands for an id", () => {
    expect(laneShape(lane({ key: UNLANED }), false)).toMatchObject({ ...UNLANED, messageId: "" });
    expect(laneShape(lane({ key: UNLANED }), true)).toMatchObject(UNLANED);
    expect(laneShape(lane(), true)).toStrictEqual({ ...LANE, ...key, ...naming, lane: 3 });
  });
});

describe("messageShape()", () => {
  const second = event({ id: 8, sequence: 5, hasBody: false });
  const two = lane({
    events: [event(), second],
    attempts: [attempt, { ...attempt, eventId: 8 }, { ...attempt, attempt: 2 }],
  });
  const told = { ...FACTS, ...key, lane: 3, identity: IDENTITY, hasBody: true };

  it("tells all of a message: itself, its events with their bodies, its gaps and failed attempts", () => {
    const shape = messageShape(lane(), BODIES, VIEW);
    expect(shape).toStrictEqual({
      ...{ ...LANE, ...key, lane: 3, peer: "…02", externalReference: "order 7 of …02" },
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
    expect(shape).toMatchObject({ lane: 3, messageId: "msg_1", events: [], gaps: [], attempts: [] });
  });
});

describe("quarantineShape()", () => {
  const facts: Omit<QuarantineRecord, "untimed" | "trace" | "digest" | "raw" | "head" | "signer"> = {
    ...{ id: 4, reason: "invalid_json", slot: "current", scope: "any", state: "replayed", replayedAs: 7 },
    ...{ signedAt: 2, acceptedAt: 3 },
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
