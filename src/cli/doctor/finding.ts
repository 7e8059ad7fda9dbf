/** What a check of `oncehook doctor` found, and how it is mended. */
import { counted } from "../inbox/printable.ts";

/** `problem` ends the command with 3; `warning` may be meant so; `skipped` could not be looked at. */
export type Level = "ok" | "warning" | "problem" | "skipped";

export interface Finding {
  /** Stable. Of `ok` and `skipped`, the name of the check. */
  readonly code: string;
  readonly level: Level;
  /** Never a secret, a phone number or a text. */
  readonly what: string;
  /** What to do; null where nothing is to be done. Of `skipped`, what lets it be looked at: flags, or a sentence. */
  readonly fix: string | null;
}

export function ok(code: string, what: string): Finding {
  return { code, level: "ok", what, fix: null };
}

export function warning(code: string, what: string, fix: string): Finding {
  return { code, level: "warning", what, fix };
}

export function problem(code: string, what: string, fix: string): Finding {
  return { code, level: "problem", what, fix };
}

export function skipped(code: string, what: string, fix: string): Finding {
  return { code, level: "skipped", what, fix };
}

/** With a capital at its beginning. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** In the largest unit that it has: `3 days`, `47 seconds`. */
export function lasting(ms: number): string {
  const [noun, unit] = UNITS.find(([, unit]) => ms >= unit) ?? ["second", 1_000];
  return counted(Math.floor(ms / unit), noun);
}

const MOST_NAMED = 3;

/** The first ids, and how many more there are. */
export function named(ids: readonly string[]): string {
  const more = ids.length - MOST_NAMED;
  return ids.slice(0, MOST_NAMED).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
