/** Values of flags that several commands read: from the text to what is meant, or a message that says how it is written. */
import { InvalidArgumentError } from "commander";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90m`, `7d`, `250ms`: in milliseconds. */
export function duration(text: string): number {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (amount === undefined) throw new InvalidArgumentError("Write a number and a unit: 30s, 90m, 12h, 7d.");
  return Math.round(Number(amount) * (UNIT_MS[unit] ?? Number.NaN));
}

/** A reader of whole numbers from `min` to `max`. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
    throw new InvalidArgumentError(`It takes a whole number ${range}.`);
  };
}

/** A time of day means nothing without its zone; a day alone begins in UTC. */
const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d)(?:(:\d\d)(\.\d+)?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/;

/** An instant as epoch milliseconds or in ISO 8601: in epoch milliseconds. */
export function instant(text: string): number {
  const value = instantOf(text);
  if (value !== undefined) return value;
  throw new InvalidArgumentError("Write epoch milliseconds, or a time such as 2026-01-01T00:00:00Z.");
}

/** The same for a flag with words of its own; undefined for a text that is no instant. */
export function instantOf(text: string): number | undefined {
  // Thirteen digits: seconds would be a day of 1970.
  if (/^\d{13}$/.test(text)) return Number(text);
  const [, day, minute = "00:00", second = ":00", fraction = "", zone = "Z"] = ISO_TIME.exec(text) ?? [];
  const time = `${day}T${minute}${second}`;
  // 30 February is read as a day of March: what does not print back as it was written does not exist.
  const there = Date.parse(`${time}Z`);
  if (Number.isNaN(there) || !new Date(there).toISOString().startsWith(time)) return undefined;
  return Date.parse(`${time}${fraction}${zone}`);
}

/** For a flag that may be given several times: all of its values. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
