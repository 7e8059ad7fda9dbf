/** Servers on loopback for the adapter tests. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AdapterServer } from "../contracts/adapter-bench.ts";
import { endServer, listenOnLoopback } from "../support/loopback.ts";

/** Serves `listener` on a free port of 127.0.0.1. */
export async function serve(listener: RequestListener): Promise<AdapterServer & { server: Server }> {
  const server = createServer(listener);
  const port = await listenOnLoopback(server);
  return { server, port, close: () => endServer(server) };
}

/** The bytes of a request, for servers without a framework. */
export async function bytesOf(stream: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
