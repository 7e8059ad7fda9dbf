/** Checks of what applications pass: options, each validated and then defaulted, and the shapes of values. A misspelled option names the likely one. */
import { type OncehookErrorCode, SetupError } from "../errors.ts";

/** Throws a `SetupError` for any key of `options` that is not in `known`, naming the closest known one. */
export function refuseUnknownOptions(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new SetupError("invalid_option", `${owner} takes an options object.`);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    throw new SetupError("invalid_option", `${owner} has no option "${key}". ${suggestion(key, known)}`, {
      fields: { option: key },
    });
  }
}

/** The bounds of a numeric option, both included. */
export interface Bounds {
  readonly min: number;
  readonly max: number;
  /** What the number counts, for the message: "ms", "bytes", "events". */
  readonly unit: string;
  /** Refuse fractions. Default true. */
  readonly integer?: boolean;
}

/** Returns `value`, or `fallback` when it is undefined; throws a `SetupError` when it lies outside `bounds`. */
export function numberOption(name: string, value: unknown, fallback: number, bounds: Bounds): number {
  if (value === undefined) return fallback;
  const { min, max, unit, integer = true } = bounds;
  const fits = typeof value === "number" && value >= min && value <= max && (!integer || Number.isInteger(value));
  if (fits) return value;
  throw invalidOption(name, `must be ${integer ? "a whole number" : "a number"} from ${min} to ${max} ${unit}`, value);
}

/** Returns `value`, or `fallback` when it is undefined; throws a `SetupError` when it is none of `choices`. */
export function choiceOption<T extends string>(name: string, value: unknown, fallback: T, choices: readonly T[]): T {
  if (value === undefined) return fallback;
  if ((choices as readonly unknown[]).includes(value)) return value as T;
  throw invalidOption(name, `must be one of ${choices.map((c) => `"${c}"`).join(", ")}`, value);
}

/** Returns a text that is not empty, or undefined; throws a `SetupError` for anything else. */
export function textOption(name: string, value: unknown): string | undefined {
  if (value === undefined || (typeof value === "string" && value !== "")) return value;
  throw wrongType(name, "must be a text that is not empty", value);
}

/** Returns `value`, or `fallback` when it is undefined; throws a `SetupError` for anything but true and false. */
export function booleanOption(name: string, value: unknown, fallback: boolean): boolean {
  if (value === undefined) return fallback;
  if (typeof value === "boolean") return value;
  throw invalidOption(name, "must be true or false", value);
}

/** Returns a function, or undefined; throws a `SetupError` for anything else. */
export function functionOption<F>(name: string, value: F): F {
  if (value === undefined || typeof value === "function") return value;
  throw invalidOption(name, "must be a function", value);
}

/** A `SetupError` about one option. The value is shown only when it is a number, a boolean or absent: never a text. */
export function invalidOption(
  name: string,
  rule: string,
  value?: unknown,
  code: OncehookErrorCode = "invalid_option",
): SetupError {
  const isPlain = typeof value === "number" || typeof value === "boolean";
  return refusal(name, `${rule}; it is ${isPlain ? value : typeOf(value)}`, code);
}

/** The same, but never shows the value, because it may be a secret: YAML and JSON read a secret of digits as a number. */
export function wrongType(
  name: string,
  rule: string,
  value: unknown,
  code: OncehookErrorCode = "invalid_option",
): SetupError {
  return refusal(name, `${rule}; it is ${typeof value === "number" ? "a number" : typeOf(value)}`, code);
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : typeof value;
}

function refusal(name: string, said: string, code: OncehookErrorCode): SetupError {
  return new SetupError(code, `Option "${name}" ${said}.`, { fields: { option: name } });
}

/** "Did you mean …?" when a known word is close to `word`, otherwise the list of known words. */
export function suggestion(word: string, known: readonly string[]): string {
  const likely = closest(word, known);
  return likely === undefined ? `Known: ${known.join(", ")}.` : `Did you mean "${likely}"?`;
}

function closest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance, on one row. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length }, (_, column) => column + 1);
  let distance = b.length;
  for (let i = 0; i < a.length; i++) {
    let diagonal = i;
    distance = i + 1;
    row = row.map((above, j) => {
      distance = Math.min(above + 1, distance + 1, diagonal + (a[i] === b[j] ? 0 : 1));
      diagonal = above;
      return distance;
    });
  }
  return distance;
}

// Shapes: these test what is used of a value, not its class, because applications may bring other implementations.

/** Whether a value is an object with fields, and not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value can be awaited. Libraries have promises of their own. */
export function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}

export function isAbortSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, throwIfAborted }: Partial<Record<keyof AbortSignal, unknown>> = value;
  return typeof aborted === "boolean" && typeof addEventListener === "function" && typeof throwIfAborted === "function";
}
