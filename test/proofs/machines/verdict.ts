/** What became of the service's events at machines that share an inbox: its ledger against the history and the inbox itself. */
import type { Delivery, EventRecord } from "../../../src/emulator/index.ts";
import type { EventState } from "../../../src/inbox/record.ts";
import {
  findings as findingsOf,
  type HandledRow,
  type Verdict as LedgerVerdict,
  nameOf,
  nameOfEvent,
  verdictOn,
} from "../outages/verdict.ts";

/** What a handler wrote with its event's completion, in that order. */
export interface HistoryRow extends HandledRow {
  readonly attempt: number;
  readonly machine: string;
  /** It came after a later event of its message had been handed out. */
  readonly late: boolean;
}

/** An event as the inbox has it at the end. */
export interface StoredEvent extends HandledRow {
  readonly state: EventState;
  readonly attempts: number;
}

/** Sequences of a message that were waited for in vain. */
export interface SkippedGap {
  readonly message_id: string;
  readonly from: number;
  readonly to: number;
  /** When the first event behind it was accepted, epoch ms. */
  readonly behindAt: number;
  /** Epoch ms. */
  readonly skippedAt: number;
}

/** All that is known at the end of a run. */
export interface Accounts {
  readonly events: readonly EventRecord[];
  readonly deliveries: readonly Pick<Delivery, "eventId" | "attempts" | "state">[];
  readonly history: readonly HistoryRow[];
  readonly stored: readonly StoredEvent[];
  readonly gaps: readonly SkippedGap[];
  /** What each gap has to be waited for. */
  readonly gapWaitMs: number;
  /** Lanes that are not idle. */
  readonly busyLanes: number;
}

/** Names of events; empty lists are what is hoped for. An event that is called late with a reason is neither lost nor out of order. */
export interface Verdict extends LedgerVerdict {
  /** Neither handled nor late at the end: pending, dead or discarded. */
  readonly unsettled: readonly string[];
  /** Called late, although nothing behind it had waited its whole time. */
  readonly wronglyLate: readonly string[];
  /** Completed without its effect, or an effect whose event is not completed. */
  readonly halfDone: readonly string[];
  /** Of lanes that are not idle. */
  readonly busyLanes: number;
}

export function judge(accounts: Accounts): Verdict {
  const { events, deliveries, history, stored, busyLanes } = accounts;
  const delivered = new Set(deliveries.filter(({ state }) => state === "delivered").map(({ eventId }) => eventId));
  const inTime = history.filter(({ late }) => !late);
  const late = history.filter((row) => row.late);
  const handled = new Set(inTime.map(nameOf));
  const called = new Set(late.map(nameOf));
  const isWanted = (event: EventRecord) => {
    const name = nameOfEvent(event);
    return handled.has(name) || (delivered.has(event.eventId) && !called.has(name));
  };
  const verdict = verdictOn({ events: events.filter(isWanted), deliveries }, inTime);
  return {
    ...verdict,
    twice: [...new Set([...verdict.twice, ...lateAmiss(late, accounts)])],
    unsettled: stored.filter(({ state }) => state !== "done").map((event) => `${nameOf(event)} (${event.state})`),
    wronglyLate: late.filter((row) => !hasReason(row, accounts)).map(nameOf),
    halfDone: halves(history, stored),
    busyLanes,
  };
}

/** One line for each finding, the first 20 of each kind. */
export function findings(verdict: Verdict): string[] {
  const { unsettled, wronglyLate, halfDone, busyLanes } = verdict;
  const lines = (what: string, names: readonly string[]) => names.slice(0, 20).map((name) => `${what} ${name}`);
  return [
    ...findingsOf(verdict),
    ...lines("unsettled", unsettled),
    ...lines("wrongly late", wronglyLate),
    ...lines("half done", halfDone),
    ...(busyLanes > 0 ? [`${busyLanes} lanes are not idle`] : []),
  ];
}

/** Late ones that are handled twice, in time as well, or never happened. */
function lateAmiss(late: readonly HistoryRow[], { events, history }: Accounts): string[] {
  const known = new Set(events.map(nameOfEvent));
  const times = new Map<string, number>();
  for (const row of history) times.set(nameOf(row), (times.get(nameOf(row)) ?? 0) + 1);
  return late.map(nameOf).filter((name) => !known.has(name) || (times.get(name) ?? 0) > 1);
}

function hasReason({ message_id, sequence }: HistoryRow, { gaps, gapWaitMs }: Accounts): boolean {
  const own = gaps.filter((gap) => gap.message_id === message_id);
  return own.some((gap) => gap.from <= sequence && sequence <= gap.to && waitedMs(gap, own) >= gapWaitMs);
}

/** A gap is waited for once something lies behind it and the gaps before it have been given up. */
function waitedMs({ from, behindAt, skippedAt }: SkippedGap, gaps: readonly SkippedGap[]): number {
  const before = gaps.filter(({ to }) => to < from).map((gap) => gap.skippedAt);
  return skippedAt - Math.max(behindAt, ...before);
}

function halves(history: readonly HistoryRow[], stored: readonly StoredEvent[]): string[] {
  const effects = new Set(history.map(nameOf));
  const completions = new Set(stored.filter(({ state }) => state === "done").map(nameOf));
  return [
    ...[...completions].filter((name) => !effects.has(name)),
    ...[...effects].filter((name) => !completions.has(name)),
  ];
}
