/** A relay in front of the tests' server, which can be gone and come back as a server does. */

import { connect as connectTo, createServer, type Server, type Socket } from "node:net";
import { inject, onTestFinished } from "vitest";
import type { PgClient, PgResult } from "../../../src/stores/postgres.ts";
import type { Connection } from "./place.ts";

export interface Relay {
  readonly url: string;
  /** Breaks all connections and refuses new ones. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Ends all connections, in order. */
  hangUp(): void;
  /** Takes nothing more on them. */
  reset(): void;
  /** Leads new connections to another server. Those that are open stay where they are. */
  leadTo(url: string): void;
  /** How many connections lead to this server. */
  connectionsTo(url: string): number;
}

/** Asks in the one moment in which the socket is closed and pg has not heard of it, so that the write itself fails: with `EPIPE`. */
export function askClosed(relay: Relay, client: PgClient, ask: () => Promise<PgResult>): Promise<PgResult> {
  return new Promise((resolve, reject) => {
    (client as Connection).connection.stream.once("end", () => {
      relay.reset();
      ask().then(resolve, reject);
    });
    relay.hangUp();
  });
}

/** Stands still at first, on a port of its own. */
export async function makeRelay(first = inject("postgresUrl")): Promise<Relay> {
  const target = new URL(first);
  let { port: farPort } = target;
  const fars = new Map<Socket, string>();
  const sockets = new Set<Socket>();
  const nears = new Set<Socket>();
  let port = 0;
  let server: Server | null = null;
  const start = () =>
    new Promise<void>((resolve) => {
      server = createServer((near) => {
        const far = connectTo(Number(farPort), "127.0.0.1");
        fars.set(far, farPort);
        far.on("close", () => fars.delete(far));
        nears.add(near.on("close", () => nears.delete(near)));
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
  const hangUp = () => {
    for (const near of nears) near.end();
  };
  const reset = () => {
    for (const near of nears) near.resetAndDestroy();
  };
  const leadTo = (url: string) => {
    farPort = new URL(url).port;
  };
  const connectionsTo = (url: string) => [...fars.values()].filter((port) => port === new URL(url).port).length;
  return { url: target.href, start, stop, hangUp, reset, leadTo, connectionsTo };
}
