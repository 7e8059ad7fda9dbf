/** A proxy between a client and the emulator, over real sockets, that breaks calls: before the service has them, after it did them, in between. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  Agent,
  createServer,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { buffer } from "node:stream/consumers";
import { seededFraction } from "../../../src/messaging/emulator/clock.ts";
import { listenOnLoopback } from "../../support/loopback.ts";

/** What can happen to a request. "After" means that the service did what was asked, and the client is not told. */
export const FAULTS = [
  ...["cut before", "cut after", "cut in the body", "reset before", "reset after", "reset in the body"],
  ...["silent before", "silent after", "late", "page before", "page after", "error after"],
  ...["revoked before", "revoked after", "aborted before", "aborted after"],
] as const;
export type Fault = (typeof FAULTS)[number];

/** A request that came to the proxy. */
export interface ProxiedRequest {
  readonly method: string;
  readonly path: string;
  readonly idempotencyKey: string | null;
  readonly contentType: string | null;
  readonly body: string;
}

/** As it is kept: a request with what became of it. */
export interface ProxiedCall extends ProxiedRequest {
  readonly fault: Fault | null;
}

export interface FaultProxyOptions {
  /** The emulator's address. */
  readonly upstream: string;
  /** What happens to a request; null for nothing. */
  choose(request: ProxiedRequest): Fault | null;
  /** Makes the service forget its tokens. */
  revoke(): void;
  /** Makes the caller of this request abort it. */
  abort(request: ProxiedRequest): void;
}

export interface FaultProxy {
  readonly url: string;
  /** In the order in which they came. */
  readonly calls: readonly ProxiedCall[];
  /** Resolves when no request is under way, not even one whose client is long gone. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

/** One request on its way, with what a fault can do to it. */
interface Exchange {
  readonly options: FaultProxyOptions;
  readonly request: ProxiedRequest;
  readonly response: ServerResponse;
  /** Lets the service do it. */
  forward(): Promise<Answer>;
  /** Resolves when the client has let go of the connection. */
  readonly gone: Promise<unknown>;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/** Starts it on a free port. */
export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const agent = new Agent({ keepAlive: true });
  const calls: ProxiedCall[] = [];
  const underWay = new Set<Promise<void>>();
  const pass = async (incoming: IncomingMessage, response: ServerResponse) => {
    const gone = new Promise<void>((resolve) => response.once("close", resolve));
    const request = await requestOf(incoming);
    if (request === null) return;
    const fault = options.choose(request);
    calls.push({ ...request, fault });
    const forward = () => forwarded({ upstream: options.upstream, headers: incoming.headers, agent }, request);
    await play(fault, { options, request, response, forward, gone });
  };
  const server = createServer((incoming, response) => {
    const passed = pass(incoming, response).finally(() => underWay.delete(passed));
    underWay.add(passed);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    async idle() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await Promise.all(underWay);
      agent.destroy();
    },
  };
}

/**
 * Breaks about `share` of all requests, each in a way that the seed, the request's content and how often it has come decide: so
 * the order in which parallel calls arrive changes nothing.
 */
export function seededFaults(seed: string, share: number): FaultProxyOptions["choose"] {
  const seen = new Map<string, number>();
  return ({ path, body }) => {
    const digest = createHash("sha256").update(`${path} ${body}`).digest("hex");
    const time = (seen.get(digest) ?? 0) + 1;
    seen.set(digest, time);
    if (seededFraction(seed, `whether ${digest} ${time}`) >= share) return null;
    const fault = FAULTS[Math.floor(seededFraction(seed, `which ${digest} ${time}`) * FAULTS.length)] ?? null;
    const ofTokens = path.endsWith("/token") && /^(aborted|revoked)/.test(fault ?? "");
    return ofTokens ? null : fault;
  };
}

async function play(fault: Fault | null, exchange: Exchange): Promise<void> {
  const { options, request, response, forward, gone } = exchange;
  if (fault?.endsWith("after")) await forward();
  switch (fault) {
    case null:
      return answer(response, await forward());
    case "cut before":
    case "cut after":
      return void response.socket?.destroy();
    case "reset before":
    case "reset after":
      return void response.socket?.resetAndDestroy();
    case "cut in the body":
    case "reset in the body":
      return halfAnswer(response, await forward(), fault);
    case "late":
      // As a packet that was long under way: the client has given up, and may have asked again, when the service gets it.
      await gone;
      return void (await forward());
    case "silent before":
    case "silent after":
      return void (await gone);
    case "page before":
    case "page after":
      return answer(response, { status: 502, contentType: "text/html", body: Buffer.from("<h1>Bad Gateway</h1>") });
    case "error after":
      return answer(response, { status: 500, contentType: "application/json", body: Buffer.from(SERVER_ERROR) });
    case "revoked before":
      options.revoke();
      return answer(response, await forward());
    case "revoked after":
      // The client is answered as one whose token ended at this very moment.
      options.revoke();
      return answer(response, { status: 401, contentType: "application/json", body: Buffer.from(UNAUTHORIZED) });
    case "aborted before":
    case "aborted after":
      options.abort(request);
      return void (await gone);
    default:
      return fault satisfies never;
  }
}

const SERVER_ERROR = '{"error":{"code":"SERVER_ERROR","message":"lost","details":{}},"requestId":"req_proxy"}';
const UNAUTHORIZED = '{"error":{"code":"UNAUTHORIZED","message":"revoked","details":{}},"requestId":"req_proxy"}';

function answer(response: ServerResponse, { status, contentType, body }: Answer): void {
  response.writeHead(status, { "content-type": contentType, "content-length": body.length }).end(body);
}

/** The head and half of the body, then the end of the connection. */
async function halfAnswer(response: ServerResponse, { status, contentType, body }: Answer, fault: Fault) {
  response.writeHead(status, { "content-type": contentType, "content-length": body.length });
  await new Promise((resolve) => response.write(body.subarray(0, body.length / 2), resolve));
  if (fault === "cut in the body") response.socket?.destroy();
  else response.socket?.resetAndDestroy();
}

/** Null when the client went away before all of it had come. */
async function requestOf(incoming: IncomingMessage): Promise<ProxiedRequest | null> {
  const { method = "", url: path = "", headers } = incoming;
  const body = await buffer(incoming).catch(() => null);
  if (body === null) return null;
  const key = headers["idempotency-key"];
  return {
    method,
    path,
    idempotencyKey: typeof key === "string" ? key : null,
    contentType: headers["content-type"] ?? null,
    body: body.toString("utf8"),
  };
}

interface Way {
  readonly upstream: string;
  readonly headers: IncomingHttpHeaders;
  readonly agent: Agent;
}

async function forwarded(way: Way, request: ProxiedRequest): Promise<Answer> {
  const { upstream, headers, agent } = way;
  const { method, path, body } = request;
  // What belongs to the client's connection stays there.
  const { host: _host, connection: _connection, "transfer-encoding": _encoding, ...others } = headers;
  const length = { "content-length": Buffer.byteLength(body) };
  const sent = httpRequest(`${upstream}${path}`, { method, agent, headers: { ...others, ...length } });
  sent.end(body);
  const [response] = await (once(sent, "response") as Promise<[IncomingMessage]>).catch((error: unknown) => {
    // A kept connection may be closed just when it is used again: then the service has seen nothing of it.
    if (sent.reusedSocket) return [null];
    throw error;
  });
  if (response === null) return forwarded(way, request);
  return {
    status: response.statusCode ?? 0,
    contentType: response.headers["content-type"] ?? "",
    body: await buffer(response),
  };
}
