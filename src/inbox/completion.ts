/** How a claim ends (complete, retry or dead-letter), and what happens once its end is committed: hooks, log lines, and requests that wait. */
import { RetryAfter } from "../errors.ts";
import type { WebhookEvent } from "../events/types.ts";
import type { Clock, Random, Timer } from "../internal/clock.ts";
import { type Logger, maskNumbers } from "../internal/logger.ts";
import { backoffMs, gapBefore } from "./gap.ts";
import { type ConflictNotice, type Hooks, readEvent, type Verdict } from "./handlers.ts";
import { type AttemptReport, attemptOf } from "./instrumentation.ts";
import { describeFailure, errorFields, explained, failureCode, logFieldsOf } from "./masking.ts";
import type { EventId, EventNotice, EventRecord, LaneId, LaneRecord, OnDead } from "./record.ts";
import type { InboxStore, Lease, LeaseRef, Settle, SettleResult } from "./store.ts";

// How a verdict becomes a settle: the policy of retries and dead letters, pure.

/** How a claim ended, for those who wait for it. `put_back`: released, or lost to another worker. */
export type Ending = "done" | "dead" | "retry" | "put_back";

const ENDINGS = {
  complete: "done",
  retry: "retry",
  dead: "dead",
  release: "put_back",
} as const satisfies Record<Settle<unknown>["kind"], Ending>;

interface SettlePolicy {
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  readonly random: Random;
}

/** What is known of the attempt beside its verdict. */
interface Attempt {
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

// Tells what became of claims, once it is committed: to those who wait, to the application's hooks, and to the log.

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
interface AttemptFailure {
  readonly attempt: number;
  readonly error: unknown;
  readonly event: WebhookEvent | null;
}

/** How a claim was to end. */
interface Conclusion<Tx> {
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

// Those who wait for an event's claim to end in this process: requests with `ack: "handled"`, tests, `waitFor`.

type Listener = (ending: Ending) => void;

export class Waiters {
  readonly #byEvent = new Map<EventId, Set<Listener>>();

  /** Calls `listener` at each end of a claim of `event`, until the returned function is called. */
  add(event: EventId, listener: Listener): () => void {
    const listeners = this.#byEvent.get(event) ?? new Set();
    listeners.add(listener);
    this.#byEvent.set(event, listeners);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#byEvent.delete(event);
    };
  }

  /** How many wait for `event`. */
  count(event: EventId): number {
    return this.#byEvent.get(event)?.size ?? 0;
  }

  ended(event: EventId, ending: Ending): void {
    for (const listener of [...(this.#byEvent.get(event) ?? [])]) listener(ending);
  }
}

// Tells the application's hooks and the log what happened to an event. A hook that throws is logged and changes nothing.

const HOOKS = { conflict: "onConflict", error: "onError", deadLetter: "onDeadLetter" } as const satisfies Record<
  keyof Hooks,
  string
>;

interface AnnouncerOptions {
  readonly hooks: () => Hooks;
  readonly waiters: Waiters;
  readonly gaps: GapLog;
  readonly logger: Logger;
  /** Another process can open the inbox, as the command line does. */
  readonly isShared: boolean;
}

export class Announcer implements WorkerEvents {
  readonly #options: AnnouncerOptions;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
  }

  ended(event: EventId, ending: Ending): void {
    this.#options.waiters.ended(event, ending);
  }

  waits(lane: LaneId): void {
    this.#options.gaps.began(lane);
  }

  claimed(lane: LaneId): void {
    this.#options.gaps.ended(lane);
  }

  failed(notice: EventNotice, { attempt, error, event }: AttemptFailure): void {
    // A text of ours can quote a number that a handler gave.
    const said = maskNumbers(explained("A handler failed.", error));
    const fields = { ...logFieldsOf(notice), attempt, ...errorFields(error, event) };
    this.#options.logger.warn({ ...fields, more: this.#more("onError", notice) }, said);
    this.#call("error", { ...notice, attempt, error }, () => event);
  }

  deadLettered(notice: EventNotice, attempts: number, code: string, event: () => WebhookEvent | null): void {
    const fields = { ...logFieldsOf(notice), attempts, code, more: this.#more("onDeadLetter", notice) };
    this.#options.logger.error(fields, "An event became a dead letter.");
    this.#call("deadLetter", { ...notice, attempts, code }, event);
  }

  conflict(notice: ConflictNotice, event: () => WebhookEvent | null): void {
    this.#options.logger.warn(
      { ...logFieldsOf(notice), more: this.#more("onConflict", notice) },
      "A delivery with a known identity carried other content; it was kept and not handled.",
    );
    this.#call("conflict", notice, event);
  }

  /** Where to find more about an event than the log has. */
  #more(hook: string, { eventId }: EventNotice): string {
    return this.#options.isShared ? `${hook}, or oncehook inbox show ${eventId}` : hook;
  }

  /** @param event - asked only when a hook throws: its error may quote the event */
  #call<H extends keyof Hooks>(
    hook: H,
    notice: Parameters<Hooks[H][number]>[0],
    event: () => WebhookEvent | null,
  ): void {
    for (const listener of this.#options.hooks()[hook] as readonly ((notice: unknown) => unknown)[]) {
      Promise.resolve(notice)
        .then(listener)
        .catch((error: unknown) => {
          const fields = { ...logFieldsOf(notice), hook: HOOKS[hook], ...errorFields(error, event()) };
          this.#options.logger.error(fields, "A hook threw.");
        });
    }
  }
}

// Logs once for each gap that an event waits for a missing one: for which, and until when.

/** Events overtake each other on the network: a wait that is over sooner is not worth a line. */
const WORTH_A_LINE_MS = 1_000;
/** Messages looked at in a second, and kept to be looked at. After an outage thousands can begin to wait at once. */
const MOST_LOOKS = 20;
const MOST_KEPT = 1_000;

interface GapLogOptions {
  readonly store: Pick<InboxStore, "lane" | "capabilities">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly firstSequence: number | "any";
}

export class GapLog {
  readonly #options: GapLogOptions;
  /** Lanes that began to wait, each with the monotonic time from which that is worth a line; the oldest first. */
  readonly #waiting = new Map<LaneId, number>();
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(options: GapLogOptions) {
    this.#options = options;
  }

  began(lane: LaneId): void {
    if (this.#isClosed || this.#waiting.size >= MOST_KEPT) return;
    this.#waiting.delete(lane);
    this.#waiting.set(lane, this.#options.clock.monotonic() + WORTH_A_LINE_MS);
    this.#plan();
  }

  /** Its wait is over, as far as this process knows. */
  ended(lane: LaneId): void {
    if (this.#waiting.size > 0) this.#waiting.delete(lane);
  }

  /** At the end of a drain: the process may be frozen or gone before a second has passed. */
  async flush(): Promise<void> {
    await this.#look([...this.#waiting.keys()]);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#waiting.clear();
  }

  #plan(): void {
    this.#timer ??= this.#options.clock.setTimeout(() => void this.#lookAtDue(), WORTH_A_LINE_MS);
  }

  async #lookAtDue(): Promise<void> {
    const now = this.#options.clock.monotonic();
    await this.#look([...this.#waiting].flatMap(([lane, dueAt]) => (dueAt <= now ? [lane] : [])));
    this.#timer = null;
    if (this.#waiting.size > 0) this.#plan();
  }

  /** Another process may have taken the event meanwhile: the store knows. */
  async #look(lanes: readonly LaneId[]): Promise<void> {
    for (const id of lanes.slice(0, MOST_LOOKS)) {
      this.#waiting.delete(id);
      const lane = await this.#options.store.lane(id).catch(() => null);
      if (lane?.status === "gap" && !this.#isClosed) this.#tell(lane);
    }
  }

  #tell(lane: LaneRecord): void {
    const { logger, firstSequence, store } = this.#options;
    const waiting = lane.events.find(({ state, late, forced }) => state === "pending" && !late && !forced);
    if (waiting === undefined || lane.readyAt === null) return;
    const isSettled = (sequence: number) => lane.events.some((event) => event.sequence === sequence);
    const missing = gapBefore({ ordered: true, cursor: lane.cursor, firstSequence, isSettled }, waiting);
    if (missing === null) return;
    const { id: eventId, sequence, eventType } = waiting;
    const until = new Date(lane.readyAt).toISOString();
    const { from, to } = missing;
    const said = from === to ? `sequence ${from}` : `the sequences ${from} to ${to}`;
    logger.warn(
      {
        ...{ code: "waits_for_gap", ...logFieldsOf({ eventId, lane: lane.key, sequence, eventType }), missing, until },
        ...(store.capabilities.shared && { more: `oncehook inbox release ${lane.id} ends the wait` }),
      },
      `An event waits for ${said} of its message, until ${until} at the latest. Then it is handled without.`,
    );
  }
}
