import { describe, expect, it } from "vitest";
import type { InboxStore } from "../../src/inbox/store.ts";
import { memoryStore } from "../../src/stores/memory.ts";
import { storeContract } from "../contracts/store.ts";
import type { ModelRuns } from "../contracts/store-model-runs.ts";

interface Outcome {
  readonly passed: string[];
  readonly skipped: string[];
  readonly failed: Map<string, unknown>;
}

/** Runs the suite by a runner of our own on memory stores that `spoil` has had its hands on. */
async function runContract(spoil: (store: InboxStore) => Partial<InboxStore>, fastCheck: ModelRuns | false = false) {
  const tests: [string, (context: { skip(): void }) => Promise<void>][] = [];
  storeContract({
    test: (name, body) => void tests.push([name, body]),
    expect,
    fastCheck,
    makeStore: async () => {
      const store: InboxStore = memoryStore({ volatile: true });
      return { store: { ...store, ...spoil(store) }, dispose: async () => {} };
    },
  });
  const outcome: Outcome = { passed: [], skipped: [], failed: new Map() };
  for (const [name, body] of tests) {
    let list = outcome.passed;
    const skip = () => {
      list = outcome.skipped;
    };
    await body({ skip }).then(
      () => list.push(name),
      (error) => outcome.failed.set(name, error),
    );
  }
  return outcome;
}

describe("storeContract()", () => {
  it("registers over a hundred tests, with the group as a prefix of the name, and skips by capability", async () => {
    const { passed, skipped, failed } = await runContract(() => ({}));
    expect(failed.size).toBe(0);
    expect(passed.length).toBeGreaterThan(100);
    expect(passed).toContain("gaps: does not wait where the gap wait is 0, and records the gap all the same (I6)");
    expect(skipped.length).toBeGreaterThan(5);
  });

  it("detects a store that does not commit what it acknowledges (I2)", async () => {
    const { failed } = await runContract((store) => ({
      step: async (turn) => ({
        ...(await store.step({ ...turn, quarantines: [] })),
        quarantined: turn.quarantines.map(() => "held"),
      }),
    }));
    expect([...failed.keys()]).toContain("accept: holds a quarantined body once, byte for byte (I10)");
  });

  it("detects a store that renews lost leases (I3)", async () => {
    const { failed } = await runContract(() => ({ extend: async (leases) => leases.map(() => true) }));
    expect([...failed.keys()]).toContain(
      "recovery: fences off the holder of a lease that was recovered: all its settles are lost (I3)",
    );
  });

  it("detects by the model a store that forgets a gap, and prints the seed", async () => {
    const forgetful = (store: InboxStore): Partial<InboxStore> => ({
      step: async (turn) => {
        const result = await store.step(turn);
        return { ...result, leases: result.leases.map((lease) => ({ ...lease, missing: null })) };
      },
    });
    const { failed } = await runContract(forgetful, { runs: 20, commands: 60 });
    const [, error] = [...failed].find(([name]) => name.startsWith("model:")) ?? [];
    expect(String(error)).toMatch(/seed: -?\d+/);
  });

  it("repeats a run of the model with its seed", async () => {
    const rows: number[] = [];
    const count = (store: InboxStore): Partial<InboxStore> => ({
      step: (turn) => {
        rows.push(turn.accepts.length);
        return store.step(turn);
      },
    });
    const run = async () => {
      rows.length = 0;
      await runContract(count, { runs: 3, commands: 20, seed: 7 });
      return rows.join();
    };
    expect(await run()).toBe(await run());
  });
});
