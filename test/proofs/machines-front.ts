/** The load balancer before the machines: each attempt goes to the next one in turn, whichever had the one before. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { seededRandom } from "../../src/tools/testing/index.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";
import { bytesOf } from "./careless.ts";
import type { Machine } from "./machines.ts";

/** When the service gives an attempt up. */
export const ATTEMPT_TIMEOUT_MS = 600;
/** Before the service gives up, so that it hears why. */
const TIMEOUT_MS = ATTEMPT_TIMEOUT_MS - 200;
/** Of all attempts, those that it turns away, and those whose answer is lost after a machine has given it. */
const SHARE_TURNED_AWAY = 0.08;
const SHARE_LOST = 0.08;
/** Of all attempts, those that it answers with 200 when it acknowledges what no machine has seen. */
const SHARE_UNSTORED = 0.1;

export interface Front {
  readonly url: string;
  /** Events that more than one machine answered to, in attempts or duplicates of one event. */
  readonly atBoth: number;
  close(): Promise<void>;
}

interface FrontOptions {
  readonly machines: readonly Machine[];
  /** Whether it turns attempts away and loses answers. */
  readonly fails: boolean;
  /** The control: it acknowledges what no machine has seen. */
  readonly isCareless: boolean;
}

/** What becomes of an attempt; null for a lost answer. */
type Status = number | null;

export async function openFront({ machines, fails, isCareless }: FrontOptions): Promise<Front> {
  const random = seededRandom(1);
  const answeredBy = new Map<string, Set<string>>();
  let turn = 0;
  const forward = async (incoming: IncomingMessage): Promise<Status> => {
    const body = await bytesOf(incoming);
    if (isCareless && random() < SHARE_UNSTORED) return 200;
    const dice = fails ? random() : 1;
    if (dice < SHARE_TURNED_AWAY) return 503;
    const machine = machines[turn++ % machines.length];
    if (machine === undefined) return 502;
    const status = await statusOf(machine, incoming, body);
    const name = body.toString("base64");
    answeredBy.set(name, (answeredBy.get(name) ?? new Set()).add(machine.name));
    return dice < SHARE_TURNED_AWAY + SHARE_LOST ? null : status;
  };
  const server = createServer(async (incoming, response) => {
    const status = await forward(incoming).catch(() => 502);
    if (status === null) response.destroy();
    else response.writeHead(status).end();
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/webhooks`,
    get atBoth() {
      return [...answeredBy.values()].filter(({ size }) => size > 1).length;
    },
    close: () => endServer(server),
  };
}

/** Rejects when the machine is down or stands still. */
async function statusOf(
  machine: Machine,
  { method = "POST", headers }: IncomingMessage,
  body: Buffer,
): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const outgoing = request(machine.url, { method, headers, signal }).end(body);
  const [answer] = (await once(outgoing, "response")) as [IncomingMessage];
  answer.resume();
  return answer.statusCode ?? 502;
}
