/** One request on one connection, and its answer. */
import { type ClientRequest, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { type Clock, sleep } from "../../internal/clock.ts";
import type { Agents } from "./connections.ts";
import { failure, type Outcome, readAnswer, wordOf } from "./outcome.ts";

/** A request as it goes over the wire. */
export interface Outgoing {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Send the body in pieces over so many real milliseconds; null: at once. */
  readonly dribbleMs: number | null;
}

export interface Wire {
  readonly agents: Agents;
  readonly lookup: LookupFunction;
  readonly clock: Clock;
  /** When each connection was given back, on the monotonic clock. */
  readonly lastUse: WeakMap<Socket, number>;
  /** Its reason is the word for what it ends. */
  readonly signal: AbortSignal;
}

export interface Exchanged {
  readonly outcome: Outcome;
  /** The receiver had ended the idle connection before it saw the request, so that it may be sent again. */
  readonly isStale: boolean;
}

/**
 * A connection that was in use less than this ago did not fall to a receiver's idle limit: a reset there is its answer to this
 * very request, and is told as one.
 */
const IDLE_MS = 100;
const PIECES = 10;

/** Rejects for a method or header that no request can have; a network's failures are outcomes. */
export function exchange(outgoing: Outgoing, wire: Wire): Promise<Exchanged> {
  const { signal } = wire;
  if (signal.aborted) return Promise.resolve({ outcome: failure(signal.reason), isStale: false });
  return new Promise((resolve) => {
    const request = open(outgoing, wire);
    const connection = watchConnection(request, wire);
    const end = (outcome: Outcome, isStale = false) => {
      signal.removeEventListener("abort", abort);
      resolve({ outcome, isStale });
    };
    const abort = () => {
      end(failure(signal.reason));
      request.destroy();
    };
    signal.addEventListener("abort", abort);
    request.on("error", (error) => end(failure(wordOf(error)), connection.wasStale()));
    // For what ends without an error, such as an answer that switches protocols; anything else has ended already.
    request.on("close", () => end(failure("reset")));
    request.on("response", (response) =>
      readAnswer(response, (outcome) => {
        connection.release();
        end(outcome);
        // An answer that is too long is not read on, and a request that was answered early is not written on.
        if (!response.complete || !request.writableFinished) request.destroy();
      }),
    );
    write(request, outgoing, wire);
  });
}

function open({ url, method, headers, body }: Outgoing, { agents, lookup }: Wire): ClientRequest {
  const target = new URL(url);
  const options = { method, headers: { "content-length": String(body.length), ...headers }, lookup };
  return target.protocol === "https:"
    ? secureRequest(target, { ...options, agent: agents["https:"] })
    : plainRequest(target, { ...options, agent: agents["http:"] });
}

/**
 * Tells a request that was lost from one that was refused. Both end in a reset without a byte of an answer; lost is taken to be
 * what met a connection that had been idle. Should the receiver have seen it after all, it sees the event twice, as deliveries may
 * repeat one.
 */
function watchConnection(request: ClientRequest, { clock, lastUse }: Wire) {
  let socket: Socket | undefined;
  let bytesBefore = 0;
  let idleMs = 0;
  request.once("socket", (assigned) => {
    const now = clock.monotonic();
    socket = assigned;
    bytesBefore = assigned.bytesRead;
    idleMs = now - (lastUse.get(assigned) ?? now); // 0 for a fresh one.
  });
  return {
    wasStale: () => socket?.bytesRead === bytesBefore && idleMs >= IDLE_MS,
    release() {
      if (socket !== undefined) lastUse.set(socket, clock.monotonic());
    },
  };
}

function write(request: ClientRequest, { body, dribbleMs }: Outgoing, { clock, signal }: Wire): void {
  if (dribbleMs === null) request.end(body);
  else void dribble(request, body, () => sleep(clock, dribbleMs / (PIECES - 1), signal));
}

async function dribble(request: ClientRequest, body: Buffer, pause: () => Promise<void>): Promise<void> {
  const size = Math.max(1, Math.ceil(body.length / PIECES));
  for (let start = 0; start < body.length; start += size) {
    if (start > 0) await pause();
    if (request.destroyed) return;
    request.write(body.subarray(start, start + size));
  }
  request.end();
}
