/** What a request does that drives its lane. */
import type { Acceptance } from "../../src/inbox/store.ts";
import type { Bench } from "./bench.ts";

/** Drives the lane of what was accepted, and tells how often it was said not to be due. */
export function drive(bench: Bench, acceptance: Acceptance): { refused: number } {
  if (acceptance.outcome === "failed") throw acceptance.error;
  const told = { refused: 0 };
  bench.worker.claimOnDemand(acceptance.lane, acceptance.event, () => told.refused++);
  return told;
}
