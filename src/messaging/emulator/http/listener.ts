/** `node:http` in front of a fetch handler: requests in, answers out, broken connections where an answer is one. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SetupError } from "../../../errors.ts";
import { isLoopback } from "../../../internal/network.ts";
import { FOREIGN_HOST, hostNameIn, isOwnHost, type Settings } from "../options.ts";
import type { EmulatorParts } from "../service.ts";
import { controlError, json, logFailure, OWN_FAILURE, responseFrom, textOf, WRONG_TOKEN_METHOD } from "./answers.ts";
import { MAX_BODY_BYTES, type Place, placeOf } from "./route.ts";

export type FetchHandler = (request: Request) => Promise<Response>;

export interface Listener {
  readonly port: number;
  /** Takes no new connections and ends the open ones. */
  close(): Promise<void>;
}

/** Listens; resolves when the port is open. */
export async function listen(handle: FetchHandler, ground: EmulatorParts, port: number): Promise<Listener> {
  // `node:http` itself refuses bytes that it cannot read: they have no path, so no error shape.
  const server = createServer((_incoming, outgoing) => {
    answer(handle, ground, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(port, ground.settings.host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw cannotListen(cause as NodeJS.ErrnoException, port);
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () => closeServer(server),
  };
}

/** Names that resolve to nothing, and addresses that are no interface's or of a family that the machine lacks. */
const HOST_ERRORS = /^(?:ENOTFOUND|EAI_\w+|EADDRNOTAVAIL|EAFNOSUPPORT|EINVAL|ENODATA)$/;

function cannotListen(cause: NodeJS.ErrnoException, port: number): SetupError {
  const { code = "" } = cause;
  const option = HOST_ERRORS.test(code) ? "host" : "port";
  const message =
    option === "host"
      ? `The emulator cannot listen on its host (${code}): "host" must be an address of this machine, or a name of one.`
      : `The emulator cannot listen on port ${port}: choose another "port", or 0.`;
  return new SetupError("invalid_option", message, { cause, fields: { option, port } });
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}

/** @throws when the client goes away before its request is complete */
async function answer(handle: FetchHandler, ground: EmulatorParts, outgoing: ServerResponse): Promise<void> {
  const request = await requestFrom(outgoing.req, ground.settings);
  const { contract } = placeOf(pathnameOf(outgoing.req), ground.settings.basePath);
  if (!(request instanceof Request)) return writeResponse(refusalFor(ground, request, contract), outgoing);
  await writeResponse(await answerOf(handle, ground, { request, contract }), outgoing);
}

/** A failure of the emulator's own becomes a 500, never a stack. */
async function answerOf(
  handle: FetchHandler,
  ground: EmulatorParts,
  { request, contract }: { request: Request; contract: Place["contract"] },
): Promise<Response> {
  try {
    return await handle(request);
  } catch (error) {
    logFailure(ground.settings, error, { message: "The emulator failed to answer a request." });
    return refusalFor(ground, { status: 500, message: OWN_FAILURE }, contract);
  }
}

// A request of `node:http` as a fetch `Request`.

/** @throws when the client goes away before its body is complete */
async function requestFrom(incoming: IncomingMessage, settings: Settings): Promise<Request | Reason> {
  // Only HTTP/1.0 may be without one.
  const { host = "localhost" } = incoming.headers;
  const url = `http://${host}${targetOf(incoming)}`;
  if (hostNameIn(host) === null || !URL.canParse(url)) return NO_HOST;
  // Else a web page whose name was made to point here could use the API, whose credentials need not be secret.
  if (isLoopback(settings.host) && !isOwnHost(host, settings)) return FOREIGN;
  const { method = "GET" } = incoming;
  // No fetch request can have it; it is a wrong method on every path (GEN-7).
  if (method === "TRACE") return NO_ROUTE;
  const init = { method, headers: headersOf(incoming) };
  if (method === "GET" || method === "HEAD" || !hasBody(incoming)) return new Request(url, init);
  const body = await bodyOf(incoming);
  return body instanceof ReadableStream ? streamed(url, { ...init, body }) : new Request(url, { ...init, body });
}

/** The path of a request as its URL has it, whatever its Host header is. */
function pathnameOf(incoming: IncomingMessage): string {
  return new URL(`http://localhost${targetOf(incoming)}`).pathname;
}

/** Path and query; an absolute address in the request line gives no more than those. */
function targetOf({ url = "/" }: IncomingMessage): string {
  const path = url.startsWith("/") ? url : url.replace(/^[a-z][a-z\d+.-]*:\/\/[^/?#]*/i, "");
  return path.startsWith("/") ? path : `/${path}`;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  // A header that comes twice is joined, not dropped: two Authorization headers must not pass for one.
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  return headers;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || (headers["content-length"] ?? "0") !== "0";
}

/** The bytes of a body within the limit; a longer one as a stream, for the routes that take one. */
async function bodyOf(incoming: IncomingMessage): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  // Not destroyed at the end of reading: the answer goes through the same socket.
  const chunks: AsyncIterator<Buffer> = incoming.iterator({ destroyOnReturn: false });
  const read: Buffer[] = [];
  let length = 0;
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    read.push(next.value);
    length += next.value.byteLength;
    if (length > MAX_BODY_BYTES) return rejoined(read, chunks);
  }
  const [first] = read;
  return read.length === 1 && first !== undefined ? first : Buffer.concat(read, length);
}

function rejoined(read: Buffer[], rest: AsyncIterator<Buffer>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const chunk = read.shift() ?? (await rest.next());
      if (chunk instanceof Uint8Array) controller.enqueue(chunk);
      else if (chunk.done) controller.close();
      else controller.enqueue(chunk.value);
    },
    cancel: async () => void (await rest.return?.()),
  });
}

/** `duplex` is required of a body that is a stream, and missing in the types. */
function streamed(url: string, init: RequestInit): Request {
  return new Request(url, { ...init, duplex: "half" } as RequestInit);
}

// A fetch `Response` as an answer of `node:http`.

/** Resolves when the answer has been handed to the socket. A response that is an error, or whose body breaks, breaks the connection. */
export async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  if (response.type === "error") {
    outgoing.destroy();
    return;
  }
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  const text = textOf(response);
  if (text !== undefined || response.body === null) outgoing.end(text);
  else await stream(response.body, outgoing);
  // The rest of an unread body is discarded: its sender reads the answer afterwards.
  outgoing.req.resume();
}

async function stream(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // An event stream may have nothing to say for long: its reader must see at once that it is open.
  outgoing.flushHeaders();
  const reader = body.getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => {}));
  let flushed = Promise.resolve();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const { value } = next;
      flushed = new Promise((resolve) => outgoing.write(value, () => resolve()));
      if (outgoing.writableNeedDrain) await drainedOrClosed(outgoing);
    }
    outgoing.end();
  } catch {
    // Cut short (a fault): what came before still goes out.
    await flushed;
    outgoing.destroy();
  }
}

/** An event stream waits often and ends late: what listens for the one that does not come is taken off. */
function drainedOrClosed(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off("drain", done).off("close", done);
      resolve();
    };
    outgoing.on("drain", done).on("close", done);
  });
}

// What the listener answers in the service's place, in the error shape of the path that was asked for.

interface Reason {
  readonly status: 400 | 403 | 404 | 500 | 503;
  readonly message: string;
}

/** For a method that no path has (GEN-7). */
const NO_ROUTE: Reason = { status: 404, message: "There is no such route." };
const NO_HOST: Reason = { status: 400, message: "The Host header names no host." };
const FOREIGN: Reason = { status: 403, message: FOREIGN_HOST };
export const CLOSED: Reason = { status: 503, message: "The emulator is closed." };

const CODES: { readonly [S in Reason["status"]]?: "FORBIDDEN" | "NOT_FOUND" | "SERVER_ERROR" } = {
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  500: "SERVER_ERROR",
  503: "SERVER_ERROR",
};

/** GEN-2, GEN-3. */
export function refusalFor(
  { state }: EmulatorParts,
  { status, message }: Reason,
  contract: Place["contract"],
): Response {
  const code = CODES[status] ?? "INVALID_REQUEST";
  const refusal = { kind: "refusal", status, code, message, details: {} } as const;
  switch (contract) {
    case "control":
      return json(status, controlError(code, message));
    case "token":
      if (status === NO_ROUTE.status) return responseFrom(WRONG_TOKEN_METHOD, contract, "");
      return responseFrom(status >= 500 ? refusal : { ...refusal, code: "invalid_request" }, contract, "");
    case "core":
      return responseFrom(refusal, contract, state.nextId("req"));
    default:
      return contract satisfies never;
  }
}
