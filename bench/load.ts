/**
 * The load generator, a process of its own: a fixed number of requests over keep-alive connections, one at a time on each.
 * Plain sockets and ready-made bytes, because on two cores a client that costs as much as the server halves every figure.
 */
import { connect, type Socket } from "node:net";
import { p99 } from "../test/support/statistics.ts";
import { answerParent } from "./child.ts";
import { requests, type Sender } from "./deliveries.ts";

export const CONNECTIONS = 64;
/** How often a paced load looks whether the next request is due. */
const PACE_MS = 1;

export type LoadQuestion = LoadMaking | LoadSending;

interface LoadMaking {
  readonly make: number;
  readonly lifecycles: boolean;
  /** Default: the messaging service. */
  readonly senders?: readonly Sender[];
}

/** Sends what was made last; servers of one sender that are compared get the same bytes. */
interface LoadSending {
  readonly sendTo: number;
  /** Default: the messaging service. */
  readonly sender?: Sender;
  /** Only the first so many. */
  readonly count?: number;
  /** Default: as fast as they are answered. */
  readonly perSecond?: number;
}

export interface LoadResult {
  readonly perSecond: number;
  /** Milliseconds that one request in a hundred took longer than. */
  readonly p99Ms: number;
}

const made: Record<Sender, Buffer[]> = { service: [], stripe: [] };

answerParent<LoadQuestion>(async (question) => {
  if ("sendTo" in question) return send(question);
  const { make, lifecycles, senders = ["service"] } = question;
  for (const sender of senders) made[sender] = requests(make, lifecycles, sender);
  return make;
});

async function send({ sendTo, sender = "service", perSecond, ...sending }: LoadSending): Promise<LoadResult> {
  const { count = made[sender].length } = sending;
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => open(sendTo)));
  const waits = new Float64Array(count);
  const start = performance.now();
  let next = 0;
  const take = () => (next < count ? next++ : null);
  // A paced request that finds no connection free goes out as soon as one is.
  const isDue = () => perSecond === undefined || next < ((performance.now() - start) / 1000) * perSecond;
  await Promise.all(sockets.map((socket) => inTurn(socket, { requests: made[sender], take, isDue, waits })));
  const seconds = (performance.now() - start) / 1000;
  for (const socket of sockets) socket.destroy();
  return { perSecond: count / seconds, p99Ms: p99(waits) };
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
    socket.once("error", reject);
  });
}

interface Sending {
  readonly requests: readonly Buffer[];
  /** The next request; null when there is no more. */
  take(): number | null;
  isDue(): boolean;
  readonly waits: Float64Array;
}

/** Sends on one connection until there is no more; every answer must be a 200. */
function inTurn(socket: Socket, { requests, take, isDue, waits }: Sending): Promise<void> {
  return new Promise((resolve, reject) => {
    let index: number | null = null;
    let sentAt = 0;
    let received = "";
    const sendNext = () => {
      if (!isDue()) return void setTimeout(sendNext, PACE_MS);
      index = take();
      if (index === null) return resolve();
      sentAt = performance.now();
      socket.write(requests[index] ?? "");
    };
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (!isComplete(received)) return;
      if (!received.startsWith("HTTP/1.1 200 ")) return reject(new Error(received.slice(0, received.indexOf("\r\n"))));
      received = "";
      waits[index ?? 0] = performance.now() - sentAt;
      sendNext();
    });
    socket.once("close", () => reject(new Error("The server closed a connection.")));
    sendNext();
  });
}

const LENGTH = /\r\ncontent-length: (\d+)\r\n/i;

function isComplete(answer: string): boolean {
  const head = answer.indexOf("\r\n\r\n");
  return head >= 0 && answer.length >= head + 4 + Number(LENGTH.exec(answer)?.[1] ?? 0);
}
