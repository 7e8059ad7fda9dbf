/** `node:http` in front of a fetch handler: requests in, answers out, broken connections where an answer is one. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { SetupError } from "../../errors.ts";
import type { Ground } from "../service.ts";
import { pathnameOf, requestFrom } from "./incoming.ts";
import { NO_ROUTE, reasonOf, refusalFor } from "./listener-refusal.ts";
import { writeResponse } from "./outgoing.ts";
import { logFailure, OWN_FAILURE } from "./own-failure.ts";
import { type Place, placeOf } from "./place.ts";
import { refuseSocket } from "./socket-refusal.ts";

export type FetchHandler = (request: Request) => Promise<Response>;

export interface Listener {
  readonly port: number;
  /** Takes no new connections and ends the open ones. */
  close(): Promise<void>;
}

/** Listens; resolves when the port is open. */
export async function listen(handle: FetchHandler, ground: Ground, port: number): Promise<Listener> {
  // What is wrong with the Host header is said in JSON, by `requestFrom`.
  const server = createServer({ requireHostHeader: false });
  const answers = new WeakMap<Duplex, ServerResponse>();
  /** Connections that `node:http` has handed over and forgotten. */
  const tunnels = new Set<Duplex>();
  const serve = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    answers.set(incoming.socket, outgoing);
    answer(handle, ground, outgoing).catch(() => outgoing.destroy());
  };
  server.on("request", serve);
  // An expectation other than 100-continue is ignored, as RFC 9110 allows.
  server.on("checkExpectation", serve);
  server.on("connect", (_incoming, socket) => {
    tunnels.add(socket);
    socket.once("close", () => tunnels.delete(socket));
    // It names a host, not a path.
    refuseSocket(ground, socket, { reason: NO_ROUTE, contract: "core" });
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const current = answers.get(socket);
    const midway = current?.headersSent === true && !current.writableFinished;
    if (error.code === "ECONNRESET" || midway) socket.destroy();
    else refuseSocket(ground, socket, { reason: reasonOf(error), contract: contractOf(ground, current) });
  });
  server.listen(port, ground.settings.host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw cannotListen(cause as NodeJS.ErrnoException, port);
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () => closeServer(server, tunnels),
  };
}

/** Names that resolve to nothing, and addresses that are no interface's or of a family that the machine lacks. */
const HOST_ERRORS = /^(?:ENOTFOUND|EAI_\w+|EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENODATA)$/;

function cannotListen(cause: NodeJS.ErrnoException, port: number): SetupError {
  const { code = "" } = cause;
  const option = HOST_ERRORS.test(code) ? "host" : "port";
  const message =
    option === "host"
      ? `The emulator cannot listen on its host (${code}): "host" must be an address of this machine, or a name of one.`
      : `The emulator cannot listen on port ${port}: choose another "port", or 0.`;
  return new SetupError("invalid_option", message, { cause, fields: { option, port } });
}

async function closeServer(server: Server, tunnels: Iterable<Duplex>): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  for (const socket of tunnels) socket.destroy();
  await closed;
}

/** @throws when the client goes away before its request is complete */
async function answer(handle: FetchHandler, ground: Ground, outgoing: ServerResponse): Promise<void> {
  const request = await requestFrom(outgoing.req, ground.settings);
  const contract = contractOf(ground, outgoing);
  if (!(request instanceof Request)) return writeResponse(refusalFor(ground, request, contract), outgoing);
  await writeResponse(await answerOf(handle, ground, { request, contract }), outgoing);
}

/**
 * The error shape for what is wrong while an answer is due. A request whose line or headers could not be read has no path: it gets
 * the core wrapper, even if it was meant for the token route.
 */
function contractOf({ settings }: Ground, due: ServerResponse | undefined): Place["contract"] {
  if (due === undefined || due.headersSent) return "core";
  return placeOf(pathnameOf(due.req), settings.basePath).contract;
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function answerOf(
  handle: FetchHandler,
  ground: Ground,
  { request, contract }: { request: Request; contract: Place["contract"] },
): Promise<Response> {
  try {
    return await handle(request);
  } catch (error) {
    logFailure(ground.settings, error, { message: "The emulator failed to answer a request." });
    return refusalFor(ground, { status: 500, message: OWN_FAILURE }, contract);
  }
}
