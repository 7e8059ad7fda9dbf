/** How long the cases of the store contract keep what was accepted. */
import type { PrunePolicy } from "../inbox/store.ts";

export const DAY = 86_400_000;

export const POLICY: PrunePolicy = {
  handledBodiesMs: 7 * DAY,
  otherBodiesMs: 30 * DAY,
  identitiesMs: 30 * DAY,
  deadMs: 90 * DAY,
  batch: 1_000,
};
