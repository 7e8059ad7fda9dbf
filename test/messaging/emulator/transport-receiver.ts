/** Receivers for the transport's tests: they count connections and hold what came over them. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { systemClock } from "../../../src/internal/clock.ts";
import { createTransport, type Outgoing, type Transport } from "../../../src/messaging/emulator/delivery/transport.ts";

type Options = Partial<Parameters<typeof createTransport>[0]> & NonNullable<Parameters<typeof createTransport>[1]>;

/** A transport with the defaults of `createEmulator()`, closed with the test. */
export function transportWith({ resolve, ...settings }: Options = {}): Transport {
  const transport = createTransport(
    { allowPrivateTargets: [], allowPublicTargets: false, attemptTimeoutMs: 10_000, systemClock, ...settings },
    resolve === undefined ? {} : { resolve },
  );
  onTestFinished(() => transport.close());
  return transport;
}

export function outgoing(url: string, fields: Partial<Outgoing> = {}): Outgoing {
  const headers = { "content-type": "application/json" };
  return { url, method: "POST", headers, body: Buffer.from('{"a":1}'), dribbleMs: null, ...fields };
}

export interface Receiver {
  readonly url: string;
  readonly port: number;
  /** Connections that were opened. */
  readonly connections: readonly Socket[];
  readonly server: Server;
}

async function listening(server: Server, host: string): Promise<Receiver> {
  const connections: Socket[] = [];
  server.on("connection", (socket) => {
    socket.on("error", () => {});
    connections.push(socket);
  });
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(async () => {
    for (const socket of connections) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${port}/hooks?a=1`, port, connections, server };
}

export interface Got {
  readonly request: IncomingMessage;
  readonly body: Buffer;
}

/** A server that reads each request whole, then lets `answer` speak. */
export async function receiver(
  answer: (response: ServerResponse, got: Got) => void = (response) => response.end(),
  host = "127.0.0.1",
  create: (handle: RequestListener) => Server = createServer,
): Promise<Receiver & { readonly got: readonly Got[] }> {
  const got: Got[] = [];
  const server = create(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const one = { request, body: Buffer.concat(chunks) };
    got.push(one);
    answer(response, one);
  });
  return { ...(await listening(server, host)), got };
}

/** A server below HTTP: `onData` is called with what came over a connection so far, whenever more comes. */
export async function rawReceiver(
  onData: (socket: Socket, text: string) => void,
  host = "127.0.0.1",
): Promise<Receiver & { readonly texts: readonly string[] }> {
  const texts: string[] = [];
  const server = createTcpServer((socket) => {
    const index = texts.push("") - 1;
    socket.on("data", (chunk) => {
      texts[index] += chunk.toString("latin1");
      onData(socket, texts[index] ?? "");
    });
  });
  return { ...(await listening(server, host)), texts };
}

/** Resolves when `condition` holds, looked at on each turn of the event loop. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

export const OK = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
