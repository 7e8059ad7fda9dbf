/** What the demo prints and finds: chapters, checks and tables, and what became of each message. */
import type { LogFields, Logger } from "oncehook";
import type { HandledRow } from "../shared/handled.ts";
import { type Check, checkLine, paint, tableLines } from "../shared/terminal.ts";

export class Report {
  readonly checks: Check[] = [];
  /** All that was printed so far. */
  readonly lines: string[] = [];
  readonly #write: (line: string) => void;
  readonly #stop: AbortSignal | undefined;

  /** @param stop - once it aborts, the next line throws its reason, which ends the story */
  constructor(write: (line: string) => void, stop?: AbortSignal) {
    this.#write = write;
    this.#stop = stop;
  }

  chapter(name: string): void {
    this.#print(`\n${paint("bold", name)}`);
  }

  say(text: string): void {
    this.#print(`  ${text}`);
  }

  /** Something that has to be true; `end()` counts them. */
  check(ok: boolean, text: string): void {
    this.checks.push({ ok, text });
    this.say(checkLine({ ok, text }));
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    for (const line of tableLines(head, rows)) this.say(line);
  }

  /** Prints the sum. Returns the exit code: 0 if every check held, and there were some. */
  end(seconds: number): number {
    const failed = this.checks.filter(({ ok }) => !ok);
    const held = this.checks.length > 0 && failed.length === 0;
    const sum = held
      ? `All ${this.checks.length} checks held, in ${seconds.toFixed(1)} s.`
      : `${failed.length} of ${this.checks.length} checks failed.`;
    this.chapter(sum);
    for (const check of failed) this.say(checkLine(check));
    return held ? 0 : 1;
  }

  #print(line: string): void {
    this.#stop?.throwIfAborted();
    this.lines.push(line);
    this.#write(line);
  }
}

/** A logger that keeps its lines, so that the demo can search what emulator, client and receiver logged. */
export interface KeptLog extends Logger {
  readonly lines: readonly string[];
}

export function createLog(): KeptLog {
  const lines: string[] = [];
  const keep = (level: string) => (fields: LogFields, message: string) => {
    lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  };
  return { lines, debug: keep("debug"), info: keep("info"), warn: keep("warn"), error: keep("error") };
}

/** One message: which events it had, in which order they arrived, and in which order they were handled. */
export interface Life {
  readonly messageId: string;
  /** The sequences of its events; an inbound message has one event, 0. */
  readonly made: readonly number[];
  readonly arrived: readonly Arrival[];
  /** From the application's own table. */
  readonly handled: readonly number[];
}

interface Arrival {
  readonly sequence: number;
  /** The application's answer; null when none came. */
  readonly status: number | null;
}

interface ServiceEvent {
  readonly eventId: string;
  readonly messageId: string;
  readonly sequence: number | null;
}

interface ServiceAttempt {
  readonly eventId: string;
  readonly status: number | null;
}

export function livesOf(
  events: readonly ServiceEvent[],
  attempts: readonly ServiceAttempt[],
  rows: readonly HandledRow[],
): Life[] {
  const sequences = new Map(events.map(({ eventId, sequence }) => [eventId, sequence ?? 0]));
  return [...new Set(events.map(({ messageId }) => messageId))].map((messageId) => {
    const own = events.filter((event) => event.messageId === messageId);
    const ids = new Set(own.map(({ eventId }) => eventId));
    return {
      messageId,
      made: own.map(({ sequence }) => sequence ?? 0),
      arrived: attempts
        .filter(({ eventId }) => ids.has(eventId))
        .map(({ eventId, status }) => ({ sequence: sequences.get(eventId) ?? 0, status })),
      handled: rows.filter((row) => row.message_id === messageId).map(({ sequence }) => sequence),
    };
  });
}

/** `1 2✗ 3 2`: a mark after an attempt that was not taken. */
export function arrivalsOf({ arrived }: Life): string {
  return arrived.map(({ sequence, status }) => `${sequence}${status === 200 ? "" : "✗"}`).join(" ");
}

/** The number of events that were never handled. */
export function lostOf({ made, handled }: Life): number {
  return made.filter((sequence) => !handled.includes(sequence)).length;
}

/** The number of rows beyond one for each event. */
export function handledTwiceOf({ handled }: Life): number {
  return handled.length - new Set(handled).size;
}

export function isInOrder({ handled }: Life): boolean {
  return handled.every((sequence, index) => index === 0 || sequence > (handled[index - 1] ?? 0));
}
