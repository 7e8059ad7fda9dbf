/** A request of `node:http` as a fetch `Request`. */
import type { IncomingMessage } from "node:http";
import { isLoopback } from "../../internal/network.ts";
import type { Settings } from "../options.ts";
import { MAX_BODY_BYTES } from "./body.ts";
import { FOREIGN, NO_HOST, NO_ROUTE, type Reason } from "./listener-refusal.ts";
import { hostNameIn, isOwnHost } from "./own-host.ts";

/** @throws when the client goes away before its body is complete */
export async function requestFrom(incoming: IncomingMessage, settings: Settings): Promise<Request | Reason> {
  const host = hostOf(incoming);
  const url = `http://${host}${targetOf(incoming)}`;
  if (hostNameIn(host) === null || !URL.canParse(url)) return NO_HOST;
  // Else a web page whose name was made to point here could use the API, whose credentials need not be secret.
  if (isLoopback(settings.host) && !isOwnHost(host, settings)) return FOREIGN;
  const { method = "GET" } = incoming;
  // No fetch request can have these; they are wrong methods on every path (GEN-7).
  if (method === "TRACE" || method === "CONNECT") return NO_ROUTE;
  const init = { method, headers: headersOf(incoming) };
  if (method === "GET" || method === "HEAD" || !hasBody(incoming)) return new Request(url, init);
  const body = await bodyOf(incoming);
  return body instanceof ReadableStream ? streamed(url, { ...init, body }) : new Request(url, { ...init, body });
}

/** The path of a request as its URL has it, whatever its Host header is. */
export function pathnameOf(incoming: IncomingMessage): string {
  return new URL(`http://localhost${targetOf(incoming)}`).pathname;
}

function hostOf({ headers: { host }, httpVersion }: IncomingMessage): string {
  return host ?? (httpVersion === "1.0" ? "localhost" : "");
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
