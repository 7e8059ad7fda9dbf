/** Where a command prints: its results on standard output, everything said beside them on standard error. */
import { styleText } from "node:util";
import type { Command } from "commander";
import { type Clock, systemClock } from "../internal/clock.ts";
import { CommandError, FAILURE, isSystemError } from "./failure.ts";
import { codeOf } from "./signals.ts";

/** Flags that every command takes. */
export interface OutputFlags {
  /** Results as JSON, one object a line, and nothing else on standard output. */
  readonly json?: boolean;
  /** Say nothing that is no result: no remarks, no progress. */
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

  /** Prints a result: `value` with `--json`, else the text. Resolves when it has left the process. */
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

  /** A bar for `total` steps, or a count where nobody knows how many there will be; invisible where nobody watches. */
  progress(title: string, total: number | null): Progress {
    if (this.#quiet || this.json || !process.stderr.isTTY) return { at() {}, end() {} };
    let drawnAt = Number.NEGATIVE_INFINITY;
    return {
      at: (done) => {
        const now = this.#clock.monotonic();
        if (now - drawnAt < DRAW_EVERY_MS && (total === null || done < total)) return;
        drawnAt = now;
        process.stderr.write(`\r\u001b[K${barText(title, done, total)}`);
      },
      end: () => process.stderr.write("\r\u001b[K"),
    };
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

/** Resolves when the text has left the process: what a command beside it prints comes after. */
export async function print(text: string): Promise<void> {
  const cause = await new Promise((resolve) => process.stdout.write(text, resolve));
  if (cause) throw unwritten(cause);
}

/** What to throw when standard output did not take something: a reader that is gone is told nothing more. */
export function unwritten(cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  if (cause.code === "EPIPE") return new CommandError("", codeOf("SIGPIPE"), { cause });
  return new CommandError(`Cannot write to standard output: ${cause.code}.`, FAILURE, { cause });
}

function ended(text: string): string {
  return text === "" || text.endsWith("\n") ? text : `${text}\n`;
}
