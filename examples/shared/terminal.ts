/** How the demos look on a terminal: marks, tables, and colours where somebody sees them. */
import { styleText } from "node:util";

type Colour = Parameters<typeof styleText>[0];

/** Something that had to be so. */
export interface Check {
  readonly ok: boolean;
  readonly text: string;
}

/** Colours the text on a terminal, unless `NO_COLOR` is set. */
export function paint(colour: Colour, text: string): string {
  return process.stdout.isTTY && !process.env.NO_COLOR ? styleText(colour, text) : text;
}

export function checkLine({ ok, text }: Check): string {
  return `${ok ? paint("green", "✓") : paint("red", "✗")} ${text}`;
}

/** A head, a rule and the rows, their cells one below the other. */
export function tableLines(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  const rule = widths.map((width) => "─".repeat(width)).join("───");
  return [paint("bold", line(head)), paint("dim", rule), ...rows.map(line)];
}
