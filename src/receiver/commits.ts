/** Measures write transactions for whoever listens: the batcher makes turns, and need not know who watches them. */
import type { TurnTaker } from "../inbox/batcher.ts";
import type { Instruments } from "../inbox/instruments.ts";
import type { Turn, TurnResult } from "../inbox/store.ts";
import type { Clock } from "../internal/clock.ts";

export function measuredSteps<Tx>(store: TurnTaker<Tx>, clock: Clock, instruments: () => Instruments): TurnTaker<Tx> {
  const measured = async (turn: Turn<Tx>): Promise<TurnResult> => {
    const startedAt = clock.monotonic();
    let result: TurnResult | null = null;
    try {
      result = await store.step(turn);
      return result;
    } finally {
      instruments().commit({
        ok: result !== null,
        accepts: turn.accepts.length,
        quarantines: turn.quarantines.length,
        settles: ended(turn, result),
        leases: result?.leases.length ?? 0,
        retired: result?.retired.length ?? 0,
        durationMs: clock.monotonic() - startedAt,
      });
    }
  };
  return {
    capabilities: store.capabilities,
    acceptsQuickly: (event) => store.acceptsQuickly?.(event) ?? false,
    step: (turn) => (instruments().hears("commit") ? measured(turn) : store.step(turn)),
  };
}

/** What is unfinished, or has failed with its effect, comes again in a later turn, and is counted there. */
function ended<Tx>({ settles }: Turn<Tx>, result: TurnResult | null): number {
  if (result === null) return settles.length;
  return result.settled.filter(({ status }) => status === "settled" || status === "lost").length;
}
