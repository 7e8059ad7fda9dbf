/** Cases over real connections, which stay open: against a receiver on a memory inbox behind a server of node:http. */

import { createServer } from "node:http";
import { nodeWebhook } from "../../../adapters/node.ts";
import { createReceiver } from "../../../src/index.ts";
import { systemClock } from "../../../src/internal/clock.ts";
import { memoryStore } from "../../../src/stores/memory.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import type { Case } from "./case.ts";
import type { Dice } from "./dice.ts";
import { jsonCase } from "./json-case.ts";
import { mutatedCase } from "./mutated.ts";
import { asReceived, type RawAnswer, RawConnection } from "./raw-connection.ts";
import { headersOf, Ledger, NOW, SECRET, type Signed, signedAt, TOLERANCE_MS } from "./signed.ts";
import type { Watch } from "./watch.ts";

const CONNECTIONS = 16;
/** Few, so that a store that has seen them all grows no more. */
const JSON_BODIES = 300;
/** What a receiver answers to whom it has no reason to answer otherwise; 400 and 431 are also node's own, to what is no HTTP. */
const STATUSES = new Set([200, 400, 401, 413, 415, 431]);

export interface HttpTerms {
  readonly pool: readonly Signed[];
  readonly count: number;
  diceOf(sort: number, index: number): Dice;
  nameOf(sort: string, index: number, kind: string): string;
}

/** How often each status was answered. */
export async function fuzzOverHttp(watch: Watch, terms: HttpTerms): Promise<Readonly<Record<string, number>>> {
  if (terms.count === 0) return {};
  const { port, stop } = await serve();
  const connections = Array.from({ length: CONNECTIONS }, () => new RawConnection(port));
  const judge = judgeOf(watch, terms.pool);
  const batch = (turn: number) =>
    Promise.all(
      connections.map(async (connection, place) => {
        const index = turn * CONNECTIONS + place;
        const request = requestOf(terms, index);
        watch.count(`over HTTP: ${request.due}`);
        const answer = await connection.send(request, terms.diceOf(5, index));
        judge(terms.nameOf("http", index, request.kind), request, answer);
      }),
    );
  await watch.whole("requests over HTTP", Math.ceil(terms.count / CONNECTIONS), batch);
  for (const connection of connections) connection.close();
  await stop();
  return Object.fromEntries(judge.statuses);
}

async function serve(): Promise<{ port: number; stop(): Promise<void> }> {
  const receiver = createReceiver<never>({
    ...{ secrets: SECRET, store: memoryStore({ volatile: true }), gapWait: "eager" },
    ...{ toleranceMs: { past: TOLERANCE_MS, future: TOLERANCE_MS }, clock: { ...systemClock, now: () => NOW } },
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  receiver.onAny(() => {}).onLate(() => {});
  await receiver.start();
  const server = createServer(nodeWebhook(receiver));
  const port = await listenOnLoopback(server);
  const stop = async () => {
    server.closeAllConnections();
    server.close();
    await receiver.stop({ timeoutMs: 1_000 });
  };
  return { port, stop };
}

/** Mostly mutated ones, and some that are rightly signed, whatever is in them. */
function requestOf({ pool, diceOf }: HttpTerms, index: number): Case {
  const dice = diceOf(4, index);
  if (!dice.isOneIn(8)) return mutatedCase(dice, pool);
  const { kind, body } = jsonCase(diceOf(3, dice.below(JSON_BODIES)));
  return { kind, headers: headersOf(signedAt(body, NOW)), body, now: NOW, due: "accepted" };
}

/** Judges by the status, and by what a server can see of the request: header values have no white space around them. */
function judgeOf(watch: Watch, pool: readonly Signed[]) {
  const ledger = new Ledger(pool);
  const statuses = new Map<number, number>();
  const judge = (name: string, request: Case, { status, body }: RawAnswer) => {
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (!STATUSES.has(status)) watch.found(`${name} was answered with ${status} over HTTP`);
    // A body too large for a receiver is refused whoever signed it.
    const isRefusedSize = status === 413 && request.body.length > 262_144;
    if (request.due === "accepted" && status !== 200 && !isRefusedSize) {
      watch.found(`${name} was refused over HTTP with ${status}, though it is rightly signed`);
    }
    if (request.due === "accepted") return;
    // What is refused for its content was parsed, and nobody had verified it.
    if (status === 400 && body !== "") watch.found(`${name} was told ${body} before it was verified`);
    if (status !== 200) return;
    if (request.due === "refused" || !ledger.hasSigned(asReceived(request))) {
      watch.found(`${name} was accepted over HTTP wrongly`);
    }
  };
  return Object.assign(judge, { statuses });
}
