/** Hears everything that is said, by where it is said, and keeps what must not have been. */
import { inspect } from "node:util";
import { ALL_MARKS, Finder, MARKS, PERSONAL_MARKS, UNLOGGED_MARKS } from "./marks.ts";

/** Every way out of a receiver but its database. */
export const SOURCES = [
  "log",
  "stderr",
  "answer",
  "error",
  "trace",
  "metric",
  "scrape",
  "channel",
  "operator",
  "stored error",
] as const;
export type Source = (typeof SOURCES)[number];

export interface Leak {
  readonly source: Source;
  readonly mark: string;
  readonly said: string;
}

/** Where a finding stands is shown by this much around it. */
const SHOWN = 200;

export class Ears {
  readonly leaks: Leak[] = [];
  /** How much each source said; one that said nothing proves nothing. */
  readonly heard = new Map<Source, number>(SOURCES.map((source) => [source, 0]));
  readonly #all = new Finder(ALL_MARKS);
  readonly #personal = new Finder(PERSONAL_MARKS);
  readonly #unlogged = new Finder(UNLOGGED_MARKS);
  readonly #remarks = new Finder(MARKS.remarks);
  /** How often a log said what an error of the application says: if never, nothing is shown of how it is masked. */
  remarks = 0;

  hear(source: Source, said: unknown): void {
    this.heard.set(source, (this.heard.get(source) ?? 0) + 1);
    const text = textOf(said);
    if (source === "log" || source === "stderr") this.remarks += this.#remarks.find(text).length;
    for (const mark of this.#finderFor(source).find(text)) {
      const at = Math.max(0, text.toLowerCase().indexOf(mark.toLowerCase()) - SHOWN / 2);
      this.leaks.push({ source, mark, said: text.slice(at, at + SHOWN) });
    }
  }

  /** What a handler threw is stored and logged for the developer, without what is personal in it. */
  #finderFor(source: Source): Finder {
    if (source === "stored error") return this.#personal;
    return source === "log" || source === "stderr" ? this.#unlogged : this.#all;
  }

  /** Of an error that an application gets what it would print; a cause is the application's own. */
  hearError(error: unknown): void {
    if (!(error instanceof Error)) return this.hear("error", error);
    this.hear("error", { ...error, name: error.name, message: error.message, cause: undefined });
  }
}

function textOf(said: unknown): string {
  if (typeof said === "string") return said;
  return inspect(said, {
    depth: 12,
    maxArrayLength: null,
    maxStringLength: null,
    breakLength: Number.POSITIVE_INFINITY,
  });
}
