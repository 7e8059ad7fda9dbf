/** Puts a fetch handler behind `node:http`, as hosts of fetch handlers do. */
import type { RequestListener } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

export function bridge(handle: (request: Request) => Promise<Response>): RequestListener {
  return async (incoming, outgoing) => {
    incoming.on("error", () => {});
    const headers = new Headers();
    for (let at = 0; at < incoming.rawHeaders.length; at += 2) {
      headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
    }
    const { method = "GET" } = incoming;
    const body = method === "GET" || method === "HEAD" ? null : Readable.toWeb(incoming);
    const gone = new AbortController();
    outgoing.once("close", () => outgoing.writableFinished || gone.abort());
    const request = new Request(`http://127.0.0.1${incoming.url}`, {
      method,
      headers,
      body,
      duplex: "half",
      signal: gone.signal,
    } as RequestInit);
    const response = await handle(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    outgoing.flushHeaders();
    if (response.body === null) outgoing.end();
    // It cancels the body when whoever asked is gone, and breaks off when the body does.
    else await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => {});
  };
}
