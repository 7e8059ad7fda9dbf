/** What a benchmark finds: rows that say a figure, its limit and whether it holds. */
import { median } from "../test/support/statistics.ts";
import type { Side } from "./sides.ts";

/** One comparison. `ratio` is the figure itself where nothing is compared, such as events a second. */
export interface Row {
  readonly name: string;
  readonly ratio: number;
  readonly target: number;
  /** Where the figure must lie, seen from `target`; near it where a document says it. */
  readonly bound: "at most" | "at least" | "within 2 % of";
  readonly unit: "times" | "events/s" | "sends/s" | "ms" | "MiB" | "bytes" | "requests" | "messages" | "statements";
  readonly ok: boolean;
  /** The two figures behind a ratio, for people. */
  readonly detail: string;
  /** What the charts of docs/benchmarks.md show of it. */
  readonly points?: readonly Point[];
}

export type Point =
  | { readonly chart: "throughput"; readonly side: Side; readonly perSecond: number }
  | { readonly chart: "cost"; readonly series: string; readonly stored: number; readonly microseconds: number };

/** A row that cannot be measured on this machine. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

/** Rows that are measured together, as one takes its turns with the next. */
export interface Group {
  /** The names of its rows, so that one can be asked for without running the others. */
  readonly names: readonly string[];
  /** Measures the rows in `wanted`. */
  run(wanted: ReadonlySet<string>): Promise<readonly (Row | LeftOut)[]>;
}

export interface Limit {
  readonly name: string;
  readonly target: number;
  readonly bound: Row["bound"];
  readonly unit?: Row["unit"];
}

export function row({ name, target, bound, unit = "times" }: Limit, figure: number, detail: string): Row {
  const ratio = Number(figure.toPrecision(4));
  return { name, ratio, target, bound, unit, ok: HOLDS[bound](ratio, target), detail };
}

const HOLDS: Readonly<Record<Row["bound"], (figure: number, target: number) => boolean>> = {
  "at most": (figure, target) => figure <= target,
  "at least": (figure, target) => figure >= target,
  "within 2 % of": (figure, target) => Math.abs(figure - target) <= 0.02 * target,
};

/** The median of what each round says: a moment in which the machine was busy spoils one round, not the ratio. */
export function ratioOf(numerators: readonly number[], denominators: readonly number[]): number {
  return median(numerators.map((value, round) => value / (denominators[round] ?? Number.NaN)));
}

/** `12,345` */
export function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}
