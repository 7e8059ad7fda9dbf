/** What whoever watches a receiver is told: ids, types, counts and codes; never a number, a text, a secret or an error's message. */
import type { EventNotice } from "./dispatch.ts";

/**
 * Watches a receiver: `receiver.instrument(…)`. Every method is optional, and none can change what happens: what it throws is
 * logged by its code and dropped.
 */
export interface Instrumentation {
  /** Asked before anything is made for it. Default: it listens. */
  isListening?(): boolean;
  /** A delivery came in; its observer hears how it was answered. */
  delivery?(): Observer<DeliveryReport> | undefined;
  /** An attempt of an event begins; its observer hears how it ended, once that is stored. */
  attempt?(info: AttemptInfo): Observer<AttemptReport> | undefined;
  /** A write transaction ended, well or not. */
  commit?(report: CommitReport): void;
}

/** Watches one delivery or one attempt. */
export interface Observer<Report> {
  /**
   * Must call `work` once, before it returns: so a context can be made current in it and in all that it awaits. Of an attempt
   * these are the calls of the handlers; not called when there are none. Work that was not called is done without it.
   */
  run?(work: () => void): void;
  /** Not called for an attempt whose handlers never end, or that the process does not outlive. */
  ended?(report: Report): void;
}

/**
 * - `accepted`, `duplicate`, `late`, `quarantined`, and with `ack: "handled"` also `handled` and `dead`: as the answer says.
 * - `conflict`: a duplicate that carried other content.
 * - `refused`: answered with 4xx.
 * - `failed`: answered with 5xx; after a 503 the service retries.
 */
export type DeliveryOutcome =
  | "accepted"
  | "duplicate"
  | "conflict"
  | "late"
  | "quarantined"
  | "handled"
  | "dead"
  | "refused"
  | "failed";

export interface DeliveryReport {
  readonly outcome: DeliveryOutcome;
  readonly status: number;
  /** Why it was refused, failed or quarantined, such as `signature_mismatch`; null otherwise. */
  readonly reason: string | null;
  /** The place of the secret that vouches for it: `current`, `previous`, `next`, or `unsigned`; null when none does. */
  readonly slot: string | null;
  /** Its event came below the cursor of its message: it goes to `onLate` only, or is recorded. */
  readonly late: boolean;
  readonly durationMs: number;
}

/** Names the event, and what is known as its attempt begins. */
export interface AttemptInfo extends EventNotice {
  /** 1 on the first hand-out. */
  readonly attempt: number;
  /** Its sequence was below the cursor when it arrived: it goes to `onLate`. */
  readonly late: boolean;
  /** An operator replayed it. */
  readonly replay: boolean;
  /** Sequences before it that were waited for in vain, both included; null when none. */
  readonly missing: { readonly from: number; readonly to: number } | null;
  /** The delivery's `traceparent`, if it had a strictly valid one. */
  readonly traceparent: string | null;
  /** Epoch milliseconds. */
  readonly acceptedAt: number;
}

/**
 * - `handled`, `unhandled`, `retry`, `dead`: as it is stored.
 * - `put_back`: it failed as a probe of a worker that paused itself, and its attempt does not count.
 * - `lost`: the lease had passed to another worker, or the process stopped before the end was stored.
 */
export type AttemptEnding = "handled" | "unhandled" | "retry" | "dead" | "put_back" | "lost";

export interface AttemptReport {
  readonly ending: AttemptEnding;
  /** The code of what a handler or an effect threw; null when none did. */
  readonly errorCode: string | null;
  /** How long the handlers took. */
  readonly durationMs: number;
}

export interface CommitReport {
  /** False: nothing of it was written. */
  readonly ok: boolean;
  readonly accepts: number;
  readonly quarantines: number;
  /** Ends of attempts. One whose effects still run is not counted yet. */
  readonly settles: number;
  /** Events it claimed. */
  readonly leases: number;
  /** Events it made dead letters because their attempts had been used up without an end. */
  readonly retired: number;
  readonly durationMs: number;
}
