/** How a claim ends (complete, retry or dead letter), and the hooks, log lines and waiting requests that follow its commit. */
import { RetryAfter } from "../errors.ts";
import type { Clock, Random, Timer } from "../internal/clock.ts";
import { type Logger, maskNumbers } from "../internal/logger.ts";
import { backoffMs, gapBefore } from "./gap.ts";
import type { ConflictNotice, Entries, Hooks, Registered } from "./handlers.ts";
import { type AttemptReport, attemptOf, type Instruments, noticeOf } from "./instrumentation.ts";
import {
  describeFailure,
  errorFields,
  explained,
  failureCode,
  logFieldsOf,
  type Masking,
  NOTHING_QUOTED,
} from "./masking.ts";
import type { EventId, EventNotice, EventRecord, LaneId, LaneRecord, OnDead } from "./record.ts";
import type { Verdict } from "./runner.ts";
import type { InboxStore, Lease, LeaseRef, Settle, SettleResult, Untaken } from "./store.ts";

/** How a claim ended. `late`: the event is only recorded. `put_back`: it was released, or lost to another worker. */
export type ClaimEnding = "done" | "late" | "dead" | "retry" | "put_back";

const ENDINGS = {
  complete: "done",
  retry: "retry",
  dead: "dead",
  release: "put_back",
} as const satisfies Record<Settle<unknown>["kind"], ClaimEnding>;

/** After this time an event whose entry this process does not have is offered again. */
const ABSENT_MS = 30_000;

export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly onDead: OnDead;
  readonly random: Random;
}

/**
 * What the store is asked to do with a claim whose handlers have ended: the policy of retries and dead letters. Pure.
 *
 * @param probeDelayMs - set for a probe of a paused worker: if it fails, it is released with its attempt, for so long
 */
export function settleFor<Tx>(
  lease: LeaseRef & Pick<Lease, "attempt" | "cursorBefore" | "key">,
  verdict: Verdict<Tx>,
  { durationMs, probeDelayMs }: { readonly durationMs: number; readonly probeDelayMs: number | null },
  { maxAttempts, onDead, random }: RetryPolicy,
): Settle<Tx> {
  if (verdict.kind === "complete") {
    return { kind: "complete", lease, outcome: verdict.outcome, effects: verdict.effects };
  }
  if (verdict.kind === "absent") return { kind: "release", lease, delayMs: ABSENT_MS, ran: false };
  const { error } = verdict;
  const failure = describeFailure(error, verdict.masking, durationMs);
  if (verdict.permanent) return { kind: "dead", lease, failure, onDead };
  if (probeDelayMs !== null) return { kind: "release", lease, delayMs: probeDelayMs, ran: true };
  if (lease.attempt >= maxAttempts) return { kind: "dead", lease, failure, onDead };
  // `RetryAfter` checks its own bounds. A store may not hold a fraction of a millisecond.
  const delayMs = error instanceof RetryAfter ? Math.round(error.ms) : backoffMs(lease.attempt, random);
  return { kind: "retry", lease, failure, delayMs };
}

/** What a worker reports about its claims. */
export interface WorkerEvents {
  /** A claim ended, and its end is committed. */
  ended(event: EventId, ending: ClaimEnding): void;
  /** A lane begins to wait for a missing sequence. */
  waits(lane: LaneId): void;
  /** An event of a lane was claimed: the lane no longer waits. */
  claimed(lane: LaneId): void;
  failed(notice: EventNotice, failure: AttemptFailure): void;
  deadLettered(notice: EventNotice, attempts: number, code: string, masking: () => Masking): void;
}

/** A failed attempt, and what hides the event in its error. */
export interface AttemptFailure {
  readonly attempt: number;
  readonly error: unknown;
  readonly masking: Masking;
}

/** A claim whose handlers have ended, and what the store was asked to do with it. */
export interface Completion<Tx> {
  readonly lease: Lease;
  readonly verdict: Verdict<Tx>;
  readonly settle: Settle<Tx>;
  /** How long the handlers took. */
  readonly durationMs: number;
}

/** Reports the end of a claim once the store has answered for it. */
export function reportEnd<Tx>(
  completion: Completion<Tx>,
  { status, gapBegins }: { readonly status: SettleResult["status"]; readonly gapBegins?: true },
  events: WorkerEvents,
  logger: Logger,
): void {
  const { lease, settle, verdict } = completion;
  attemptOf(lease)?.ended(attemptReport(completion, status));
  if (status !== "settled") {
    logger.warn({ eventId: lease.event }, "A lease was lost before its event was completed.");
    return events.ended(lease.event, "put_back");
  }
  if (verdict.kind === "failed") {
    const { error, masking } = verdict;
    events.failed(noticeOf(lease), { attempt: lease.attempt, error, masking });
  }
  if (settle.kind === "dead") {
    events.deadLettered(noticeOf(lease), lease.attempt, settle.failure.code, () => maskingOf(verdict));
  }
  events.ended(lease.event, ENDINGS[settle.kind]);
  if (gapBegins) events.waits(lease.lane);
}

/** Reports an event that no handler takes. */
export function reportUntaken(untaken: Untaken, events: WorkerEvents, instruments: Instruments): void {
  const { event, lane, state, gapBegins } = untaken;
  events.claimed(lane);
  if (state === "done") {
    const observed = instruments.attempt({ ...untaken, attempt: 0, missing: null, trace: null });
    observed?.ended({ ending: "unhandled", errorCode: null, durationMs: 0 });
  }
  events.ended(event, state);
  if (gapBegins) events.waits(lane);
}

/** Reports an event that the store made a dead letter because its attempts were used up. */
export function reportRetired(
  record: EventRecord,
  events: WorkerEvents,
  entries: Pick<Entries<never>, "reread" | "masking">,
): void {
  const { id: eventId, lane, ownId: id, sequence, eventType } = record;
  const notice = { eventId, lane, id, sequence, eventType };
  const code = record.errorCode ?? "attempts_exhausted";
  const masking = () => entries.masking(record.lane, record, entries.reread(record.lane, record));
  events.deadLettered(notice, record.attempts, code, masking);
  events.ended(record.id, "dead");
}

function attemptReport<Tx>(
  { settle, verdict, durationMs }: Completion<Tx>,
  status: SettleResult["status"],
): AttemptReport {
  if (status !== "settled") return { ending: "lost", errorCode: null, durationMs };
  const errorCode = verdict.kind === "failed" ? failureCode(verdict.error, verdict.masking) : null;
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

function maskingOf<Tx>(verdict: Verdict<Tx>): Masking {
  return verdict.kind === "failed" ? verdict.masking : NOTHING_QUOTED;
}

type Listener = (ending: ClaimEnding) => void;

/** Requests with `ack: "handled"`, which wait until a claim of their event ends in this process. */
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

  ended(event: EventId, ending: ClaimEnding): void {
    for (const listener of [...(this.#byEvent.get(event) ?? [])]) listener(ending);
  }

  /** Their events are gone. */
  endAll(): void {
    for (const event of [...this.#byEvent.keys()]) this.ended(event, "put_back");
  }
}

const HOOKS = { conflict: "onConflict", error: "onError", deadLetter: "onDeadLetter" } as const satisfies Record<
  keyof Hooks,
  string
>;

/** Read at each use: a reload in development replaces the entries. */
type RegisteredHooks = { readonly entries: Pick<Registered<never>["entries"], "hooks" | "sequenceRules"> };

interface HookOptions {
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Notifies waiting requests, the application's hooks and the log. A hook that throws is logged, and changes nothing. */
export class CompletionHooks implements WorkerEvents {
  readonly waiters = new Waiters();
  readonly gapLog: GapLog;
  readonly #registered: RegisteredHooks;
  readonly #logger: Logger;
  /** Another process can open the inbox, as the command line does. */
  readonly #isShared: boolean;

  constructor(store: GapLogStore, registered: RegisteredHooks, options: HookOptions) {
    this.gapLog = new GapLog(store, registered, options);
    this.#registered = registered;
    this.#logger = options.logger;
    this.#isShared = store.capabilities.shared;
  }

  ended(event: EventId, ending: ClaimEnding): void {
    this.waiters.ended(event, ending);
  }

  waits(lane: LaneId): void {
    this.gapLog.began(lane);
  }

  claimed(lane: LaneId): void {
    this.gapLog.ended(lane);
  }

  failed(notice: EventNotice, { attempt, error, masking }: AttemptFailure): void {
    // Our own messages can quote a number that a handler gave.
    const message = maskNumbers(explained("A handler failed.", error));
    const fields = { ...logFieldsOf(notice), attempt, ...errorFields(error, masking) };
    this.#logger.warn({ ...fields, more: this.#more("onError", notice) }, message);
    this.#call("error", { ...notice, attempt, error }, () => masking);
  }

  deadLettered(notice: EventNotice, attempts: number, code: string, masking: () => Masking): void {
    const fields = { ...logFieldsOf(notice), attempts, code, more: this.#more("onDeadLetter", notice) };
    this.#logger.error(fields, "An event became a dead letter.");
    this.#call("deadLetter", { ...notice, attempts, code }, masking);
  }

  conflict(notice: ConflictNotice, masking: () => Masking): void {
    this.#logger.warn(
      { ...logFieldsOf(notice), more: this.#more("onConflict", notice) },
      "A delivery of a known event carried other content; it was kept and not handled.",
    );
    this.#call("conflict", notice, masking);
  }

  /** Where to find more about an event than the log has. */
  #more(hook: string, { eventId }: EventNotice): string {
    return this.#isShared ? `${hook}, or oncehook inbox show ${eventId}` : hook;
  }

  /** @param masking - made only if a hook throws: its error may quote the event */
  #call<H extends keyof Hooks>(hook: H, notice: Parameters<Hooks[H][number]>[0], masking: () => Masking): void {
    for (const listener of this.#registered.entries.hooks[hook] as readonly ((notice: unknown) => unknown)[]) {
      Promise.resolve(notice)
        .then(listener)
        .catch((error: unknown) => {
          const fields = { ...logFieldsOf(notice), hook: HOOKS[hook], ...errorFields(error, masking()) };
          this.#logger.error(fields, "A hook threw.");
        });
    }
  }
}

/** A shorter wait is not logged: events overtake each other on the network. */
const LOGGED_FROM_MS = 1_000;
/** Lanes read each second, and kept to be read. After an outage thousands can begin to wait at once. */
const MOST_READ = 20;
const MOST_KEPT = 1_000;

type GapLogStore = Pick<InboxStore, "lane" | "capabilities">;

/** Logs each gap once: which sequence is missing, and until when its lane waits. */
class GapLog {
  readonly #store: GapLogStore;
  readonly #registered: RegisteredHooks;
  readonly #options: HookOptions;
  /** Lanes that began to wait, oldest first, each with the monotonic time from which the wait is logged. */
  readonly #waiting = new Map<LaneId, number>();
  #timer: Timer | null = null;
  #isClosed = false;

  constructor(store: GapLogStore, registered: RegisteredHooks, options: HookOptions) {
    this.#store = store;
    this.#registered = registered;
    this.#options = options;
  }

  began(lane: LaneId): void {
    if (this.#isClosed || this.#waiting.size >= MOST_KEPT) return;
    this.#waiting.delete(lane);
    this.#waiting.set(lane, this.#options.clock.monotonic() + LOGGED_FROM_MS);
    this.#plan();
  }

  /** The wait is over, as far as this process knows. */
  ended(lane: LaneId): void {
    if (this.#waiting.size > 0) this.#waiting.delete(lane);
  }

  /** At the end of a drain: the process may be frozen or gone before a second has passed. */
  async flush(): Promise<void> {
    await this.#logWaiting([...this.#waiting.keys()]);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#waiting.clear();
  }

  #plan(): void {
    this.#timer ??= this.#options.clock.setTimeout(() => void this.#logDue(), LOGGED_FROM_MS);
  }

  async #logDue(): Promise<void> {
    const now = this.#options.clock.monotonic();
    await this.#logWaiting([...this.#waiting].flatMap(([lane, dueAt]) => (dueAt <= now ? [lane] : [])));
    this.#timer = null;
    if (this.#waiting.size > 0) this.#plan();
  }

  /** Reads each lane first: another process may have claimed the event since. */
  async #logWaiting(lanes: readonly LaneId[]): Promise<void> {
    for (const id of lanes.slice(0, MOST_READ)) {
      this.#waiting.delete(id);
      const lane = await this.#store.lane(id).catch(() => null);
      if (lane?.status === "gap" && !this.#isClosed) this.#log(lane);
    }
  }

  #log(lane: LaneRecord): void {
    const { logger } = this.#options;
    const { firstSequence } = this.#registered.entries.sequenceRules(lane.key.source);
    const waiting = lane.events.find(({ state, late, forced }) => state === "pending" && !late && !forced);
    if (waiting === undefined || lane.readyAt === null) return;
    const isSettled = (sequence: number) => lane.events.some((event) => event.sequence === sequence);
    const missing = gapBefore({ order: "sequence", cursor: lane.cursor, firstSequence, isSettled }, waiting);
    if (missing === null) return;
    const { id: eventId, ownId: id, sequence, eventType } = waiting;
    const until = new Date(lane.readyAt).toISOString();
    const { from, to } = missing;
    const what = from === to ? `sequence ${from}` : `the sequences ${from} to ${to}`;
    logger.warn(
      {
        ...{
          code: "waits_for_gap",
          ...logFieldsOf({ eventId, lane: lane.key, id, sequence, eventType }),
          missing,
          until,
        },
        ...(this.#store.capabilities.shared && { more: `oncehook inbox release ${lane.id} ends the wait` }),
      },
      `An event waits for ${what} of its message, until ${until} at the latest. After that it is handled anyway.`,
    );
  }
}
