/** Rows as text/csv (RFC 4180), in which no cell is a formula to the program that opens it. */

/** Spreadsheets compute what begins so; and some let a cell begin behind a semicolon, a tab or any end of a line, quoted or not, and with a quote or two. */
const FORMULAS = /^(?=[\t\r])|(?=[=+\-@])(?<=(?:^|[;\t\r\n])"*)/g;
const NEEDS_QUOTES = /[",\r\n]/;

export type Cell = string | number | boolean | null;

/** A line with its end. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  const written = cell === null ? "" : `${cell}`;
  const harmless = written.replace(FORMULAS, "'");
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
