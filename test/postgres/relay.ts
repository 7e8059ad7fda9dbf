/** A relay in front of the tests' server, which can be gone and come back as a server does. */

import { connect as connectTo, createServer, type Server, type Socket } from "node:net";
import { inject, onTestFinished } from "vitest";

export interface Relay {
  readonly url: string;
  /** Breaks all connections and refuses new ones. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Stands still at first, on a port of its own. */
export async function makeRelay(): Promise<Relay> {
  const target = new URL(inject("postgresUrl"));
  const { port: farPort, hostname } = target;
  const sockets = new Set<Socket>();
  let port = 0;
  let server: Server | null = null;
  const start = () =>
    new Promise<void>((resolve) => {
      server = createServer((near) => {
        const far = connectTo(Number(farPort), hostname);
        for (const [one, other] of [
          [near, far],
          [far, near],
        ] as const) {
          sockets.add(one);
          one.pipe(other);
          one.on("error", () => {});
          one.on("close", () => {
            sockets.delete(one);
            other.destroy();
          });
        }
      }).listen(port, "127.0.0.1", () => {
        const address = server?.address();
        if (typeof address === "object" && address !== null) port = address.port;
        resolve();
      });
    });
  const stop = () =>
    new Promise<void>((resolve) => {
      if (server === null) return resolve();
      server.close(() => resolve());
      server = null;
      for (const socket of sockets) socket.destroy();
    });
  await start();
  await stop();
  onTestFinished(stop);
  target.port = `${port}`;
  return { url: target.href, start, stop };
}
