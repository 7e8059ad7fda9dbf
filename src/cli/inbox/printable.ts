/** Texts of others on a terminal, and times. */
import { tableText } from "../terminal.ts";

/** Characters that a terminal obeys, or that turn the order of what it shows. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text on one line, with what cannot be seen written out. */
export function printable(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u${character.codePointAt(0)?.toString(16).padStart(4, "0")}`);
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

/** `2026-01-01 12:00:00Z`; a dash for none, the number itself for what is no date. */
export function timeText(at: number | null): string {
  if (at !== null && Math.abs(at) > LAST_DATE) return `${at}`;
  return at === null ? "-" : `${new Date(at).toISOString().slice(0, 19).replace("T", " ")}Z`;
}

/** `1,200 events`, `1 event` */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`;
}
