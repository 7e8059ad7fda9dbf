import { describe, expect, it } from "vitest";
import { PermanentError, RetryAfter } from "../../src/errors.ts";
import { settleFor } from "../../src/inbox/completion.ts";
import { NOTHING_QUOTED } from "../../src/inbox/masking.ts";
import { failed, type Verdict } from "../../src/inbox/runner.ts";
import { laneOf } from "./bench.ts";

const lease = { lane: 1, token: 2, cursorBefore: null, event: 3, attempt: 1, key: laneOf("msg") };
const policy = { maxAttempts: 3, onDead: "block" as const, random: () => 0 };
const run = { durationMs: 5, probeDelayMs: null };
const verdict = (error: unknown): Verdict<never> => failed(error, NOTHING_QUOTED);

describe("settleFor()", () => {
  it.each([
    [1, "retry", 500],
    [2, "retry", 2_500],
    [3, "dead", undefined],
    [4, "dead", undefined],
  ])("after attempt %d of 3 is %s (I7)", (attempt, kind, delayMs) => {
    const settle = settleFor({ ...lease, attempt }, verdict(new Error("x")), run, policy);
    expect(settle).toMatchObject({
      kind,
      lease: { ...lease, attempt },
      failure: { code: "Error", message: "x", durationMs: 5 },
    });
    expect(settle).toMatchObject(kind === "dead" ? { onDead: "block" } : { delayMs });
  });

  it("waits as RetryAfter says, in whole milliseconds, but not beyond the last attempt", () => {
    const later = verdict(new RetryAfter(86_400_000));
    expect(settleFor(lease, later, run, policy)).toMatchObject({ kind: "retry", delayMs: 86_400_000 });
    expect(settleFor({ ...lease, attempt: 3 }, later, run, policy)).toMatchObject({ kind: "dead" });
    expect(settleFor(lease, verdict(new RetryAfter(10.6)), run, policy)).toMatchObject({ delayMs: 11 });
    expect(settleFor(lease, verdict(new RetryAfter(86_399_999.9)), run, policy)).toMatchObject({
      delayMs: 86_400_000,
    });
  });

  it("gives a failed probe back with its attempt, even its last; a PermanentError is final all the same", () => {
    const last = { ...lease, attempt: 3 };
    const probe = { ...run, probeDelayMs: 5_000 };
    expect(settleFor(last, verdict(new Error("x")), probe, policy)).toEqual({
      kind: "release",
      lease: last,
      delayMs: 5_000,
      ran: true,
    });
    expect(settleFor(last, verdict(new PermanentError("x")), probe, policy)).toMatchObject({ kind: "dead" });
  });
});
