/** What every case of the inspector's adapter contract stands on: something mountable that a case answers for, behind a server. */

import type { InspectorAnswer, InspectorRequest, Mountable } from "../inspector/http.ts";
import { silentLogger } from "../internal/logger.ts";
import type { AdapterServer, BodyState, ContractExpect } from "./adapter-contract-bench.ts";
import {
  connectionsTo,
  type HeaderLines,
  requestBytes,
  type WireAnswer,
  type WireConnection,
} from "./adapter-contract-wire.ts";

/**
 * Makes a server with the adapter for `/inspector` and all below it, and with a sibling `GET /other` that answers 200 with
 * the text `other`.
 */
export type MakeInspectorServer<Native> = (setup: {
  readonly inspector: Mountable<Native>;
  readonly bodyState: BodyState;
}) => Promise<AdapterServer>;

export interface InspectorBench {
  readonly expect: ContractExpect;
  /** What reached the inspector. */
  readonly seen: InspectorRequest[];
  connect(): Promise<WireConnection>;
  /** Sends one request on its own connection, by default `GET /inspector/`. */
  ask(request?: Asked): Promise<WireAnswer>;
}

export interface Asked {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: HeaderLines;
  readonly body?: Uint8Array;
  readonly chunks?: readonly Uint8Array[];
}

export interface InspectorCase {
  readonly name: string;
  /** Default `"raw"`. */
  readonly bodyState?: BodyState;
  /** Makes the case's answers. */
  make?(): (request: InspectorRequest) => Promise<InspectorAnswer> | InspectorAnswer;
  run(bench: InspectorBench): Promise<void>;
}

export const INSPECTOR_PATH = "/inspector";

/** An answer that is all there at once. */
export function textAnswer(status: number, text: string): InspectorAnswer {
  const headers = { "content-type": "text/plain; charset=utf-8", "content-length": `${Buffer.byteLength(text)}` };
  return { status, headers, body: text };
}

/** A JSON POST as the page sends it. */
export function jsonPost(text: string | Uint8Array): Asked {
  const body = Buffer.from(text);
  return {
    method: "POST",
    path: `${INSPECTOR_PATH}/api/events`,
    headers: [["Content-Type", "application/json"]],
    body,
  };
}

export function bytesOf({ method = "GET", path = `${INSPECTOR_PATH}/`, ...rest }: Asked): Buffer {
  return requestBytes({ method, path, ...rest });
}

/** Runs one case against a server of its own. */
export async function runInspectorCase<Native>(
  { bodyState = "raw", make, run }: InspectorCase,
  makeServer: MakeInspectorServer<Native>,
  expect: ContractExpect,
): Promise<void> {
  const seen: InspectorRequest[] = [];
  const answerTo = make?.() ?? (() => textAnswer(200, "page"));
  const inspector: Mountable<Native> = {
    path: INSPECTOR_PATH,
    logger: silentLogger,
    async handle(request) {
      seen.push(request);
      return answerTo(request);
    },
  };
  const server = await makeServer({ inspector, bodyState });
  const connections = connectionsTo(server.port);
  const { connect } = connections;
  const ask = async (asked: Asked = {}) => {
    const connection = await connect();
    connection.send(bytesOf(asked));
    return connection.answer({ bodyless: asked.method === "HEAD" });
  };
  try {
    await run({ expect, seen, connect, ask });
  } finally {
    connections.close();
    await server.close();
  }
}
