/** Servers on loopback for the adapter tests. */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { AdapterServer } from "../../src/testing/adapter-contract.ts";

/** Serves `listener` on a free port of 127.0.0.1. */
export async function serve(listener: RequestListener): Promise<AdapterServer & { server: Server }> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { server, port, close };
}

/** The bytes of a request, for servers without a framework. */
export async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
