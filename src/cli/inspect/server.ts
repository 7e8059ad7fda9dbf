/** The HTTP server of `oncehook inspect`: on 127.0.0.1, and for nothing but requests. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { cannotListen, isListenError } from "../cannot-listen.ts";
import { closeServer } from "../close-server.ts";

export interface Loopback {
  readonly port: number;
  /** Answers requests from now on. */
  serve(listener: RequestListener): void;
  /** Takes no new connection, and resolves when the last one has ended, a second from now at most. */
  close(): Promise<void>;
}

const HOST = "127.0.0.1";
const TIMEOUTS = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 5_000 };
/** What is under way was told to end before. */
const CLOSE_LIMIT_MS = 1_000;

/** @throws CommandError when it cannot listen there */
export async function listenOnLoopback(port: number): Promise<Loopback> {
  let isClosing = false;
  const server = createServer(TIMEOUTS, (_request, response) => {
    // A connection that is kept for more would hold up the end.
    response.once("finish", () => isClosing && setImmediate(() => server.closeIdleConnections()));
  });
  // Without a listener an upgrade would be answered as if it were none.
  server.on("upgrade", (_request, socket) => socket.destroy());
  server.listen(port, HOST);
  try {
    await once(server, "listening");
  } catch (error) {
    if (!isListenError(error)) throw error;
    throw cannotListen({ host: HOST, port, option: "port" }, error);
  }
  return {
    port: (server.address() as AddressInfo).port,
    serve: (listener) => void server.on("request", listener),
    close() {
      isClosing = true;
      return closeServer(server, CLOSE_LIMIT_MS);
    },
  };
}
