/** How a verdict becomes a settle: the policy of retries and dead letters, pure. */
import { RetryAfter } from "../errors.ts";
import type { Random } from "../internal/clock.ts";
import { backoffMs } from "./backoff.ts";
import { describeFailure } from "./failure.ts";
import type { OnDead } from "./record.ts";
import type { Verdict } from "./runner.ts";
import type { LeaseRef, Settle } from "./store.ts";

/** How a claim ended, for those who wait for it. `put_back`: released, or lost to another worker. */
export type Ending = "done" | "dead" | "retry" | "put_back";

export const ENDINGS = {
  complete: "done",
  retry: "retry",
  dead: "dead",
  release: "put_back",
} as const satisfies Record<Settle<unknown>["kind"], Ending>;

export interface SettlePolicy {
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  readonly random: Random;
}

/** What is known of the attempt beside its verdict. */
export interface Attempt {
  readonly number: number;
  readonly durationMs: number;
  /** The worker has paused itself, and this is a probe: when it fails, it goes back with its attempt after so long. */
  readonly probeDelayMs: number | null;
}

export function settleFor<Tx>(
  lease: LeaseRef,
  verdict: Verdict<Tx>,
  attempt: Attempt,
  policy: SettlePolicy,
): Settle<Tx> {
  if (verdict.kind === "complete") {
    return { kind: "complete", lease, outcome: verdict.outcome, effects: verdict.effects };
  }
  const failure = describeFailure(verdict.error, verdict.event, attempt.durationMs);
  const { onDead, maxAttempts, random } = policy;
  if (verdict.permanent) return { kind: "dead", lease, failure, onDead };
  if (attempt.probeDelayMs !== null) return { kind: "release", lease, delayMs: attempt.probeDelayMs };
  if (attempt.number >= maxAttempts) return { kind: "dead", lease, failure, onDead };
  const { error } = verdict;
  // Bounded where it was made; a store may hold no fraction of a millisecond.
  const delayMs = error instanceof RetryAfter ? Math.round(error.ms) : backoffMs(attempt.number, random);
  return { kind: "retry", lease, failure, delayMs };
}
