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
import { laneOf, openBench, quarantine } from "./bench.ts";

const CONFLICT: ConflictRecord = { digest: Buffer.from("one"), signedAt: 1, at: 2, raw: Buffer.from('"one"') };
const EVENT: TransferredEvent = {
  ...{ id: 1, sequence: 2, eventType: "message.sent", state: "done", outcome: "handled", late: false, forced: false },
  ...{ occurredAt: 3, signedAt: 4, acceptedAt: 5, startedAt: 6, finishedAt: 7, attempts: 8, duplicates: 9 },
  ...{ untimed: false, ownId: null, conflict: false, errorCode: "ECONNRESET", error: "hung up" },
  ...{ trace: "00-a-b-01", gapWaitMs: 10, digest: Buffer.from("sent"), raw: Buffer.from('"sent"'), head: null },
  conflicting: CONFLICT,
};
const GAP: GapRecord = { from: 1, to: 2, skippedAt: 3, filledAt: null };
const ATTEMPT: AttemptRecord = {
  ...{ eventId: 1, attempt: 1, at: 2, durationMs: 3, errorCode: "ECONNRESET", error: "hung up" },
};
const QUARANTINED: QuarantineRecord = {
  ...{ id: 1, reason: "invalid_json", slot: "current", signer: "s", source: "service", tenant: null },
  ...{ kinds: [], state: "held", replayedAs: null },
  ...{ signedAt: 2, acceptedAt: 3, untimed: false, trace: null, digest: Buffer.from("brace"), raw: Buffer.from("{") },
  head: null,
};
const AUDIT: AuditRecord = { id: 1, at: 2, by: "ops", act: "replay", detail: "event 1" };
const LANE: TransferredLane = {
  ...{ id: 1, key: laneOf("m"), cursor: 2, status: "idle" },
  ...{ readyAt: null, gapSince: null, peer: null, externalReference: null },
  ...{ events: [EVENT], gaps: [GAP], attempts: [ATTEMPT] },
};

function digestOf(fill: (reader: ContentReader) => void): string {
  const reader = new ContentReader();
  fill(reader);
  return reader.digest();
}

const ofLane = (part: Partial<TransferredLane>) => digestOf((reader) => reader.addLane({ ...LANE, ...part }));

/** Another value of the same kind, as far as a digest can tell. */
function changed(value: unknown): unknown {
  if (value === null || value instanceof Uint8Array) return Buffer.from("another");
  if (typeof value === "boolean") return !value;
  if (typeof value === "number") return value + 1;
  return typeof value === "string" ? `${value}2` : null;
}

/** A row per fact: its name, the digest of what has another one, and the digest of `one`. */
function facts<Thing extends object>(kind: string, one: Thing, digest: (thing: Thing) => string) {
  const others = Object.entries(one).map(([name, value]) => [name, { ...one, [name]: changed(value) }] as const);
  return others.map(([name, other]) => [`${kind}.${name}`, digest(other), digest(one)] as const);
}

describe("ContentReader", () => {
  it("counts what there is of each kind, and bodies and conflicts only where they were kept", () => {
    const reader = new ContentReader();
    const dead = { ...EVENT, state: "dead", conflicting: null } as const;
    reader.addLane({
      ...LANE,
      events: [EVENT, { ...dead, raw: null }],
      gaps: [GAP, GAP],
      attempts: [ATTEMPT, ATTEMPT],
    });
    reader.addLane({ ...LANE, events: [dead], gaps: [], attempts: [] });
    for (const _ of [1, 2]) reader.addQuarantined(QUARANTINED);
    for (const _ of [1, 2]) reader.addAudit(AUDIT);
    expect(reader.content).toEqual({
      ...{ lanes: 2, events: 3, bodies: 2, gaps: 2, attempts: 2, conflicts: 1, quarantined: 2, audit: 2 },
      ...{ pending: 0, done: 1, dead: 2, late: 0, discarded: 0 },
    });
  });

  it.each([
    ...facts("lane", LANE.key, (key) => ofLane({ key })),
    ...facts("event", EVENT, (event) => ofLane({ events: [event] })),
    ...facts("conflict", CONFLICT, (conflicting) => ofLane({ events: [{ ...EVENT, conflicting }] })),
    ...facts("gap", GAP, (gap) => ofLane({ gaps: [gap] })),
    ...facts("attempt", ATTEMPT, (attempt) => ofLane({ attempts: [attempt] })),
    ...facts("quarantined", QUARANTINED, (row) => digestOf((reader) => reader.addQuarantined(row))),
    ...facts("audit", AUDIT, (row) => digestOf((reader) => reader.addAudit(row))),
  ])("gives another digest for another %s", (_fact, other, one) => {
    expect(other).not.toBe(one);
  });

  it("gives one digest for the same content, also where a database gives a text back without NUL or halves of pairs", () => {
    expect(ofLane({})).toBe(ofLane({}));
    const of = (error: string) => ofLane({ events: [{ ...EVENT, error }] });
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
