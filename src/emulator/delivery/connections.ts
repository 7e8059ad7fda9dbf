/** Connections to receivers: never through a proxy, and checked by the egress guard before a byte is written. */
import { lookup } from "node:dns/promises";
import { type AgentOptions, type ClientRequestArgs, type IncomingMessage, Agent as PlainAgent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import type { EgressGuard } from "./egress.ts";

/** All addresses of a name, as `dns.promises.lookup(name, { all: true })` gives them. */
export type Resolve = (name: string) => Promise<{ address: string; family: number }[]>;

export const systemResolve: Resolve = (name) => lookup(name, { all: true });

/** An agent per URL scheme. */
export type Agents = Readonly<Record<"http:" | "https:", PlainAgent>>;

/** What ends a connection that the guard does not allow. */
class BlockedError extends Error {
  readonly code = "EGRESS_BLOCKED";
}

/** How long a connection lies idle before it is ended: long enough for the next attempt of a burst. */
const IDLE_MS = 100;
/** What a receiver's promise must still have to run, whatever of it has passed on the way. Well above the idle time. */
const LEAST_LEFT_MS = 500;

/** Agents of our own: the global ones follow proxy variables where Node is told so. */
export function createAgents(guard: EgressGuard): Agents {
  const options: AgentOptions = { keepAlive: true, timeout: IDLE_MS, scheduling: "lifo" };
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
  return { "http:": new Plain(options), "https:": new Secure(options) };
}

/**
 * Whether the connection of an answer may serve another request. A request that meets the receiver's end of an idle connection is
 * lost, and looks like one that the receiver refused; so only a connection that its receiver promised to keep for longer than
 * it lies idle here is used again (`Keep-Alive: timeout=5`, as Node's servers say). `tookMs`: since before the request was
 * sent, as the promise may have begun at any time since.
 */
export function isReusable({ headers }: IncomingMessage, tookMs: number): boolean {
  const [, seconds = "0"] = /(?:^|[,\s])timeout=(\d+)/i.exec(String(headers["keep-alive"] ?? "")) ?? [];
  return Number(seconds) * 1_000 - tookMs >= LEAST_LEFT_MS;
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

/** A look-up for sockets that fails when any address of a name is not allowed: a name that points both ways is no accident. */
export function guardedLookup(guard: EgressGuard, resolve: Resolve): LookupFunction {
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
