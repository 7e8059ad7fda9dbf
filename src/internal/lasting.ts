/** A length of time in words. */

const UNITS = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** In the largest unit that it has: `3 days`, `47 seconds`. */
export function lasting(ms: number): string {
  const [noun, unit] = UNITS.find(([, unit]) => ms >= unit) ?? ["second", 1_000];
  const count = Math.floor(ms / unit);
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}
