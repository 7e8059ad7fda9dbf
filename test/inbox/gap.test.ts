import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Arming,
  arm,
  type Candidate,
  expectedSequence,
  gapSinceWithout,
  isDue,
  LAST_RETRY_MS,
  type LanePosition,
  LONGEST_WAIT_MS,
  TOO_FAR_AHEAD_MS,
} from "../../src/inbox/gap.ts";
import { sized } from "../setup/form.ts";

const NOW = 1_760_000_000_000;
const MINUTE = 60_000;

const lane = (wish: Partial<LanePosition> = {}): LanePosition => ({
  ...{
    order: "sequence",
    cursor: null,
    gapSince: null,
    firstSequence: 1,
    isSettled: () => false,
    heldSince: () => NOW,
  },
  ...wish,
});
const event = (sequence: number, wish: Partial<Candidate> = {}): Candidate => ({
  ...{ sequence, forced: false, gapWaitMs: 90_000, occurredAt: NOW, acceptedAt: NOW, ...wish },
});

describe("arm()", () => {
  it("is idle without a pending event (I5)", () => {
    expect(arm(lane({ gapSince: NOW }), null, null, NOW)).toEqual({ status: "idle", gapSince: null });
  });

  it("takes a late event when there is nothing else (RCV-7)", () => {
    const late = event(1);
    expect(arm(lane({ cursor: 3 }), null, late, NOW)).toEqual({
      ...{ status: "ready", head: late, missing: null, gapSince: null },
    });
  });

  it.each([
    ["the first, with nothing handed out", null, 1],
    ["sequence 0", null, 0],
    ["the next", 2, 3],
    ["an equal sequence", 3, 3],
    ["one below the cursor", 3, 2],
  ])("takes %s at once (I4)", (_, cursor, sequence) => {
    const head = event(sequence);
    expect(arm(lane({ cursor, gapSince: 5 }), head, null, NOW)).toEqual({
      ...{ status: "ready", head, missing: null, gapSince: null },
    });
  });

  it("takes any first arrival where the first sequence is any, and waits from there on", () => {
    expect(arm(lane({ firstSequence: "any" }), event(7), null, NOW)).toMatchObject({ status: "ready", missing: null });
    expect(arm(lane({ firstSequence: "any", cursor: 7 }), event(9), null, NOW)).toMatchObject({ status: "gap" });
  });

  it("begins at another first sequence when told so", () => {
    expect(arm(lane({ firstSequence: 0 }), event(1), null, NOW)).toMatchObject({ status: "gap" });
    expect(arm(lane({ firstSequence: 3 }), event(3), null, NOW)).toMatchObject({ status: "ready" });
  });

  it("never waits in an unordered lane", () => {
    expect(arm(lane({ order: null }), event(9), null, NOW)).toMatchObject({ status: "ready", missing: null });
  });

  it("takes a replay at once and keeps the wait behind it (I4)", () => {
    const head = event(2, { forced: true });
    expect(arm(lane({ cursor: 5, gapSince: NOW - 1 }), head, null, NOW)).toEqual({
      ...{ status: "ready", head, missing: null, gapSince: NOW - 1 },
    });
  });

  it.each([
    [89_999, "gap"],
    [90_000, "ready"],
    [90_001, "ready"],
  ])("after %d ms of a wait of 90 s is %s (I6)", (waited, status) => {
    const arming = arm(lane({ cursor: 2, gapSince: NOW - waited }), event(4), null, NOW);
    expect(arming).toMatchObject({ status, gapSince: NOW - waited });
    if (status === "gap") expect(arming).toMatchObject({ dueAt: NOW - waited + 90_000 });
    else expect(arming).toMatchObject({ missing: { from: 3, to: 3 } });
  });

  it("starts the wait now when the gap is new", () => {
    expect(arm(lane({ cursor: 1 }), event(4), null, NOW)).toMatchObject({ dueAt: NOW + 90_000, gapSince: NOW });
  });

  it("records the whole stretch it gives up (I6, RCV-7)", () => {
    expect(arm(lane(), event(4, { gapWaitMs: 0 }), null, NOW)).toMatchObject({
      ...{ status: "ready", missing: { from: 1, to: 3 }, gapSince: NOW },
    });
  });

  it.each([
    [-1, "gap"],
    [0, "ready"],
    [1, "ready"],
  ])("%d ms from the last retry of what is missing is %s, whatever the wait (I6)", (after, status) => {
    const head = event(4, {
      gapWaitMs: LONGEST_WAIT_MS,
      occurredAt: NOW - LAST_RETRY_MS - after,
      acceptedAt: NOW - MINUTE,
    });
    expect(arm(lane({ cursor: 2, gapSince: NOW - MINUTE }), head, null, NOW)).toMatchObject({ status });
  });

  it.each([
    [0, NOW],
    [1, NOW + 30 * MINUTE],
  ])("waits its own time when the head itself was accepted %d ms past the last retry", (past, dueAt) => {
    const head = event(4, { gapWaitMs: 30 * MINUTE, occurredAt: NOW - LAST_RETRY_MS, acceptedAt: NOW + past });
    const arming = arm(lane({ cursor: 2, gapSince: NOW }), head, null, NOW - 1);
    expect(arming).toMatchObject({ status: "gap", dueAt });
  });

  it("takes a late event while the gap before the head is waited for, and keeps the wait (RCV-7)", () => {
    const late = event(1);
    expect(arm(lane({ cursor: 2, gapSince: NOW - 5 }), event(4), late, NOW)).toEqual({
      ...{ status: "ready", head: late, missing: null, gapSince: NOW - 5 },
    });
  });

  it("does not wait with a wait of 0, whenever the gap began: the clock may have been set back since", () => {
    const released = event(4, { gapWaitMs: 0 });
    const gapSince = NOW + MINUTE;
    const ready = { status: "ready", missing: { from: 3, to: 3 }, gapSince };
    expect(arm(lane({ cursor: 2, gapSince }), released, null, NOW)).toMatchObject(ready);
    expect(arm(lane({ cursor: 2, gapSince }), released, event(1), NOW)).toMatchObject(ready);
  });

  it("does not miss what was replayed or discarded, and misses from the first that never came", () => {
    const settled = (...sequences: number[]) => lane({ cursor: 1, isSettled: (one) => sequences.includes(one) });
    expect(arm(settled(2, 3), event(4), null, NOW)).toMatchObject({ status: "ready", missing: null, gapSince: null });
    const from3 = { from: 3, to: 4 };
    expect(arm(settled(2, 4), event(5, { gapWaitMs: 0 }), null, NOW)).toMatchObject({ missing: from3 });
    expect(arm(settled(3), event(4), null, NOW)).toMatchObject({ status: "gap" });
  });

  it("looks no further than the head, which may come after another type of its sequence", () => {
    const settled = lane({ cursor: 1, isSettled: (one) => one <= 5 });
    expect(arm(settled, event(4), null, NOW)).toMatchObject({ status: "ready", missing: null, gapSince: null });
  });

  it("takes the head before a late event once its gap is over, or without one", () => {
    const late = event(1);
    expect(arm(lane({ cursor: 2, gapSince: NOW - 90_000 }), event(4), late, NOW)).toMatchObject({ head: event(4) });
    expect(arm(lane({ cursor: 2 }), event(3), late, NOW)).toMatchObject({ head: event(3) });
  });

  it("gives a gap up when the clock went back further than any wait may be", () => {
    const gapSince = NOW + TOO_FAR_AHEAD_MS - 90_000;
    expect(arm(lane({ cursor: 2, gapSince }), event(4, { occurredAt: NOW * 2 }), null, NOW)).toMatchObject({
      status: "gap",
    });
    expect(
      arm(lane({ cursor: 2, gapSince: gapSince + 1 }), event(4, { occurredAt: NOW * 2 }), null, NOW),
    ).toMatchObject({ status: "ready" });
  });
});

describe("isDue()", () => {
  it.each([
    [NOW - 1, true],
    [NOW, true],
    [NOW + 1, false],
    [NOW + LONGEST_WAIT_MS + 60 * MINUTE, false],
    [NOW + LONGEST_WAIT_MS + 60 * MINUTE + 1, true],
  ])("is at %d %s", (readyAt, due) => {
    expect(isDue(readyAt, NOW)).toBe(due);
  });
});

describe("expectedSequence()", () => {
  it("is the one after the cursor, else the first, else any", () => {
    expect(expectedSequence({ cursor: 4, firstSequence: "any" })).toBe(5);
    expect(expectedSequence({ cursor: 0, firstSequence: 1 })).toBe(1);
    expect(expectedSequence({ cursor: null, firstSequence: 2 })).toBe(2);
    expect(expectedSequence({ cursor: null, firstSequence: "any" })).toBeNull();
  });
});

describe("gapSinceWithout()", () => {
  const waiting = (id: number, acceptedAt: number) => ({ id, acceptedAt });

  it("goes on waiting when another event than the lowest one goes, or when none is in its turn (I6)", () => {
    expect(gapSinceWithout(2, NOW, [waiting(1, NOW), waiting(2, NOW + 1)])).toBe(NOW);
    expect(gapSinceWithout(2, NOW, [])).toBe(NOW);
  });

  it("waits from when the next event came, or from the start of the gap if that is later (I6)", () => {
    expect(gapSinceWithout(1, NOW, [waiting(1, NOW), waiting(2, NOW + 1)])).toBe(NOW + 1);
    expect(gapSinceWithout(1, NOW, [waiting(1, NOW), waiting(2, NOW - 1)])).toBe(NOW);
  });

  it("waits no more once the last event in its turn goes", () => {
    expect(gapSinceWithout(1, NOW, [waiting(1, NOW)])).toBeNull();
  });

  it("begins no wait where there was none", () => {
    expect(gapSinceWithout(1, null, [waiting(1, NOW), waiting(2, NOW)])).toBeNull();
  });
});

const instant = fc.integer({ min: NOW - 3 * LONGEST_WAIT_MS, max: NOW + 3 * LONGEST_WAIT_MS });
const anyCandidate: fc.Arbitrary<Candidate> = fc.record({
  sequence: fc.integer({ min: 0, max: 12 }),
  forced: fc.boolean(),
  gapWaitMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: LONGEST_WAIT_MS })),
  occurredAt: instant,
  acceptedAt: instant,
});
const anyLate = anyCandidate.map((candidate) => ({ ...candidate, forced: false }));
const anyLane: fc.Arbitrary<LanePosition> = fc.record({
  order: fc.constantFrom<LanePosition["order"]>("sequence", "arrival", null),
  cursor: fc.option(fc.integer({ min: 0, max: 12 })),
  gapSince: fc.option(instant),
  firstSequence: fc.constantFrom<number | "any">(0, 1, 5, "any"),
  isSettled: fc.constant(() => false),
  heldSince: fc.constant(() => NOW),
});
const anyArming = [anyLane, fc.option(anyCandidate), fc.option(anyLate), instant] as const;

function forAll(
  check: (arming: Arming<Candidate>, ...of: [LanePosition, Candidate | null, Candidate | null, number]) => void,
) {
  fc.assert(
    fc.property(...anyArming, (position, head, late, now) => {
      check(arm(position, head, late, now), position, head, late, now);
    }),
    { numRuns: sized({ quick: 500, full: 5_000 }) },
  );
}

describe("arm() for any lane", () => {
  it("is idle exactly when nothing is pending (I5)", () => {
    forAll((arming, _lane, head, late) => {
      expect(arming.status === "idle").toBe(head === null && late === null);
    });
  });

  it("hands out a sequence above the expected one only with the gap before it recorded (I6)", () => {
    forAll((arming, position, head) => {
      if (arming.status !== "ready" || arming.head !== head || head.forced || position.order !== "sequence") return;
      const expected = expectedSequence(position);
      const skips = expected !== null && arming.head.sequence > expected;
      expect(arming.missing).toEqual(skips ? { from: expected, to: arming.head.sequence - 1 } : null);
    });
  });

  it("gives a gap up only after its own wait or the last retry (I6)", () => {
    forAll((arming, position, head, _late, now) => {
      if (arming.status !== "ready" || arming.missing === null || head === null) return;
      const waited = now - (position.gapSince ?? now);
      const tooLate = now >= head.occurredAt + LAST_RETRY_MS && head.acceptedAt <= head.occurredAt + LAST_RETRY_MS;
      const clockWentBack =
        (position.gapSince ?? now) + head.gapWaitMs > now + TOO_FAR_AHEAD_MS ||
        head.occurredAt + LAST_RETRY_MS > now + TOO_FAR_AHEAD_MS;
      expect(head.gapWaitMs === 0 || waited >= head.gapWaitMs || tooLate || clockWentBack).toBe(true);
    });
  });

  it("waits for a moment that lies ahead, and is ready then (I5, I6)", () => {
    forAll((arming, position, head, late) => {
      if (arming.status !== "gap") return;
      expect(late).toBeNull();
      const then = arm({ ...position, gapSince: arming.gapSince }, head, late, arming.dueAt);
      expect(then.status).toBe("ready");
      const before = arm({ ...position, gapSince: arming.gapSince }, head, late, arming.dueAt - 1);
      expect(before).toEqual(arming);
    });
  });

  it("says the same when asked again at the same moment", () => {
    forAll((arming, position, head, late, now) => {
      expect(arm({ ...position, gapSince: arming.gapSince }, head, late, now)).toEqual(arming);
    });
  });
});
