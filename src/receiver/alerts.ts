/** Alerts: which conditions of an inbox need a person, and what is said about each. */
import type { InboxStats } from "../inbox/record.ts";
import { lasting } from "../internal/lasting.ts";
import { type Bounds, invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";

/** What can be watched. */
export type AlertCondition =
  | "deadLetters"
  | "late"
  | "oldestPendingMs"
  | "quarantine"
  | "refusedShare"
  | "workerMissing";

/** From which value on a condition holds. At least one is needed, and conditions without a limit are not watched. */
export interface AlertLimits {
  /** Dead letters in the inbox. 1 to 1,000,000,000. */
  readonly deadLetters?: number;
  /** Events of the last hour that came late: after a later one of their lane was handled. 1 to 1,000,000,000. */
  readonly late?: number;
  /**
   * Age of the oldest pending event, milliseconds. 1,000 to 2,592,000,000 (30 days). Events wait up to 85 minutes for a missing one and
   * up to 8 hours for a retry, so a short limit is for inboxes whose events rarely wait.
   */
  readonly oldestPendingMs?: number;
  /** Signed bodies held in the quarantine. 1 to 1,000,000,000. */
  readonly quarantine?: number;
  /** Share of deliveries that all processes refused in the last 5 minutes, if there were 20 or more. 0.01 to 1. */
  readonly refusedShare?: number;
  /**
   * How long no process has run a worker, milliseconds. 60,000 to 2,592,000,000 (30 days). A process runs one after `start()` and during
   * `drain()`. Only a process that lives can notice: one that accepts, or `oncehook doctor --watch`.
   */
  readonly workerMissing?: number;
}

/** One message: a condition has begun to hold, or has ended. Holds no phone numbers, texts or secrets. */
export interface Alert {
  /** The same each time that this message is sent again. */
  readonly id: string;
  /** The same in the message about the beginning and the one about the end. */
  readonly episode: string;
  /** What began or ended, by its name in `when`. */
  readonly condition: AlertCondition;
  /** Two messages: one when the condition begins to hold, one when it has not held for a minute. */
  readonly status: "began" | "ended";
  /** The receiver's option `name`. */
  readonly receiver: string;
  /** What was found, in the unit of the limit. */
  readonly value: number;
  /** From which value on the condition holds. */
  readonly limit: number;
  /** When the message was made, epoch milliseconds. */
  readonly at: number;
  /** When the condition was first seen to hold, epoch milliseconds. */
  readonly since: number;
  /** One or two sentences: what happened, and what to do. */
  readonly text: string;
}

/** Sends one message when a condition begins to hold and one when it ends, from one process of all that work on the inbox. */
export interface AlertOptions {
  /**
   * A URL that gets each alert by POST, or a function that is called with it. An alert is sent once this answers 2xx, or the function ends,
   * within 10 s. Otherwise it is sent again with the same `id`, after 10 s at first and every 10 minutes at last, until it was taken. The
   * same alert can arrive twice, as when its process is killed.
   */
  readonly to: string | URL | ((alert: Alert) => unknown);
  /** The conditions to watch, each with its limit. */
  readonly when: AlertLimits;
  /**
   * Signs what is posted, as the messaging service signs: verify it with `verifySignature()`. At least 16 bytes, and none of the
   * webhook secrets. Needed for a URL, except with the format `slack`.
   */
  readonly secret?: string;
  /** The body that a URL gets: an `Alert`, or a message for a Slack webhook. Default `"slack"` on hooks.slack.com, otherwise `"json"`. */
  readonly format?: "json" | "slack";
}

/** How alerts leave a receiver. */
export interface AlertRoute {
  /** For the log: a host, or `function`. Never a path, which may hold a secret. */
  readonly to: string;
  readonly limits: AlertLimits;
  /** Rejects if the alert was not taken. */
  readonly send: (alert: Alert, signal: AbortSignal) => Promise<void>;
}

const DAY_MS = 86_400_000;
const MANY: Bounds = { min: 1, max: 1_000_000_000, unit: "" };

const BOUNDS: Readonly<Record<AlertCondition, Bounds>> = {
  deadLetters: { ...MANY, unit: "dead letters" },
  late: { ...MANY, unit: "events" },
  oldestPendingMs: { min: 1_000, max: 30 * DAY_MS, unit: "ms" },
  quarantine: { ...MANY, unit: "bodies" },
  refusedShare: { min: 0.01, max: 1, unit: "of all deliveries", integer: false },
  workerMissing: { min: 60_000, max: 30 * DAY_MS, unit: "ms" },
};

export const ALERT_CONDITIONS = Object.keys(BOUNDS) as readonly AlertCondition[];

/** @throws SetupError naming the option and the fix */
export function alertLimits(value: unknown): AlertLimits {
  refuseUnknownOptions("alerts.when", value, ALERT_CONDITIONS);
  const given: Readonly<Record<string, unknown>> = { ...(value as object) };
  const limits = ALERT_CONDITIONS.filter((name) => given[name] !== undefined).map((name) => [
    name,
    numberOption(`alerts.when.${name}`, given[name], 0, BOUNDS[name]),
  ]);
  if (limits.length > 0) return Object.fromEntries(limits);
  throw invalidOption("alerts.when", `must have a limit, such as { deadLetters: 1 }`);
}

/** What one look at an inbox found. */
export interface AlertFacts {
  readonly stats: Pick<InboxStats, "gauges" | "counters" | "oldestPendingAt" | "instances">;
  /** By the clock that all processes share, epoch milliseconds. */
  readonly now: number;
  /** How long ago a worker ran in this process, milliseconds. Null if none did. */
  readonly workerIdleMs: number | null;
}

/** In the heartbeat of a process: how long ago a worker ran in it, milliseconds. */
export const WORKER_IDLE = "worker_idle_ms";

/** What earlier looks found, for the conditions that no single look can see. Shared by all processes, and written as JSON. */
export interface AlertMemory {
  /** When a worker ran, at the latest: epoch milliseconds. */
  readonly workerAt?: number;
  readonly refusals?: Refusals;
  readonly late?: LateEvents;
}

interface LateEvents {
  /** The inbox's count at the last look. */
  readonly counted: number;
  /** What came since the look before, oldest first. */
  readonly slices: readonly { readonly at: number; readonly count: number }[];
}

interface Refusals {
  /** Counts of each process by its id, as last reported. Counters begin at 0 in each process, so only differences say what is new. */
  readonly reported: Readonly<Record<string, Reported>>;
  /** What is new, in slices of time, oldest first. */
  readonly slices: readonly Slice[];
}

interface Reported {
  readonly all: number;
  readonly refused: number;
  readonly seenAt: number;
}

interface Slice {
  /** Its beginning, epoch milliseconds. */
  readonly at: number;
  readonly all: number;
  readonly refused: number;
}

const LATE_OVER_MS = 3_600_000;
const LATE_SLICE_MS = 60_000;
const SHARE_OVER_MS = 5 * 60_000;
const SLICE_MS = 30_000;
/** Fewer deliveries say little: one forged request would be a share of 100 %. */
const LEAST_DELIVERIES = 20;
/** A process that has just begun may be missing from what a slower process has read: it is not counted from 0 again. */
const REMEMBER_MS = 15 * 60_000;
/** Times move in such steps, so that many processes write the memory once and not each. */
const STEP_MS = 10_000;

/** The memory after a look. Returns `memory` itself if nothing changed. */
export function remembered(memory: AlertMemory, limits: AlertLimits, facts: AlertFacts): AlertMemory {
  const workerAt = limits.workerMissing === undefined ? memory.workerAt : workerSeen(memory.workerAt, facts);
  const refusals = limits.refusedShare === undefined ? memory.refusals : refusalsSeen(memory.refusals, facts);
  const late = limits.late === undefined ? memory.late : lateSeen(memory.late, facts);
  if (workerAt === memory.workerAt && refusals === memory.refusals && late === memory.late) return memory;
  return {
    ...(workerAt !== undefined && { workerAt }),
    ...(refusals !== undefined && { refusals }),
    ...(late !== undefined && { late }),
  };
}

/** The first look only takes note of the count, and so does one of an inbox that was restored. */
function lateSeen(known: LateEvents | undefined, { stats, now }: AlertFacts): LateEvents {
  const counted = stats.counters.late;
  if (known === undefined) return { counted, slices: [] };
  if (counted === known.counted) return known;
  const count = Math.max(0, counted - known.counted);
  const recent = known.slices.filter(({ at }) => at > now - LATE_OVER_MS);
  const last = recent.at(-1);
  if (last === undefined || now >= last.at + LATE_SLICE_MS) return { counted, slices: [...recent, { at: now, count }] };
  return { counted, slices: [...recent.slice(0, -1), { at: last.at, count: last.count + count }] };
}

/** The first look counts as a worker: nothing is known about the time before. */
function workerSeen(known: number | undefined, { stats, now, workerIdleMs }: AlertFacts): number {
  const own = workerIdleMs === null ? [] : [now - workerIdleMs];
  const others = stats.instances.flatMap(({ seenAt, counters }) => {
    const idle = counters[WORKER_IDLE];
    return idle === undefined ? [] : [seenAt - idle];
  });
  const latest = Math.max(known ?? now, ...own, ...others);
  return known !== undefined && latest < known + STEP_MS ? known : latest;
}

/** The first look only takes note of the counts: a process may have counted for weeks. */
function refusalsSeen(known: Refusals | undefined, { stats, now }: AlertFacts): Refusals {
  const before = known?.reported ?? {};
  const reports = stats.instances.flatMap(({ id, counters, seenAt }) => {
    const { all, refused } = deliveriesOf(counters);
    const last = before[id] ?? { all: 0, refused: 0 };
    return all <= last.all
      ? []
      : [{ id, now: { all, refused, seenAt }, newAll: all - last.all, newRefused: refused - last.refused }];
  });
  if (known !== undefined && reports.length === 0) return known;
  const listed = new Set(stats.instances.map(({ id }) => id));
  const kept = Object.entries(before).filter(([id, { seenAt }]) => listed.has(id) || seenAt > now - REMEMBER_MS);
  const reported = Object.fromEntries([...kept, ...reports.map((report) => [report.id, report.now] as const)]);
  if (known === undefined) return { reported, slices: [] };
  const all = reports.reduce((sum, { newAll }) => sum + newAll, 0);
  const refused = reports.reduce((sum, { newRefused }) => sum + newRefused, 0);
  return { reported, slices: sliced(known.slices, { at: now, all, refused }) };
}

function deliveriesOf(counters: Readonly<Record<string, number>>): { readonly all: number; readonly refused: number } {
  let all = 0;
  let refused = 0;
  for (const [name, count] of Object.entries(counters)) {
    if (name.startsWith("refused:")) refused += count;
    if (name.startsWith("refused:") || name.startsWith("slot:")) all += count;
  }
  return { all, refused };
}

function sliced(slices: readonly Slice[], added: Slice): readonly Slice[] {
  const recent = slices.filter(({ at }) => at > added.at - SHARE_OVER_MS);
  const last = recent.at(-1);
  if (last === undefined || added.at >= last.at + SLICE_MS) return [...recent, added];
  return [...recent.slice(0, -1), { at: last.at, all: last.all + added.all, refused: last.refused + added.refused }];
}

/** The value of a condition, in the unit of its limit. */
export function alertValue(condition: AlertCondition, { stats, now }: AlertFacts, memory: AlertMemory): number {
  switch (condition) {
    case "deadLetters":
      return stats.gauges.dead;
    case "late":
      return (memory.late?.slices ?? []).reduce(
        (sum, { at, count }) => (at > now - LATE_OVER_MS ? sum + count : sum),
        0,
      );
    case "oldestPendingMs":
      return Math.max(0, now - (stats.oldestPendingAt ?? now));
    case "quarantine":
      return stats.gauges.quarantined;
    case "refusedShare":
      return shareOf(memory.refusals?.slices ?? [], now);
    case "workerMissing":
      return Math.max(0, now - (memory.workerAt ?? now));
    default:
      return condition satisfies never;
  }
}

function shareOf(slices: readonly Slice[], now: number): number {
  const recent = slices.filter(({ at }) => at > now - SHARE_OVER_MS);
  const sum = (count: "all" | "refused") => recent.reduce((total, slice) => total + slice[count], 0);
  return sum("all") < LEAST_DELIVERIES ? 0 : Math.round((sum("refused") / sum("all")) * 1_000) / 1_000;
}

const counted = (count: number) => count.toLocaleString("en-US");
const percent = (share: number) => `${Math.round(share * 100)} %`;

interface Wording {
  /** What holds, with the value and the limit in its unit. */
  readonly began: (value: number, limit: number) => string;
  readonly ended: string;
  readonly fix: string;
}

const WORDINGS: Readonly<Record<AlertCondition, Wording>> = {
  deadLetters: {
    began: (value, limit) => `dead letters in the inbox: ${counted(value)} (limit ${counted(limit)})`,
    ended: "the dead letters are below the limit again",
    fix: 'Run "oncehook inbox ls --group-by error", fix the cause, then run "oncehook inbox replay --all --skip-superseded".',
  },
  late: {
    began: (value, limit) => `events of the last hour that came late: ${counted(value)} (limit ${counted(limit)})`,
    ended: "fewer events come late than the limit",
    fix: 'Run "oncehook inbox ls --late": each came after a later one of its lane was handled. What they changed may be out of date.',
  },
  oldestPendingMs: {
    began: (value, limit) => `the oldest pending event is ${lasting(value)} old (limit ${lasting(limit)})`,
    ended: "no pending event is older than the limit",
    fix: 'Run "oncehook inbox ls --state pending --oldest": handlers are too slow, failing, or not running.',
  },
  quarantine: {
    began: (value, limit) => `signed bodies in quarantine: ${counted(value)} (limit ${counted(limit)})`,
    ended: "the quarantine is below the limit again",
    fix: 'Run "oncehook inbox quarantine ls". Upgrade oncehook if the service sends something new, then replay them.',
  },
  refusedShare: {
    began: (value, limit) =>
      `${percent(value)} of the deliveries of the last 5 minutes were refused (limit ${percent(limit)})`,
    ended: "fewer deliveries are refused than the limit",
    fix: 'Run "oncehook doctor": it names the reasons, such as a wrong secret.',
  },
  workerMissing: {
    began: (value, limit) => `no process has run a worker for ${lasting(value)} (limit ${lasting(limit)})`,
    ended: "a worker runs again",
    fix: 'Start a process that calls receiver.start() or receiver.drain(), then run "oncehook doctor".',
  },
};

/** The sentences of a message, without the receiver's name. */
export function alertText({ condition, status, value, limit, at, since }: Omit<Alert, "text">): string {
  const { began, ended, fix } = WORDINGS[condition];
  const said = status === "began" ? began(value, limit) : `${ended}, after ${lasting(at - since)}`;
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}.${status === "began" ? ` ${fix}` : ""}`;
}
