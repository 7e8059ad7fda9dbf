/** Rows as text/csv (RFC 4180), in which no cell is a formula to the program that opens it. */

/** Spreadsheets compute what begins so. */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

export type Cell = string | number | boolean | null;

/** A line with its end. */
export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

function csvCell(cell: Cell): string {
  const written = cell === null ? "" : `${cell}`;
  const harmless = FORMULA.test(written) ? `'${written}` : written;
  return NEEDS_QUOTES.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
