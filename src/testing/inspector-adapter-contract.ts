/** The contract that every adapter of the inspector keeps, as a suite: over real HTTP on loopback, with raw sockets. */
import type { BodyState, ContractExpect } from "./adapter-contract-bench.ts";
import { type MakeInspectorServer, runInspectorCase } from "./inspector-adapter-bench.ts";
import { requestCases } from "./inspector-adapter-requests.ts";
import { streamCases } from "./inspector-adapter-streams.ts";

export type { MakeInspectorServer };

export interface InspectorAdapterContractOptions<Native> {
  /** Registers one test: `test` of Vitest, Jest or `node:test`. */
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly expect: ContractExpect;
  /** Makes a server with the adapter under test, once for every case. */
  readonly makeServer: MakeInspectorServer<Native>;
  /** What an application can do to a body before this adapter sees it. Default: all; cases of other states are left out. */
  readonly bodyStates?: readonly BodyState[];
}

/**
 * Registers the cases that every adapter of the inspector must pass. The suite knows no framework: `makeServer` brings it.
 *
 * @returns how many cases were registered
 * @example
 * inspectorAdapterContract({ test, expect, makeServer: async ({ inspector }) => serve(createServer(nodeInspector(inspector))) });
 */
export function inspectorAdapterContract<Native>({
  test,
  expect,
  makeServer,
  bodyStates = ["raw", "parsed", "captured"],
}: InspectorAdapterContractOptions<Native>): number {
  const cases = [...requestCases, ...streamCases].filter(({ bodyState = "raw" }) => bodyStates.includes(bodyState));
  for (const one of cases) test(one.name, () => runInspectorCase(one, makeServer, expect));
  return cases.length;
}
