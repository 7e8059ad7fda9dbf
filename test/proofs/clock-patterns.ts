/** How wall clocks go wrong: by how much a machine's differs from the service's, one setting after the other. */
import { seededRandom } from "../../src/tools/testing/index.ts";

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

export interface Pattern {
  readonly name: string;
  /** Milliseconds ahead, each for a while; it ends with the right time. */
  readonly settings: readonly number[];
}

/** Up and down by the hour, as when two machines in turn set a third one's clock. */
const sawtooth = [1, 2, 3, 0, 1, 2, 3, 0].map((hours) => hours * HOUR_MS);

const PATTERNS: readonly Pattern[] = [
  { name: "an hour back and ahead", settings: [-HOUR_MS, 0, HOUR_MS] },
  { name: "two hours ahead", settings: [2 * HOUR_MS] },
  { name: "ten years back", settings: [-10 * YEAR_MS] },
  { name: "ten years ahead", settings: [10 * YEAR_MS] },
  { name: "a sawtooth", settings: sawtooth },
];

/** Those five, and more that are made of their steps at random. */
export function patterns(count: number, seed: number): readonly Pattern[] {
  const random = seededRandom(seed);
  const steps = [-10 * YEAR_MS, -HOUR_MS, 0, HOUR_MS, 2 * HOUR_MS, 10 * YEAR_MS];
  const more = Array.from({ length: Math.max(0, count - PATTERNS.length) }, (_, index) => ({
    name: `random ${index + 1}`,
    settings: Array.from(
      { length: 2 + Math.floor(random() * 6) },
      () => steps[Math.floor(random() * steps.length)] ?? 0,
    ),
  }));
  return [...PATTERNS, ...more].slice(0, count);
}
