/** One HTTP request to a receiver: guarded, timed, never redirected. */
import { lookup } from "node:dns/promises";
import {
  type ClientRequest,
  type ClientRequestArgs,
  type IncomingMessage,
  Agent as PlainAgent,
  request as plainRequest,
} from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { type Clock, sleep } from "../../../internal/clock.ts";
import type { Settings } from "../options.ts";
import { createEgressGuard, type EgressGuard, type EgressSettings } from "./egress.ts";

export interface Transport {
  /**
   * Sends it once a place is free at its receiver; then its time begins. `renew` is called at that moment and gives what is sent
   * instead, to the same receiver: the wait may have made a signature old. Never rejects.
   */
  send(outgoing: Outgoing, renew?: () => Outgoing): Promise<Outcome>;
  /** Sends it besides the places: for what somebody waits for who may have one, and would keep it until this has ended. */
  sendBesides(outgoing: Outgoing): Promise<Outcome>;
  /** Ends as `failed` what was asked for and has not begun; what is under way goes on. */
  sendAway(): void;
  /** Ends what waits or is under way as `failed`; what comes later fails as well. */
  close(): void;
}

type TransportSettings = EgressSettings & Pick<Settings, "attemptTimeoutMs" | "systemClock">;

/** Requests under way per receiver, so that one that hangs holds up no other; the rest wait in order. */
const MOST_PER_ORIGIN = 32;

/**
 * A transport with connections of its own. `resolve` looks names up; the system does by default.
 *
 * @throws SetupError for a range in `allowPrivateTargets` that is none, or is not private
 */
export function createTransport(
  settings: TransportSettings,
  { resolve = systemResolve }: { readonly resolve?: Resolve } = {},
): Transport {
  const { systemClock: clock, attemptTimeoutMs } = settings;
  const guard = createEgressGuard(settings);
  const wire = { clock, lookup: guardedLookup(guard, resolve), agents: createAgents(guard) };
  const places = createPlaces(MOST_PER_ORIGIN);
  const running = new Set<AbortController>();
  let timesSentAway = 0;
  let closed = false;

  async function send(outgoing: Outgoing, renew: () => Outgoing = () => outgoing): Promise<Outcome> {
    const refusal = refusalOf(outgoing);
    if (refusal !== null) return refusal;
    const askedAfter = timesSentAway;
    const place = await places.take(new URL(outgoing.url).origin);
    if (place === null) return failure("failed");
    try {
      // Sent away when it had a place already, but was not on the wire.
      return askedAfter === timesSentAway ? await sendNow(renew()) : failure("failed");
    } finally {
      // A watcher hears of this attempt first: it may reset, and the next one is not sent then.
      setImmediate(place.giveBack);
    }
  }

  async function sendBesides(outgoing: Outgoing): Promise<Outcome> {
    return refusalOf(outgoing) ?? sendNow(outgoing);
  }

  function refusalOf({ url }: Outgoing): Outcome | null {
    if (closed) return failure("failed");
    return guard.refusalOf(url) === null ? null : failure("blocked");
  }

  async function sendNow(outgoing: Outgoing): Promise<Outcome> {
    const controller = new AbortController();
    const { signal } = controller;
    running.add(controller);
    const timer = clock.setTimeout(() => controller.abort("timeout"), attemptTimeoutMs);
    timer.keepAlive();
    try {
      return await exchange(outgoing, { ...wire, signal });
    } catch {
      return failure("failed"); // A method or header that no request can have.
    } finally {
      timer.cancel();
      running.delete(controller);
    }
  }

  function sendAway(): void {
    timesSentAway += 1;
    places.sendAway();
  }

  function close(): void {
    closed = true;
    sendAway();
    for (const controller of running) controller.abort("failed");
  }

  return { send, sendBesides, sendAway, close };
}

// One request on one connection, and its answer.

/** A request as it goes over the wire. */
export interface Outgoing {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Send the body in pieces over so many real milliseconds; null: at once. */
  readonly dribbleMs: number | null;
}

interface Wire {
  readonly agents: Agents;
  readonly lookup: LookupFunction;
  readonly clock: Clock;
  /** Its reason is the word for what it ends. */
  readonly signal: AbortSignal;
}

const PIECES = 10;

/** Sent once, whatever comes of it. Rejects for a method or header that no request can have; a network's failures are outcomes. */
function exchange(outgoing: Outgoing, wire: Wire): Promise<Outcome> {
  const { signal } = wire;
  if (signal.aborted) return Promise.resolve(failure(signal.reason));
  return new Promise((resolve) => {
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

// Connections to receivers: never through a proxy, and checked by the egress guard before a byte is written.

/** All addresses of a name, as `dns.promises.lookup(name, { all: true })` gives them. */
export type Resolve = (name: string) => Promise<{ address: string; family: number }[]>;

const systemResolve: Resolve = (name) => lookup(name, { all: true });

/** An agent per URL scheme. */
type Agents = Readonly<Record<"http:" | "https:", PlainAgent>>;

/** What ends a connection that the guard does not allow. */
class BlockedError extends Error {
  readonly code = "EGRESS_BLOCKED";
}

/**
 * Agents of our own: the global ones follow proxy variables if Node is set up so. Each request has its own connection: one that met the
 * receiver's end of an idle connection would be lost, and look like one that the receiver refused.
 */
function createAgents(guard: EgressGuard): Agents {
  class Plain extends PlainAgent {
    override createConnection(args: ClientRequestArgs): Socket {
      return guarded(super.createConnection(args) as Socket, guard);
    }
  }
  class Secure extends SecureAgent {
    override createConnection(args: ClientRequestArgs): Socket {
      return guarded(super.createConnection(args) as Socket, guard);
    }
  }
  return { "http:": new Plain(), "https:": new Secure() };
}

/**
 * Checks where a connection really leads. It is the first to hear that it is open, so that a refused one ends with nothing
 * written, not even a TLS greeting.
 */
function guarded(socket: Socket, guard: EgressGuard): Socket {
  return socket.prependOnceListener("connect", () => {
    if (!guard.isAddressAllowed(socket.remoteAddress ?? "")) socket.destroy(blocked());
  });
}

/** A look-up for sockets that fails when any address of a name is not allowed: a name that has both kinds is suspicious. */
function guardedLookup(guard: EgressGuard, resolve: Resolve): LookupFunction {
  return (name, options, callback) => {
    resolve(name).then(
      (addresses) => {
        const [first] = addresses;
        if (first === undefined || !addresses.every(({ address }) => guard.isAddressAllowed(address))) {
          callback(blocked(), "", 0);
        } else if (options.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, "", 0),
    );
  };
}

function blocked(): BlockedError {
  return new BlockedError("This address is not one that webhooks may reach.");
}

// What comes of a request: a receiver's whole answer, or one word for why there is none.

/** What came of it. */
interface Outcome {
  /** Null when no answer came, or only a part of one. */
  readonly status: number | null;
  /** `timeout`, `reset`, `refused`, `blocked` (by the egress guard), `unresolved`, `failed`; null when an answer came. */
  readonly error: "timeout" | "reset" | "refused" | "blocked" | "unresolved" | "failed" | null;
  readonly headers: Readonly<Record<string, string>>;
  /** At most 16 KiB of the answer's body, as UTF-8 text. */
  readonly body: string;
}

type ErrorWord = NonNullable<Outcome["error"]>;

/** The part of an answer's body that is kept. A longer answer counts, but is not read on. */
const KEPT_BYTES = 16_384;

function failure(error: ErrorWord): Outcome {
  return { status: null, error, headers: {}, body: "" };
}

/** The word for an error of `node:http`, `node:net`, `node:dns` or `node:tls`. */
export function wordOf({ code = "" }: NodeJS.ErrnoException): ErrorWord {
  switch (code) {
    case "EGRESS_BLOCKED":
      return "blocked";
    case "ECONNREFUSED":
      return "refused";
    case "ECONNRESET":
    case "EPIPE":
    case "ECONNABORTED":
      return "reset";
    case "ETIMEDOUT":
      return "timeout";
    case "ENOTFOUND":
    case "ENODATA":
      return "unresolved";
    default:
      return code.startsWith("EAI_") ? "unresolved" : "failed";
  }
}

/** Reads an answer to its end, or as far as it is kept; then calls `done`. */
function readAnswer(response: IncomingMessage, done: (outcome: Outcome) => void): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = () =>
    done({
      status: response.statusCode ?? null,
      error: null,
      headers: headersOf(response),
      body: textOf(Buffer.concat(chunks), length > KEPT_BYTES),
    });
  response.on("data", (chunk: Buffer) => {
    if (length < KEPT_BYTES) chunks.push(chunk.subarray(0, KEPT_BYTES - length));
    length += chunk.length;
    if (length > KEPT_BYTES) finish();
  });
  response.on("end", finish);
  response.on("error", (error) => done(failure(wordOf(error))));
}

/** Without the date: nearly every receiver sends one, and with it no two runs would have the same log. */
function headersOf({ headers: { date: _, ...headers } }: IncomingMessage): Record<string, string> {
  const entries = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(", ") : (value ?? ""),
  ]);
  return Object.fromEntries(entries);
}

/** A character that the limit cut in two is left out. */
function textOf(bytes: Buffer, isCut: boolean): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: isCut });
}

// A bounded number of places per key; who finds none free waits in turn.

interface Places {
  /** Resolves with a place of this key, to be given back once; or with null when sent away before one was free. */
  take(key: string): Promise<Place | null>;
  /** Sends away all who wait now. */
  sendAway(): void;
}

interface Place {
  giveBack(): void;
}

/** One key's: forgotten when the last place is given back. */
interface Line {
  taken: number;
  /** In the order in which they came. */
  readonly waiting: ((place: Place | null) => void)[];
}

function createPlaces(perKey: number): Places {
  const lines = new Map<string, Line>();

  async function take(key: string): Promise<Place | null> {
    const line = lines.get(key) ?? { taken: 0, waiting: [] };
    lines.set(key, line);
    if (line.taken === perKey) return new Promise((resolve) => line.waiting.push(resolve));
    line.taken += 1;
    const place = { giveBack: () => giveBack(key, line, place) };
    return place;
  }

  /** A place goes straight to who waits first, so that nobody who comes in between is ahead of it. */
  function giveBack(key: string, line: Line, place: Place): void {
    const next = line.waiting.shift();
    if (next !== undefined) return next(place);
    line.taken -= 1;
    if (line.taken === 0) lines.delete(key);
  }

  function sendAway(): void {
    for (const { waiting } of lines.values()) for (const leave of waiting.splice(0)) leave(null);
  }

  return { take, sendAway };
}
