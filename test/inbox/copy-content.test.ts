import { describe, expect, it } from "vitest";
import { ContentReader, quarantinePages } from "../../src/inbox/copy.ts";
import type {
  AttemptRecord,
  AuditRecord,
  ConflictRecord,
  GapRecord,
  QuarantineRecord,
  TransferredEvent,
  TransferredLane,
} from "../../src/inbox/record.ts";
import { openBench, quarantine } from "./bench.ts";

/** What an inbox holds, and the same once more with every fact another. */
const CONFLICTS: readonly [ConflictRecord, ConflictRecord] = [
  { digest: Buffer.from("one"), signedAt: 1, at: 2, raw: Buffer.from('"one"') },
  { digest: Buffer.from("two"), signedAt: 3, at: 4, raw: Buffer.from('"two"') },
];
const EVENTS: readonly [TransferredEvent, TransferredEvent] = [
  {
    ...{ id: 1, sequence: 2, eventType: "message.sent", state: "done", outcome: "handled", late: false, forced: false },
    ...{
      occurredAt: 3,
      signedAt: 4,
      acceptedAt: 5,
      startedAt: 6,
      finishedAt: 7,
      attempts: 8,
      duplicates: 9,
      untimed: false,
      identity: null,
    },
    ...{ conflict: false, errorCode: "ECONNRESET", error: "hung up", trace: "00-a-b-01", gapWaitMs: 10 },
    ...{ digest: Buffer.from("sent"), raw: Buffer.from('"sent"'), head: null, conflicting: CONFLICTS[0] },
  },
  {
    ...{ id: 101, sequence: 102, eventType: "message.failed", state: "dead", outcome: null, late: true, forced: true },
    ...{ occurredAt: 103, signedAt: 104, acceptedAt: 105, startedAt: null, finishedAt: 107, attempts: 108 },
    ...{
      duplicates: 109,
      untimed: true,
      identity: "evt_1",
      conflict: true,
      errorCode: "permanent_failure",
      error: "no",
      trace: null,
      gapWaitMs: 110,
    },
    ...{ digest: Buffer.from("failed"), raw: Buffer.from('"failed"'), head: '{"a":"b"}', conflicting: null },
  },
];
const GAPS: readonly [GapRecord, GapRecord] = [
  { from: 1, to: 2, skippedAt: 3, filledAt: null },
  { from: 4, to: 5, skippedAt: 6, filledAt: 7 },
];
const ATTEMPTS: readonly [AttemptRecord, AttemptRecord] = [
  { eventId: 1, attempt: 1, at: 2, durationMs: 3, errorCode: "ECONNRESET", error: "hung up" },
  { eventId: 2, attempt: 4, at: 5, durationMs: 6, errorCode: "TypeError", error: "not a function" },
];
const QUARANTINED: readonly [QuarantineRecord, QuarantineRecord] = [
  {
    ...{
      id: 1,
      reason: "invalid_json",
      slot: "current",
      signer: "s",
      scope: "any",
      state: "held",
      replayedAs: null,
      signedAt: 2,
    },
    ...{ acceptedAt: 3, untimed: false, trace: null, digest: Buffer.from("brace"), raw: Buffer.from("{"), head: null },
  },
  {
    ...{
      id: 4,
      reason: "invalid_event",
      slot: "next",
      signer: "s2",
      scope: "inbound",
      state: "replayed",
      replayedAs: 5,
      signedAt: 6,
    },
    ...{
      acceptedAt: 7,
      untimed: true,
      trace: "00-a-b-01",
      digest: Buffer.from("bracket"),
      raw: Buffer.from("["),
      head: '{"a":"b"}',
    },
  },
];
const AUDITS: readonly [AuditRecord, AuditRecord] = [
  { id: 1, at: 2, by: "ops", act: "replay", detail: "event 1" },
  { id: 3, at: 4, by: "cron", act: "discard", detail: "event 2" },
];
const LANE: TransferredLane = {
  ...{ id: 1, key: { apiClientId: "apc_7", tag: "outbound", messageId: "m" }, cursor: 2, status: "idle" },
  ...{ readyAt: null, gapSince: null, peer: null, externalReference: null },
  ...{ events: [EVENTS[0]], gaps: [GAPS[0]], attempts: [ATTEMPTS[0]] },
};

function digestOf(fill: (reader: ContentReader) => void): string {
  const reader = new ContentReader();
  fill(reader);
  return reader.digest();
}

const ofLane = (part: Partial<TransferredLane>) => digestOf((reader) => reader.addLane({ ...LANE, ...part }));

/** A row per fact: its name, the first thing, and the first thing with this fact of the second. */
function facts<Thing extends object>([one, other]: readonly [Thing, Thing]): [fact: string, Thing, Thing][] {
  const names = Object.keys(one) as (keyof Thing & string)[];
  return names.map((name) => [name, one, { ...one, [name]: other[name] }]);
}

describe("ContentReader", () => {
  it("counts what there is of each kind, and bodies and conflicts only where they were kept", () => {
    const reader = new ContentReader();
    const [done, dead] = EVENTS;
    reader.addLane({ ...LANE, events: [done, { ...dead, raw: null }], gaps: GAPS, attempts: ATTEMPTS });
    reader.addLane({ ...LANE, events: [dead], gaps: [], attempts: [] });
    for (const row of QUARANTINED) reader.addQuarantined(row);
    for (const row of AUDITS) reader.addAudit(row);
    expect(reader.content).toEqual({
      ...{ lanes: 2, events: 3, bodies: 2, gaps: 2, attempts: 2, conflicts: 1, quarantined: 2, audit: 2 },
      ...{ pending: 0, done: 1, dead: 2, late: 0, discarded: 0 },
    });
  });

  it("gives one digest for the same content", () => {
    expect(ofLane({})).toBe(ofLane({}));
  });

  it.each(facts(EVENTS))("tells two events apart by %s", (_fact, one, other) => {
    expect(ofLane({ events: [one] })).not.toBe(ofLane({ events: [other] }));
  });

  it.each(facts(CONFLICTS))("tells two conflicting bodies apart by %s", (_fact, one, other) => {
    const of = (conflicting: ConflictRecord) => ofLane({ events: [{ ...EVENTS[0], conflicting }] });
    expect(of(one)).not.toBe(of(other));
  });

  it.each(facts(GAPS))("tells two gaps apart by %s", (_fact, one, other) => {
    expect(ofLane({ gaps: [one] })).not.toBe(ofLane({ gaps: [other] }));
  });

  it.each(facts(ATTEMPTS))("tells two attempts apart by %s", (_fact, one, other) => {
    expect(ofLane({ attempts: [one] })).not.toBe(ofLane({ attempts: [other] }));
  });

  it.each(facts(QUARANTINED))("tells two quarantined bodies apart by %s", (_fact, one, other) => {
    const of = (row: QuarantineRecord) => digestOf((reader) => reader.addQuarantined(row));
    expect(of(one)).not.toBe(of(other));
  });

  it.each(facts(AUDITS))("tells two audit rows apart by %s", (_fact, one, other) => {
    const of = (row: AuditRecord) => digestOf((reader) => reader.addAudit(row));
    expect(of(one)).not.toBe(of(other));
  });

  it("takes a text for the one that a database without NUL or halves of surrogate pairs gives back", () => {
    const of = (error: string) => ofLane({ events: [{ ...EVENTS[0], error }] });
    expect(of("no\0answer\0")).toBe(of("no\ufffdanswer\ufffd"));
    expect(of("half \ud83d of it")).toBe(of("half \ufffd of it"));
    expect(of("whole 😀")).not.toBe(of("whole \ufffd"));
  });
});

describe("quarantinePages()", () => {
  it("gives each row once, a hundred a page", async () => {
    const bench = await openBench();
    await Promise.all(Array.from({ length: 201 }, (_, index) => quarantine(bench, `{${index}`)));
    const pages: (readonly QuarantineRecord[])[] = [];
    for await (const page of quarantinePages(bench.recorder.store)) {
      if (pages.push(page) > 3) break;
    }
    expect(pages.map((page) => page.length)).toEqual([100, 100, 1]);
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(201);
  });
});
