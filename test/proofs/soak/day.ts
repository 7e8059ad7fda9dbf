/** A soak's days are as long as a test has time for, but a day apart by the clock, so that what is past its retention really goes. */

const MINUTE_MS = 60_000;

export const TOLERANCE = { past: 5 * MINUTE_MS, future: MINUTE_MS } as const;

/** The shortest that the tolerance allows. */
const RETAINED_MS = 24 * 60 * MINUTE_MS + TOLERANCE.past + TOLERANCE.future;

export const RETENTION = {
  handledBodiesMs: RETAINED_MS,
  otherBodiesMs: RETAINED_MS,
  identitiesMs: RETAINED_MS,
  deadMs: RETAINED_MS,
} as const;

/** From one day to the next: longer than a day of the test lasts beyond the retention. */
export const DAY_MS = RETAINED_MS + 60 * MINUTE_MS;
