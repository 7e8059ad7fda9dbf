/** An inspector on a recorded log and a fake clock, whose rights a test sets by a header. */
import type { IncomingMessage } from "node:http";
import {
  createInspector,
  type Grant,
  type Inspector,
  type InspectorOptions,
} from "../../../../src/tools/inspector/index.ts";
import { type Bench, memoryBench } from "../../../receiver/bench.ts";
import { type Mounted, mounted } from "./mounted.ts";

/** Says in a request what its sender may do; without it, nothing. */
export const RIGHT = "x-test-right";

export interface Scene<Tx = never> extends Bench<Tx> {
  readonly inspector: Inspector<IncomingMessage>;
  readonly server: Mounted;
}

export async function inspected(options: Partial<InspectorOptions<IncomingMessage>> = {}): Promise<Scene> {
  return inspectedOn(memoryBench(), options);
}

export async function inspectedOn<Tx>(
  bench: Bench<Tx>,
  options: Partial<InspectorOptions<IncomingMessage>> = {},
): Promise<Scene<Tx>> {
  const { receiver, clock, logger } = bench;
  let inspector: Inspector<IncomingMessage> | undefined;
  const server = await mounted((origin) => {
    inspector = createInspector({
      ...{ inbox: receiver.inbox, authorize: rightOf, origins: [origin], clock, logger },
      ...options,
    });
    return inspector;
  });
  if (inspector === undefined) throw new Error("The server mounted nothing.");
  return { ...bench, inspector, server };
}

function rightOf({ headers }: IncomingMessage): Grant {
  const right = headers[RIGHT];
  return right === "read" || right === "act" || right === "reveal" ? right : false;
}
