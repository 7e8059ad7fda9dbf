/** How long an inbox keeps what: the option, its floor, and pruning by it in batches. */
import type { InboxStore, PruneResult } from "../inbox/store.ts";
import { invalidOption, numberOption, refuseUnknownOptions } from "../internal/options.ts";

const DAY_MS = 86_400_000;
/** Rows of a kind in one pruning transaction: short enough not to be noticed between two turns. */
const PRUNE_BATCH = 500;

/** Milliseconds, 0 to 10 years. */
export interface RetentionOptions {
  /** Bodies of handled events. Default 7 days. */
  readonly handledBodiesMs?: number;
  /** Bodies of late and unhandled events. Default 30 days. */
  readonly otherBodiesMs?: number;
  /** Identities, by which a duplicate is known; never less than the tolerance and a day. Default 30 days. */
  readonly identitiesMs?: number;
  /** Dead letters and quarantined bodies nobody acted on; never less than the tolerance and a day. Default 90 days. */
  readonly deadMs?: number;
}

export type Retention = Required<RetentionOptions>;

/**
 * @param toleranceMs - past and future tolerance together: for so long one delivery can be replayed
 * @throws SetupError for a time out of bounds, or below the floor
 */
export function retentionOption(value: RetentionOptions | undefined, toleranceMs: number): Retention {
  if (value !== undefined)
    refuseUnknownOptions("retention", value, ["handledBodiesMs", "otherBodiesMs", "identitiesMs", "deadMs"]);
  const bounds = { min: 0, max: 3_650 * DAY_MS, unit: "ms" };
  const shortest = toleranceMs + DAY_MS;
  const retention = {
    handledBodiesMs: numberOption("retention.handledBodiesMs", value?.handledBodiesMs, 7 * DAY_MS, bounds),
    otherBodiesMs: numberOption("retention.otherBodiesMs", value?.otherBodiesMs, 30 * DAY_MS, bounds),
    identitiesMs: numberOption("retention.identitiesMs", value?.identitiesMs, 30 * DAY_MS, bounds),
    deadMs: numberOption("retention.deadMs", value?.deadMs, 90 * DAY_MS, bounds),
  };
  for (const name of ["identitiesMs", "deadMs"] as const) {
    if (retention[name] >= shortest) continue;
    throw invalidOption(
      `retention.${name}`,
      `must be at least ${shortest} ms (tolerance and a day), or a delivery replayed within the tolerance would be handled again`,
      retention[name],
    );
  }
  return retention;
}

/** Removes what is past its retention, however much it is; other work comes in after each batch. */
export async function* pruneBatches(
  store: Pick<InboxStore, "prune">,
  retention: Retention,
): AsyncGenerator<PruneResult, void> {
  for (let more = true; more; ) {
    const batch = await store.prune({ ...retention, batch: PRUNE_BATCH });
    ({ more } = batch);
    if (more) await new Promise<void>((resolve) => setImmediate(resolve));
    yield batch;
  }
}
