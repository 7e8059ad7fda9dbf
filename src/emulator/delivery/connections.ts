/** Connections to receivers: never through a proxy, and checked by the egress guard before a byte is written. */
import { lookup } from "node:dns/promises";
import { type AgentOptions, type ClientRequestArgs, Agent as PlainAgent } from "node:http";
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

/**
 * Keeps connections for a burst of events, and ends them before a receiver does (5 s in Node, 2 s in some): a request that meets
 * the end of its connection is lost.
 */
const KEPT: AgentOptions = { keepAlive: true, timeout: 1_000, scheduling: "lifo" };
const FRESH: AgentOptions = { keepAlive: false };

/** Agents of our own: the global ones follow proxy variables where Node is told so. `"fresh"`: a new connection for each request. */
export function createAgents(guard: EgressGuard, use: "kept" | "fresh"): Agents {
  const options = use === "kept" ? KEPT : FRESH;
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
