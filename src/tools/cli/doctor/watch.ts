/** `oncehook doctor --watch`: prints when a condition of an inbox begins to need a person, and when it ends. */
import { type Clock, sleep, systemClock } from "../../../internal/clock.ts";
import { advanced, NOTHING_NOTED } from "../../../receiver/alert-note.ts";
import {
  ALERT_CONDITIONS,
  type Alert,
  type AlertLimits,
  type AlertMemory,
  alertValue,
  remembered,
} from "../../../receiver/alerts.ts";
import type { Inbox } from "../../../receiver/open-inbox.ts";
import { CommandError, endingSignal, USAGE_MISTAKE } from "../exit.ts";
import { inWords, openAt, type StoreFlags } from "../flags.ts";
import { printable, type Terminal, timeText } from "../terminal.ts";

/** As often as a receiver with `alerts` looks. */
const LOOK_MS = 10_000;

/** Documented in docs/cli.md. A gap is waited for up to 85 minutes, and a cron may drain every few minutes. */
const WATCH_LIMITS: Required<AlertLimits> = {
  deadLetters: 1,
  late: 100,
  oldestPendingMs: 90 * 60_000,
  quarantine: 1,
  refusedShare: 0.5,
  workerMissing: 10 * 60_000,
};

/** Prints until a signal comes. @throws CommandError without an inbox to watch */
export async function watch(flags: StoreFlags, terminal: Terminal): Promise<void> {
  if (flags.store === undefined) throw new CommandError("--watch takes --store: it watches an inbox.", USAGE_MISTAKE);
  const stop = new AbortController();
  void endingSignal().then(() => stop.abort());
  const inbox = await openAt(flags).catch((error: unknown) => {
    throw inWords(error);
  });
  try {
    terminal.note("Watching the inbox. Ctrl-C ends it.");
    const onFailure = () => terminal.tell("The inbox could not be read. It is read again every 10 seconds.");
    for await (const alert of alertsOf(inbox, { onFailure, signal: stop.signal }))
      await terminal.result(alert, () => alertLine(alert));
  } finally {
    await inbox.close();
  }
}

interface Watching {
  /** Called when the inbox cannot be read, once until it can. */
  readonly onFailure: () => void;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/** The same conditions and messages as the option `alerts`. It notes nothing in the inbox, so it says what began before it, too. */
export async function* alertsOf(
  inbox: Pick<Inbox, "stats" | "rules">,
  { onFailure, signal, clock = systemClock }: Watching,
): AsyncGenerator<Alert> {
  const notes = new Map(ALERT_CONDITIONS.map((condition) => [condition, NOTHING_NOTED]));
  let memory: AlertMemory = {};
  let episodes = 0;
  let isFailing = false;
  for (; !signal.aborted; await sleep(clock, LOOK_MS, signal)) {
    const stats = await inbox.stats().catch(() => null);
    if (stats === null && !isFailing) onFailure();
    isFailing = stats === null;
    if (stats === null) continue;
    const facts = { stats, now: clock.now(), workerIdleMs: null };
    memory = remembered(memory, WATCH_LIMITS, facts);
    for (const [condition, note] of notes) {
      const look = { condition, value: alertValue(condition, facts, memory), limit: WATCH_LIMITS[condition] };
      const newId = () => `watch-${++episodes}`;
      const { unsent, ...after } = advanced(note, { ...look, now: facts.now, receiver: inbox.rules.name, newId });
      notes.set(condition, { ...after, unsent: [] });
      yield* unsent;
    }
  }
}

function alertLine({ at, status, text, condition }: Alert): string {
  return `${timeText(at)}  ${status}  ${printable(text)} (${condition})`;
}
