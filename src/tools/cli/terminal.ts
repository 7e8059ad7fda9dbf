/** Where a command prints: its results on standard output, everything said next to them on standard error. */
import { createInterface } from "node:readline";
import { styleText } from "node:util";
import type { Command } from "commander";
import type { Page } from "../../inbox/store.ts";
import { type Clock, systemClock, type Timer } from "../../internal/clock.ts";
import { CommandError, codeOf, FAILURE, isSystemError, NEGATIVE, USAGE_MISTAKE } from "./exit.ts";

/** Flags that every command takes. */
export interface OutputFlags {
  /** Results as JSON, one object a line, and nothing else on standard output. */
  readonly json?: boolean;
  /** Print results only: no remarks, no progress. */
  readonly quiet?: boolean;
}

type Style = Parameters<typeof styleText>[0];

/** Progress of long work, drawn on standard error where that is a terminal. */
export interface Progress {
  /** `done` of the total so far. Cheap: it is drawn a few times a second. */
  at(done: number): void;
  /** Removes the bar. */
  end(): void;
}

/** Gives a command the flags of `Terminal`. `--debug` is read by the program, which prints the error. */
export function addOutputFlags(command: Command): Command {
  return command
    .option("--json", "print results as JSON, one object a line")
    .option("--quiet", "print results and errors only")
    .option("--debug", "print the stack of an error");
}

const DRAW_EVERY_MS = 100;
const BAR = 24;

export class Terminal {
  readonly json: boolean;
  readonly #quiet: boolean;
  readonly #clock: Clock;

  constructor({ json = false, quiet = false }: OutputFlags, clock: Clock = systemClock) {
    this.json = json;
    this.#quiet = quiet;
    this.#clock = clock;
  }

  /** Prints a result: `value` with `--json`, otherwise the text. Resolves when it has left the process. */
  result(value: object, text: () => string): Promise<void> {
    return print(this.json ? jsonLine(value) : ended(text()));
  }

  /** A remark for a person who watches; nothing with `--quiet` or `--json`. */
  note(text: string): void {
    if (!this.#quiet && !this.json) process.stderr.write(ended(text));
  }

  /** A remark without which a result would seem whole: with `--json` too, nothing with `--quiet`. */
  caveat(text: string): void {
    if (!this.#quiet) process.stderr.write(ended(text));
  }

  /** What nobody can do without: with `--quiet` and `--json` too. */
  tell(text: string): void {
    process.stderr.write(ended(text));
  }

  /** A bar for `total` steps, or a count (of `unit`) where nobody knows how many there will be; invisible where nobody watches. */
  progress(title: string, total: number | null, unit = ""): Progress {
    if (this.#quiet || this.json || !process.stderr.isTTY) return { at() {}, end() {} };
    let drawnAt = Number.NEGATIVE_INFINITY;
    return {
      at: (done) => {
        const now = this.#clock.monotonic();
        if (now - drawnAt < DRAW_EVERY_MS && (total === null || done < total)) return;
        drawnAt = now;
        process.stderr.write(`\r\u001b[K${barText(title, done, total)}${unit && ` ${unit}`}`);
      },
      end: () => this.clear(),
    };
  }

  /** Removes what progress has drawn, so that a line can be printed. It is drawn again a moment later. */
  clear(): void {
    if (process.stderr.isTTY) process.stderr.write("\r\u001b[K");
  }

  /** Shows `title` and the seconds so far while `work` runs, for work that cannot be counted; invisible where nobody watches. */
  async during<T>(title: string, work: () => Promise<T>): Promise<T> {
    const bar = this.progress(title, null, "s");
    const startedAt = this.#clock.monotonic();
    let timer: Timer | undefined;
    const draw = () => {
      bar.at(Math.round((this.#clock.monotonic() - startedAt) / 1_000));
      timer = this.#clock.setTimeout(draw, 1_000);
    };
    draw();
    try {
      return await work();
    } finally {
      timer?.cancel();
      bar.end();
    }
  }

  /** Coloured on a terminal, plain elsewhere and with NO_COLOR. */
  style(style: Style, text: string): string {
    return process.stdout.isTTY && !process.env.NO_COLOR ? styleText(style, text) : text;
  }
}

/** `Replaying [######------] 1,200 of 5,000`, or `Copying events 1,200` without a total. */
export function barText(title: string, done: number, total: number | null): string {
  if (total === null) return `${title} ${done.toLocaleString("en-US")}`;
  const filled = total === 0 ? BAR : Math.min(BAR, Math.floor((done / total) * BAR));
  const bar = "#".repeat(filled) + "-".repeat(BAR - filled);
  return `${title} [${bar}] ${done.toLocaleString("en-US")} of ${total.toLocaleString("en-US")}`;
}

/** JSON leaves these as they are, though some terminals obey them, or turn the order of what they show. */
const UNSEEN = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}]/gu;

/** One JSON object on one line, in which nothing is hidden; it parses to the same. */
export function jsonLine(value: object): string {
  return `${jsonText(value)}\n`;
}

/** The same without the end of the line, for what ends lines itself. */
export function jsonText(value: object): string {
  return JSON.stringify(value).replace(UNSEEN, escaped);
}

/** JSON has escapes of four digits only: a character beyond them is two. */
function escaped(character: string): string {
  const units = Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}

/** Columns under their names, as wide as their longest cell. */
export function tableText(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = names.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ");
  return [names, ...rows].map((cells) => `${line(cells).trimEnd()}\n`).join("");
}

/** Resolves when the text has left the process: what a command next to it prints comes after. */
export async function print(text: string): Promise<void> {
  const cause = await new Promise((resolve) => process.stdout.write(text, resolve));
  if (cause) throw unwritten(cause);
}

/** What to throw when standard output did not take something: a reader that is gone gets nothing more. */
export function unwritten(cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  if (cause.code === "EPIPE") return new CommandError("", codeOf("SIGPIPE"), { cause });
  return new CommandError(`Cannot write to standard output: ${cause.code}.`, FAILURE, { cause });
}

function ended(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}

// Texts of others on a terminal, and times.

/** Characters that a terminal obeys, or that turn the order of what it shows. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text on one line, with what cannot be seen written out. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.codePointAt(0)?.toString(16).padStart(4, "0")}`);
}

/** A table of texts that may come from anywhere. */
export function printableTable(names: readonly string[], rows: readonly (readonly string[])[]): string {
  return tableText(
    names,
    rows.map((cells) => cells.map(printable)),
  );
}

/** Facts under each other: `state    dead`. */
export function factsText(facts: Readonly<Record<string, string | number | null>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length));
  return Object.entries(facts)
    .map(([name, value]) => `${name.padEnd(width)}  ${value === null ? "-" : printable(`${value}`)}\n`)
    .join("");
}

/** Further from 1970, in milliseconds, there is no date. An event may tell any time. */
const LAST_DATE = 8.64e15;

/** `2026-01-01 12:00:00Z`; a dash for none, the number itself if it is not a date. */
export function timeText(at: number | null): string {
  if (at !== null && Math.abs(at) > LAST_DATE) return `${at}`;
  return at === null ? "-" : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** `1,200 events`, `1 event` */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`;
}

// Prints rows: a table for people, an object a line for programs.

export async function printRows<T extends object>(
  terminal: Terminal,
  rows: readonly T[],
  text: (rows: readonly T[]) => string,
): Promise<void> {
  if (rows.length === 0) return;
  await print(terminal.json ? rows.map(jsonLine).join("") : text(rows));
}

/** Says where the next page begins, and that there is nothing. */
export async function printPage<T extends object>(
  terminal: Terminal,
  { items, next }: Page<T>,
  { text, noun }: { readonly text: (rows: readonly T[]) => string; readonly noun: string },
): Promise<void> {
  await printRows(terminal, items, text);
  if (items.length === 0) terminal.note(`No ${noun} is there that matches.`);
  if (next !== null) terminal.caveat(`There are more: --after ${next}`);
}

// Asks before something is done to many rows, or for good.

export interface AskFlags {
  readonly yes?: boolean;
}

/** Where somebody may sit. */
interface Asked {
  readonly input: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output: NodeJS.WritableStream;
}

const thisTerminal = (): Asked => ({ input: process.stdin, output: process.stderr });

/** @throws CommandError where nobody can be asked and `--yes` was not given, for a caller to know before it prepares the question */
export function checkAskable({ yes }: AskFlags, { input }: Asked = thisTerminal()): void {
  if (yes || input.isTTY) return;
  throw new CommandError("This asks before it begins, and nobody is there to answer: add --yes.", USAGE_MISTAKE);
}

/** Resolves once `question` was answered with yes. @throws CommandError for any other answer */
export async function confirm(question: string, { yes }: AskFlags, asked: Asked = thisTerminal()): Promise<void> {
  if (yes) return;
  checkAskable({}, asked);
  const lines = createInterface(asked);
  const answer = await new Promise<string>((resolve, reject) => {
    lines.once("SIGINT", () => reject(new CommandError("", 130)));
    lines.once("close", () => resolve(""));
    lines.question(`${question} [y/N] `, resolve);
  }).finally(() => lines.close());
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandError("Nothing was done.", NEGATIVE);
}
