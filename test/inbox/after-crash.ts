/** Stores with expired leases. */
import { memoryStore } from "../../src/stores/memory.ts";
import { createFakeClock } from "../../src/testing/fake-clock.ts";
import { type BenchOptions, openBench } from "./bench.ts";

/** A store in which an earlier process died while it handled the first events of `ids`; its leases have expired. */
export async function afterCrash(
  ids: readonly string[],
  attempts = 1,
): Promise<Pick<BenchOptions<never>, "store" | "clock">> {
  const clock = createFakeClock();
  const store = memoryStore({ volatile: true });
  const before = await openBench({ store, clock, register: (on) => on.onAny(() => new Promise(() => {})) });
  await Promise.all(ids.map((id) => before.accept(id)));
  const claim = { limit: 100, leaseMs: 30_000, maxAttempts: 99, onDead: "continue", takes: () => true } as const;
  const turn = { settles: [], accepts: [], quarantines: [] } as const;
  const quarantineQuota = { maxRows: 1, maxBytes: 1 };
  await store.step({ ...turn, quarantineQuota, claim: { ...claim, mode: "ordinary" } });
  for (let attempt = 1; attempt < attempts; attempt++) {
    clock.set(clock.now() + 30_000);
    for (const _ of ids) await store.step({ ...turn, quarantineQuota, claim: { ...claim, mode: "recover" } });
  }
  await store.close();
  return { store, clock };
}
