/** A receiver that takes every request and answers none. */
import { once } from "node:events";
import { createServer } from "node:http";
import { onTestFinished } from "vitest";
import { listenOnLoopback } from "../support/loopback.ts";

export interface Hanging {
  readonly url: string;
  /** Resolves with its first request. */
  readonly asked: Promise<unknown>;
}

export async function startHanging(): Promise<Hanging> {
  const server = createServer();
  const asked = once(server, "request");
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${port}/`, asked };
}
