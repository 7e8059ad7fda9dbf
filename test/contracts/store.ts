/** The published contract suite for stores: what every store of an inbox must do. */
import type { StoreCapabilities } from "../../src/inbox/store.ts";
import { acceptCases } from "./store-accept.ts";
import { apartCases } from "./store-apart.ts";
import { Bench, type ContractCase, type ContractExpect, type StoreUnderTest } from "./store-bench.ts";
import { claimCases, priorityCases, recoveryCases } from "./store-claim.ts";
import { columnCases } from "./store-columns.ts";
import { copyCases } from "./store-copy.ts";
import { eraseCases, subjectCases } from "./store-erase.ts";
import { filterCases } from "./store-filters.ts";
import { checkAgainstModel, type ModelRuns } from "./store-model-runs.ts";
import { noteCases } from "./store-notes.ts";
import { operatorCases, replayCases } from "./store-operator.ts";
import { gapCases, lateCases } from "./store-order.ts";
import { positionCases } from "./store-positions.ts";
import { pruneCases } from "./store-prune.ts";
import { laneCases, upkeepCases } from "./store-queries.ts";
import { sequenceCases } from "./store-sequences.ts";
import { effectCases, settleCases } from "./store-settle.ts";
import { sourceCases } from "./store-sources.ts";

/** What a test framework passes to a test, if it can skip. */
interface ContractTestContext {
  skip?(reason?: string): unknown;
}

export interface StoreContractOptions<Tx> {
  /** Registers a test: `test` of Vitest or Jest, or of `node:test` with a wrapper. The third argument is a time-out in milliseconds. */
  readonly test: (name: string, body: (context?: ContractTestContext) => Promise<void>, timeoutMs?: number) => unknown;
  /** The `expect` of Vitest or Jest. */
  readonly expect: ContractExpect;
  /** Groups the tests. Without it, the group's name is a prefix of each test's name. */
  readonly describe?: (name: string, body: () => void) => unknown;
  /** Makes a store on a place of its own. Called once for each test, and for each run of the model. */
  readonly makeStore: () => Promise<StoreUnderTest<Tx>>;
  /** The size of the model-based test, which needs fast-check; false for none. Default 300 runs of 120 commands on average. */
  readonly fastCheck?: ModelRuns | false;
}

/** Enough for files on a slow disk; in memory it takes seconds. */
const MODEL_TIMEOUT_MS = 600_000;

const GROUPS: readonly (readonly [string, readonly ContractCase[]])[] = [
  ["accept", acceptCases],
  ["apart", apartCases],
  ["gaps", gapCases],
  ["late events", lateCases],
  ["claim", claimCases],
  ["priority", priorityCases],
  ["settle", settleCases],
  ["recovery", recoveryCases],
  ["effects", effectCases],
  ["replay", replayCases],
  ["operator", operatorCases],
  ["erase", eraseCases],
  ["export", subjectCases],
  ["lanes", laneCases],
  ["upkeep", upkeepCases],
  ["prune", pruneCases],
  ["copy", copyCases],
  ["sources", sourceCases],
  ["sequences of entries", sequenceCases],
  ["position and arrival", positionCases],
  ["filters", filterCases],
  ["notes", noteCases],
  ["columns", columnCases],
];

/**
 * Registers the tests that every store must pass: examples for each operation and edge on a fake clock, and random commands
 * against a reference model. Parts that need a durable, shared or transactional store are skipped where it says that it is not.
 *
 * @example
 * import { describe, expect, test } from "vitest";
 * storeContract({ describe, test, expect, makeStore: async () => ({ store: memoryStore({ volatile: true }), dispose: async () => {} }) });
 */
export function storeContract<Tx>(options: StoreContractOptions<Tx>): void {
  const describe = options.describe ?? ((_name, body) => body());
  const title = (group: string, name: string) => (options.describe === undefined ? `${group}: ${name}` : name);
  for (const [group, cases] of GROUPS) {
    describe(group, () => {
      // Rest parameters, because Jest expects a test with a parameter to call it back.
      for (const one of cases) options.test(title(group, one.name), (...given) => runCase(options, one, given[0]));
    });
  }
  const { fastCheck = {} } = options;
  if (fastCheck === false) return;
  describe("model", () => {
    const name =
      "agrees with the reference model under random commands, and leaves no event stranded (I1, I3 to I8, I10)";
    options.test(title("model", name), () => checkAgainstModel(options, fastCheck), MODEL_TIMEOUT_MS);
  });
}

async function runCase<Tx>(
  options: StoreContractOptions<Tx>,
  one: ContractCase,
  context?: ContractTestContext,
): Promise<void> {
  const place = await options.makeStore();
  const bench = new Bench(place, options.expect, one.firstSequence);
  try {
    if (!isWithin(one, place.store.capabilities)) {
      context?.skip?.(`needs a store that is ${one.needs}`);
      return;
    }
    await bench.open();
    await one.run(bench);
  } finally {
    await bench.dispose();
  }
}

function isWithin(one: ContractCase, capabilities: StoreCapabilities): boolean {
  if (one.needs === "plain") return !capabilities.transactional;
  return one.needs === undefined || capabilities[one.needs] === true;
}
