/** A receiver that takes every request and answers none. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface Hanging {
  readonly url: string;
  /** Resolves with its first request. */
  readonly asked: Promise<unknown>;
}

export async function startHanging(): Promise<Hanging> {
  const server = createServer();
  const asked = once(server, "request");
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked };
}
