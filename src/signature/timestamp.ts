/** Reads the timestamp header's text strictly, and says whether its age lies within the tolerance. */
import { invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";

/**
 * How the timestamp text is read: `"auto"` takes 10 digits as seconds and 13 as milliseconds, `"s"` and `"ms"` take only
 * one of them, and a function turns any other text into epoch milliseconds (NaN, or throwing, means malformed). A text with a
 * "." never reaches the function: the signature covers `<timestamp>.<body>`, so bytes could be moved across that dot.
 */
export type TimestampFormat = "auto" | "s" | "ms" | ((text: string) => number);

/** How far a timestamp may lie from now, both ends included. Milliseconds. */
export interface Tolerance {
  readonly pastMs: number;
  readonly futureMs: number;
}

/** 5 minutes both ways: right where nothing remembers the identities of earlier deliveries. */
export const DEFAULT_TOLERANCE: Tolerance = { pastMs: 300_000, futureMs: 300_000 };

const LONGEST_TOLERANCE_MS = 30 * 86_400_000;
/** Printable ASCII, so that the text has one byte form, and no dot. */
const CUSTOM_TEXT = /^[\x20-\x2d\x2f-\x7e]{1,64}$/;

/**
 * Checks a tolerance option: one number for both ways, or `{ pastMs, futureMs }`; 1 ms to 30 days each. `0`, negative
 * numbers, `NaN` and `Infinity` are errors, never "off".
 *
 * @throws SetupError naming the option
 */
export function toleranceOption(name: string, value: unknown, fallback: Tolerance): Tolerance {
  if (value === undefined) return fallback;
  const bounds = { min: 1, max: LONGEST_TOLERANCE_MS, unit: "ms" };
  if (typeof value !== "object" || value === null) {
    const both = numberOption(name, value, fallback.pastMs, bounds);
    return { pastMs: both, futureMs: both };
  }
  refuseUnknownOptions(name, value, ["pastMs", "futureMs"]);
  const { pastMs, futureMs }: { pastMs?: unknown; futureMs?: unknown } = value;
  return {
    pastMs: numberOption(`${name}.pastMs`, pastMs, fallback.pastMs, bounds),
    futureMs: numberOption(`${name}.futureMs`, futureMs, fallback.futureMs, bounds),
  };
}

/** Checks a `timestampFormat` option. @throws SetupError */
export function timestampFormatOption(value: unknown): void {
  if (value === undefined || value === "auto" || value === "s" || value === "ms" || typeof value === "function") return;
  throw invalidOption("timestampFormat", 'must be "auto", "s", "ms" or a function', value);
}

/** The text as epoch milliseconds, or null when it is malformed. Only ASCII digits count; no space, sign or exponent. */
export function parseTimestamp(text: string, format: TimestampFormat): number | null {
  if (typeof format === "function") return parseCustom(text, format);
  const unitMs = text.length === 13 ? 1 : 1000;
  if (text.length !== 13 && text.length !== 10) return null;
  if ((format === "s" && unitMs === 1) || (format === "ms" && unitMs === 1000)) return null;
  let value = 0;
  for (let index = 0; index < text.length; index++) {
    const digit = text.charCodeAt(index) - 48;
    if (digit < 0 || digit > 9) return null;
    value = value * 10 + digit;
  }
  return value * unitMs;
}

function parseCustom(text: string, parse: (text: string) => number): number | null {
  if (!CUSTOM_TEXT.test(text)) return null;
  try {
    const timestamp: unknown = parse(text);
    return typeof timestamp === "number" && Number.isFinite(timestamp) ? Math.round(timestamp) : null;
  } catch {
    // What a request contains must not throw: the header made the function fail, so the header is malformed.
    return null;
  }
}

/** Null when the age is within the tolerance. */
export function checkAge(
  timestamp: number,
  now: number,
  tolerance: Tolerance,
): "timestamp_too_old" | "timestamp_in_future" | null {
  if (now - timestamp > tolerance.pastMs) return "timestamp_too_old";
  return timestamp - now > tolerance.futureMs ? "timestamp_in_future" : null;
}
