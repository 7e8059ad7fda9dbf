/** How big the house is: figures of the sources, each beside its target. Pure: the script measures and prints. */
import { linesOf, type Project, type SourceFile, shipped } from "../architecture/project.ts";

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The figure is met when the value is not above `most`, nor below `least`. */
  readonly most: number;
  readonly least?: number;
}

export function isMet({ value, most, least = Number.NEGATIVE_INFINITY }: Figure): boolean {
  return value <= most && value >= least;
}

export function line(figure: Figure): string {
  const { name, value, unit, most, least } = figure;
  const target = least === undefined ? `at most ${most}` : `${least} to ${most}`;
  return `${isMet(figure) ? "ok  " : "MISS"} ${name.padEnd(56)} ${`${value} ${unit}`.padStart(14)}  (${target})`;
}

/** What the sources alone show; `others` counts the page's style sheets and markup, which are files but not TypeScript. */
export function sourceFigures(project: Project, others: number): readonly Figure[] {
  const files = shipped(project);
  return [
    { name: "files of src and adapters", value: files.length + others, unit: "files", most: 260 },
    { name: "code lines, without blanks and comments", value: sum(files.map(codeLines)), unit: "lines", most: 38_500 },
    { name: "lines of the median file", value: median(files.map(linesOf)), unit: "lines", least: 120, most: 160 },
    { name: "names exported by more than one file", value: sharedNames(project).length, unit: "names", most: 20 },
  ];
}

/** Lines with code on them. Text inside of quotes and templates counts as code. */
export function codeLines({ text }: SourceFile): number {
  const withoutBlocks = text.replace(/\/\*[\s\S]*?\*\//g, "");
  return withoutBlocks.split("\n").filter((line) => !/^\s*(?:\/\/|$)/.test(line)).length;
}

const EXPORTED =
  /^export (?:default )?(?:async )?(?:abstract )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm;

/** Names that several files declare and export: a reader who searches for one finds two things. */
export function sharedNames(project: Project): readonly (readonly [name: string, files: readonly string[]])[] {
  const homes = new Map<string, string[]>();
  for (const { path, text } of shipped(project))
    for (const [, name = ""] of text.matchAll(EXPORTED)) homes.set(name, [...(homes.get(name) ?? []), path]);
  return [...homes].filter(([, files]) => new Set(files).size > 1);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1
    ? (sorted[Math.floor(middle)] ?? 0)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
