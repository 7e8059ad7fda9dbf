/** The table of docs/reliability.md that says what finds each bug: a row is written when all that it names were seen to find it. */
import { BUGS, type Bug } from "./bugs.ts";

export const MATRIX_FILE = "docs/reliability.md";

const START = "<!-- bugs: what finds each, written by MATRIX=1 npm run prove -- planted -->";
const END = "<!-- end of bugs -->";
const HEAD = "| room | bug | made by | programme | test |\n|---|---|---|---|---|";

export function rowOf({ room, name, madeBy, caughtBy, tests }: Bug): string {
  const programme = caughtBy === undefined ? "none" : `\`${caughtBy}\``;
  return `| ${room} | ${name.replaceAll("|", "\\|")} | ${madeBy ?? "hand"} | ${programme} | \`${tests}\` |`;
}

/** The rows in a text, without the table's head. */
export function rowsIn(text: string): readonly string[] {
  const [, table = ""] = text.split(START);
  return (table.split(END)[0] ?? "")
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| room |"));
}

/** The text with the rows of `caught` too, in the order of the list, and without rows of what is not in the list any more. */
export function withRows(text: string, caught: readonly Bug[]): string {
  const known = new Set([...rowsIn(text), ...caught.map(rowOf)]);
  const rows = BUGS.map(rowOf).filter((row) => known.has(row));
  const [before = "", table = ""] = text.split(START);
  const after = table.split(END)[1] ?? "";
  return `${before}${START}\n${[HEAD, ...rows].join("\n")}\n${END}${after}`;
}
