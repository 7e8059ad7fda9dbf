import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Arming,
  arm,
  type Candidate,
  expectedSequence,
  isDue,
  type LanePosition,
  LONGEST_WAIT_MS,
  TOO_FAR_AHEAD_MS,
} from "../../src/inbox/gap.ts";
import { sized } from "../setup/form.ts";

const NOW = 1_760_000_000_000;
const MINUTE = 60_000;
const LAST_RETRY_MS = 85 * MINUTE;

const lane = (wish: Partial<LanePosition> = {}): LanePosition => ({
  ...{ order: "sequence", cursor: null, gapSince: null, firstSequence: 1, lastRetryMs: LAST_RETRY_MS },
  ...{ isSettled: () => false, heldSince: () => NOW },
  ...wish,
});
const event = (sequence: number, wish: Partial<Candidate> = {}): Candidate => ({
  ...{ sequence, forced: false, gapWaitMs: 90_000, occurredAt: NOW, acceptedAt: NOW, ...wish },
});

/** With the lane at cursor 2 and its head at 4, sequence 3 is missing. */
const behind2 = (wish: Partial<LanePosition> = {}) => lane({ cursor: 2, ...wish });
const missing = (from: number, to: number) => ({ status: "ready", missing: { from, to } });
const READY = { status: "ready", missing: null };
const GAP = { status: "gap" };

describe("arm()", () => {
  const armed = (position: LanePosition, head: Candidate | null) => expect(arm(position, head, null, NOW));

  it("is idle without a pending event, and takes a late one when there is nothing else (I5, RCV-7)", () => {
    armed(lane({ gapSince: NOW }), null).toEqual({ status: "idle", gapSince: null });
    const late = event(1);
    expect(arm(lane({ cursor: 3 }), null, late, NOW)).toEqual({ ...READY, head: late, gapSince: null });
  });

  it("begins at the first sequence that it is given, or at any, waits from there on, and never waits in an unordered lane", () => {
    armed(lane({ firstSequence: "any" }), event(7)).toMatchObject(READY);
    armed(lane({ firstSequence: "any", cursor: 7 }), event(9)).toMatchObject(GAP);
    armed(lane({ firstSequence: 0 }), event(1)).toMatchObject(GAP);
    armed(lane({ firstSequence: 3 }), event(3)).toMatchObject(READY);
    armed(lane({ order: null }), event(9)).toMatchObject(READY);
  });

  it("starts the wait now when the gap is new, and records the whole stretch it gives up (I6, RCV-7)", () => {
    armed(lane({ cursor: 1 }), event(4)).toMatchObject({ ...GAP, dueAt: NOW + 90_000, gapSince: NOW });
    armed(lane(), event(4, { gapWaitMs: 0 })).toMatchObject({ ...missing(1, 3), gapSince: NOW });
  });

  it.each([
    [89_999, { ...GAP, dueAt: NOW + 1 }],
    [90_000, missing(3, 3)],
    [90_001, missing(3, 3)],
  ])("after %d ms of a wait of 90 s is %o (I6)", (waited, expected) => {
    const gapSince = NOW - waited;
    expect(arm(behind2({ gapSince }), event(4), null, NOW)).toMatchObject({ ...expected, gapSince });
  });

  it.each([
    [-1, "gap"],
    [0, "ready"],
    [1, "ready"],
  ])("%d ms from the last retry of what is missing is %s, whatever the wait (I6)", (after, status) => {
    const times = { occurredAt: NOW - LAST_RETRY_MS - after, acceptedAt: NOW - MINUTE };
    const head = event(4, { gapWaitMs: LONGEST_WAIT_MS, ...times });
    expect(arm(behind2({ gapSince: NOW - MINUTE }), head, null, NOW)).toMatchObject({ status });
  });

  it.each([
    [0, NOW],
    [1, NOW + 30 * MINUTE],
  ])("waits its own time when the head itself was accepted %d ms past the last retry", (past, dueAt) => {
    const head = event(4, { gapWaitMs: 30 * MINUTE, occurredAt: NOW - LAST_RETRY_MS, acceptedAt: NOW + past });
    expect(arm(behind2({ gapSince: NOW }), head, null, NOW - 1)).toMatchObject({ ...GAP, dueAt });
  });

  it.each([
    [0, "gap"],
    [1, "ready"],
  ])("%d ms beyond any wait, since the clock went back, is %s", (beyond, status) => {
    const gapSince = NOW + TOO_FAR_AHEAD_MS - 90_000 + beyond;
    expect(arm(behind2({ gapSince }), event(4, { occurredAt: NOW * 2 }), null, NOW)).toMatchObject({ status });
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
  lastRetryMs: fc.constantFrom(0, MINUTE, LAST_RETRY_MS, 2 * LONGEST_WAIT_MS),
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
      const lastRetry = head.occurredAt + position.lastRetryMs;
      const tooLate = now >= lastRetry && head.acceptedAt <= lastRetry;
      const clockWentBack =
        (position.gapSince ?? now) + head.gapWaitMs > now + TOO_FAR_AHEAD_MS || lastRetry > now + TOO_FAR_AHEAD_MS;
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
