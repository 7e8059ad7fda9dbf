/** One request on one connection, and its answer. */
import { type ClientRequest, request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import type { LookupFunction } from "node:net";
import { type Clock, sleep } from "../../internal/clock.ts";
import { type Agents, isReusable } from "./connections.ts";
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
  /** Its reason is the word for what it ends. */
  readonly signal: AbortSignal;
}

const PIECES = 10;

/** Sent once, whatever comes of it. Rejects for a method or header that no request can have; a network's failures are outcomes. */
export function exchange(outgoing: Outgoing, wire: Wire): Promise<Outcome> {
  const { signal, clock } = wire;
  if (signal.aborted) return Promise.resolve(failure(signal.reason));
  return new Promise((resolve) => {
    const begun = clock.monotonic();
    const request = open(outgoing, wire);
    const end = (outcome: Outcome) => {
      signal.removeEventListener("abort", abort);
      resolve(outcome);
    };
    const abort = () => {
      end(failure(signal.reason));
      request.destroy();
    };
    signal.addEventListener("abort", abort);
    request.on("error", (error) => end(failure(wordOf(error))));
    // For what ends without an error, such as an answer that switches protocols; anything else has ended already.
    request.on("close", () => end(failure("reset")));
    request.on("response", (response) => {
      // Before Node's own listener, which gives the connection back or ends it.
      response.prependOnceListener("end", () => {
        if (!isReusable(response, clock.monotonic() - begun)) request.shouldKeepAlive = false;
      });
      readAnswer(response, (outcome) => {
        end(outcome);
        // An answer that is too long is not read on, and a request that was answered early is not written on.
        if (!response.complete || !request.writableFinished) request.destroy();
      });
    });
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
