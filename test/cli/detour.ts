/** A server in the application's place that sends everybody on to another one, as a proxy does that has moved or wants a login. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

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
    await listening(this.#elsewhere, 0, "127.0.0.1");
    await listening(this.#place, Number(port), hostname);
  }

  /** Leaves the place. Where the redirects lead somebody listens on, until `close`. */
  leave(): Promise<void> {
    return closed(this.#place);
  }

  async close(): Promise<void> {
    await Promise.all([closed(this.#place), closed(this.#elsewhere)]);
  }
}

async function listening(server: Server, port: number, host: string): Promise<void> {
  server.listen(port, host);
  await once(server, "listening");
}

/** Also when it is closed already. */
async function closed(server: Server): Promise<void> {
  const ended = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await ended;
}
