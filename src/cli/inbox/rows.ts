/** Prints rows: a table for people, an object a line for programs. */
import type { Page } from "../../inbox/store.ts";
import { jsonLine, print, type Terminal } from "../terminal.ts";

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
