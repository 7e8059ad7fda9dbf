/** `node:http` in front of a fetch handler: requests in, answers out, broken connections where an answer is one. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SetupError } from "../../errors.ts";
import { MAX_BODY_BYTES } from "./body.ts";

export type FetchHandler = (request: Request) => Promise<Response>;

export interface Listener {
  readonly port: number;
  /** Takes no new connections and ends the open ones. */
  close(): Promise<void>;
}

/** Listens; resolves when the port is open. */
export async function listen(handle: FetchHandler, port: number, host: string): Promise<Listener> {
  const server = createServer((incoming, outgoing) => {
    serve(handle, incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new SetupError("invalid_option", `The emulator cannot listen on port ${port}: choose another "port", or 0.`, {
      cause,
      fields: { option: "port", port },
    });
  }
  return { port: (server.address() as AddressInfo).port, close: () => closeServer(server) };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

async function serve(handle: FetchHandler, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const request = await requestFrom(incoming);
  if (request === null) {
    // A method that no fetch request can have, such as TRACE, or an address that is none.
    outgoing.writeHead(400, { connection: "close" }).end();
    return;
  }
  await write(await handle(request), outgoing);
}

async function requestFrom(incoming: IncomingMessage): Promise<Request | null> {
  const { method = "GET", headers } = incoming;
  const body = method === "GET" || method === "HEAD" ? undefined : await bodyOf(incoming);
  try {
    const url = new URL(incoming.url ?? "/", `http://${headers.host ?? "127.0.0.1"}`);
    return new Request(url, { method, headers: headersOf(incoming), body: body ?? null });
  } catch {
    return null;
  }
}

/** Up to one byte more than the limit, so that the handler sees that it was too long. */
async function bodyOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Without destroying the stream at the break: the answer goes through the same socket.
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY_BYTES) break;
  }
  return Buffer.concat(chunks, Math.min(length, MAX_BODY_BYTES + 1));
}

function headersOf(incoming: IncomingMessage): Headers {
  const headers = new Headers();
  const { rawHeaders } = incoming;
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  return headers;
}

async function write(response: Response, outgoing: ServerResponse): Promise<void> {
  if (response.type === "error") {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  const reader = response.body?.getReader();
  outgoing.once("close", () => void reader?.cancel().catch(() => {}));
  for (;;) {
    const chunk = await reader?.read();
    if (chunk === undefined || chunk.done) break;
    if (!outgoing.write(chunk.value)) await Promise.race([once(outgoing, "drain"), once(outgoing, "close")]);
  }
  outgoing.end();
}
