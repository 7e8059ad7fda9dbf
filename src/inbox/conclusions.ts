/** Tells what became of claims, once it is committed: to those who wait, to the application's hooks, and to the log. */
import type { WebhookEvent } from "../events/types.ts";
import type { Logger } from "../internal/logger.ts";
import type { EventNotice } from "./dispatch.ts";
import { failureCode } from "./failure.ts";
import type { AttemptReport } from "./instrumentation.ts";
import { attemptOf } from "./instruments.ts";
import type { EventId, EventRecord, LaneId } from "./record.ts";
import { readEvent, type Verdict } from "./runner.ts";
import { ENDINGS, type Ending } from "./settlement.ts";
import type { Lease, Settle, SettleResult } from "./store.ts";

export interface WorkerEvents {
  /** A claim ended, and its end is committed. */
  ended(event: EventId, ending: Ending): void;
  /** A lane begins to wait for a missing sequence. */
  waits(lane: LaneId): void;
  /** An event of a lane was claimed: it does not wait any more. */
  claimed(lane: LaneId): void;
  failed(notice: EventNotice, failure: AttemptFailure): void;
  deadLettered(notice: EventNotice, attempts: number, code: string, event: () => WebhookEvent | null): void;
}

/** A failed attempt: what was thrown, and the event that it was thrown for; null if its stored body cannot be read. */
export interface AttemptFailure {
  readonly attempt: number;
  readonly error: unknown;
  readonly event: WebhookEvent | null;
}

/** How a claim was to end. */
export interface Conclusion<Tx> {
  readonly lease: Lease;
  readonly verdict: Verdict<Tx>;
  readonly settle: Settle<Tx>;
  /** How long the handlers took. */
  readonly durationMs: number;
}

export class Conclusions {
  readonly #events: WorkerEvents;
  readonly #logger: Logger;

  constructor(events: WorkerEvents, logger: Logger) {
    this.#events = events;
    this.#logger = logger;
  }

  settled<Tx>(conclusion: Conclusion<Tx>, result: SettleResult): void {
    const { status } = result;
    const { lease, settle, verdict } = conclusion;
    attemptOf(lease)?.ended(reportOf(conclusion, status));
    if (status !== "settled") {
      this.#logger.warn({ eventId: lease.event, epoch: lease.epoch }, "A lease was lost before its event was settled.");
      return this.putBack(lease);
    }
    if (verdict.kind === "failed") {
      const { error, event } = verdict;
      this.#events.failed(noticeOf(lease), { attempt: lease.attempt, error, event });
    }
    if (settle.kind === "dead") {
      this.#events.deadLettered(noticeOf(lease), lease.attempt, settle.failure.code, () => verdict.event);
    }
    this.#events.ended(lease.event, ENDINGS[settle.kind]);
    if (result.gapBegins) this.#events.waits(lease.lane);
  }

  claimed({ lane }: Lease): void {
    this.#events.claimed(lane);
  }

  /** The claim ended without having been started. */
  putBack(lease: Lease): void {
    this.#events.ended(lease.event, "put_back");
  }

  /** The store found that the event's attempts were used up. */
  retired(record: EventRecord): void {
    const notice = { eventId: record.id, lane: record.lane, sequence: record.sequence, eventType: record.eventType };
    const code = record.errorCode ?? "attempts_exhausted";
    this.#events.deadLettered(notice, record.attempts, code, () => readEvent(record.raw));
    this.#events.ended(record.id, "dead");
  }
}

function reportOf<Tx>({ settle, verdict, durationMs }: Conclusion<Tx>, status: SettleResult["status"]): AttemptReport {
  if (status !== "settled") return { ending: "lost", errorCode: null, durationMs };
  const errorCode = verdict.kind === "failed" ? failureCode(verdict.error) : null;
  switch (settle.kind) {
    case "complete":
      return { ending: settle.outcome === "unhandled" ? "unhandled" : "handled", errorCode, durationMs };
    case "retry":
    case "dead":
      return { ending: settle.kind, errorCode, durationMs };
    case "release":
      return { ending: "put_back", errorCode, durationMs };
    default:
      return settle satisfies never;
  }
}

function noticeOf(lease: Lease): EventNotice {
  return { eventId: lease.event, lane: lease.key, sequence: lease.sequence, eventType: lease.eventType };
}
