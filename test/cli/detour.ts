/** A server in the application's place that sends everybody on to another one, as a proxy does that has moved or wants a login. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { endServer, listenOnLoopback } from "../support/loopback.ts";

export class Detour {
  /** Requests that were answered with a redirect. */
  redirected = 0;
  /** Requests that came where the redirects lead, each for an event that somebody else has now. */
  followed = 0;
  readonly #elsewhere = createServer((_request, response) => {
    this.followed += 1;
    response.writeHead(204).end();
  });
  readonly #place = createServer((request, response) => {
    const { port } = this.#elsewhere.address() as AddressInfo;
    response.once("finish", () => {
      this.redirected += 1;
    });
    // An answer to half a request might be cut off with it.
    request.resume().once("end", () => {
      response.writeHead(307, { location: `http://127.0.0.1:${port}/events` }).end();
    });
  });

  /** Listens where `url` leads, whose server is gone. */
  async open(url: string): Promise<void> {
    const { hostname, port } = new URL(url);
    await listenOnLoopback(this.#elsewhere);
    this.#place.listen(Number(port), hostname);
    await once(this.#place, "listening");
  }

  /** Leaves the place. Where the redirects lead somebody listens on, until `close`. */
  leave(): Promise<void> {
    return endServer(this.#place);
  }

  async close(): Promise<void> {
    await Promise.all([endServer(this.#place), endServer(this.#elsewhere)]);
  }
}
