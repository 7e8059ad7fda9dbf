/** Handlers that a test ends by hand, and workers that hold leases ahead. */

import { type BenchOptions, deferred, type Handlers, openBench, rounds } from "./bench.ts";

/** A handler that each test ends by hand: `running` counts, `ends` lets the oldest go. */
export function slowHandlers() {
  const gates: ReturnType<typeof deferred<void>>[] = [];
  let most = 0;
  let now = 0;
  const handler = async () => {
    most = Math.max(most, ++now);
    const gate = deferred();
    gates.push(gate);
    await gate.promise;
    now--;
  };
  return {
    handler,
    running: () => now,
    most: () => most,
    endOne: () => gates.shift()?.resolve(),
    /** Lets as many go, each after what followed from the one before. */
    async endEach(count: number, pause: () => Promise<void> = rounds): Promise<void> {
      for (let ended = 0; ended < count; ended++) {
        gates.shift()?.resolve();
        await pause();
      }
    },
    endAll: () => {
      for (const gate of gates.splice(0)) gate.resolve();
    },
  };
}

/** A started worker whose quick handlers made it take leases ahead, then deliveries whose handlers the test ends. */
export async function takenAhead(counts: { quick: number; slow: number }, options: BenchOptions<never>) {
  const slow = slowHandlers();
  let quick = true;
  const register = (on: Handlers<never>) => on.onAny(() => (quick ? undefined : slow.handler()));
  const bench = await openBench({ ...options, register });
  bench.worker.start();
  await bench.acceptMany(counts.quick, "quick");
  await bench.clock.advance(0);
  quick = false;
  await bench.acceptMany(counts.slow, "slow");
  await rounds();
  return { bench, slow };
}
