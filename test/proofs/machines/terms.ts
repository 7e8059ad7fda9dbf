/** What the service, the front and the machines of a run have in common. */

export const SECRET = "one-secret-for-all-of-32-bytes-x";
/** The shortest there is: a machine that vanished delays its messages by so much. */
export const LEASE_MS = 1_000;
/** When the service gives an attempt up; the front does so a little earlier, and answers. */
export const ATTEMPT_TIMEOUT_MS = 600;

/** What a run does wrong on purpose, so that the verdict on it must say so. */
export type Flaw = "effect_outside_commit" | "acknowledged_unstored";
