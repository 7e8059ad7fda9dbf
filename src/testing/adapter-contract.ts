/** The contract that every adapter keeps, as a suite: over real HTTP on loopback, with raw sockets. */
import { answerCases } from "./adapter-contract-answers.ts";
import { type BodyState, type ContractExpect, type MakeAdapterServer, runCase } from "./adapter-contract-bench.ts";
import { bodyCases } from "./adapter-contract-bodies.ts";

export type { AdapterServer, BodyState, ContractExpect, MakeAdapterServer } from "./adapter-contract-bench.ts";

export interface AdapterContractOptions {
  /** Registers one test: `test` of Vitest, Jest or `node:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly expect: ContractExpect;
  /** Makes a server with the adapter under test, once for every case. */
  readonly makeServer: MakeAdapterServer;
  /** What an application can do to a body before this adapter sees it. Default: all; cases of other states are left out. */
  readonly bodyStates?: readonly BodyState[];
}

/**
 * Registers the cases that every adapter must pass. The suite knows no framework: `makeServer` brings it.
 *
 * @returns how many cases were registered
 * @example
 * adapterContract({ test, expect, makeServer: async ({ receiver }) => serve(createServer(nodeWebhook(receiver))) });
 */
export function adapterContract({
  test,
  expect,
  makeServer,
  bodyStates = ["raw", "parsed", "captured"],
}: AdapterContractOptions): number {
  const cases = [...bodyCases, ...answerCases].filter(({ bodyState = "raw" }) => bodyStates.includes(bodyState));
  for (const one of cases) test(one.name, () => runCase(one, makeServer, expect));
  return cases.length;
}
