/** An inspector on a real `node:http` server, and requests to it exactly as they are written. */
import {
  Agent,
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  request,
} from "node:http";
import { onTestFinished } from "vitest";
import { nodeInspector } from "../../../../adapters/node.ts";
import type { Mountable } from "../../../../src/tools/inspector/index.ts";
import { listenOnLoopback } from "../../../support/loopback.ts";

export interface Mounted {
  readonly port: number;
  readonly origin: string;
  ask(wish?: Wish): Promise<Response>;
}

export interface Wish {
  readonly method?: string;
  /** Default: the page. */
  readonly url?: string;
  /** Laid over `host`; undefined removes one, a list sends it several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body?: string;
}

export interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as JSON. */
  json(): unknown;
}

/** Serves what `make` gives for an origin on loopback, until the test ends. */
export async function mounted(make: (origin: string) => Mountable<IncomingMessage>): Promise<Mounted> {
  let listener: RequestListener = () => {};
  const server = createServer({ requireHostHeader: false }, (incoming, response) => listener(incoming, response));
  const port = await listenOnLoopback(server);
  const origin = `http://127.0.0.1:${port}`;
  const inspector = make(origin);
  listener = nodeInspector(inspector);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port, origin, ask: (wish = {}) => ask(port, { url: inspector.path, ...wish }) };
}

/** Connections are kept: a matrix has thousands of requests. */
const AGENT = new Agent({ keepAlive: true });

/** Headers that the page sends with a POST. */
export const POST_HEADERS = { "content-type": "application/json", "x-oncehook-inspector": "1" };

function ask(port: number, { method = "GET", url = "/", headers = {}, body }: Wish): Promise<Response> {
  const all = { host: `127.0.0.1:${port}`, ...headers };
  const lines = Object.entries(all).flatMap(([name, value]) => linesOf(name, value));
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, method, path: url, headers: lines.flat(), setHost: false, agent: AGENT };
    const asked = request(options, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers,
          body: text,
          json: () => JSON.parse(text) as unknown,
        });
      });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

function linesOf(name: string, value: string | readonly string[] | undefined): [string, string][] {
  if (value === undefined) return [];
  return typeof value === "string" ? [[name, value]] : value.map((one) => [name, one]);
}
