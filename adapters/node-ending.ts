/** Whether a Node response can still be written, and how it is broken off: HTTP/1.1 and HTTP/2 differ in both. */
import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";

/** RFC 9113, section 7. */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
/** Milliseconds in which nothing of an answer is taken, after which its connection is closed: a server of Node waits for ever. */
export const UNTAKEN_MS = 10_000;

/** Whether an answer has begun. */
export function isAnswered(response: ServerResponse): boolean {
  return response.headersSent || response.writableEnded;
}

/** Whether nobody is there any more to read it. */
export function isGone(response: ServerResponse): boolean {
  return response.destroyed || http2Stream(response)?.destroyed === true;
}

/** Whether it was sent to its end; asked once it has closed. On HTTP/2 "finished" is also said of one that was reset. */
export function wasSent(response: ServerResponse): boolean {
  return response.writableEnded && response.writableFinished;
}

/** Ends it so that whoever reads it sees that it is not complete. Destroyed, a response on HTTP/2 would look complete. */
export function breakOff(response: ServerResponse): void {
  const stream = http2Stream(response);
  if (stream === undefined) response.destroy();
  else stream.close(INTERNAL_ERROR);
}

/** Breaks it off when nothing of it is taken in time, until the function that is returned leaves the time-out as it was. */
export function breakOffUntaken(response: ServerResponse): () => void {
  const { socket } = response;
  // An answer that is only simulated, such as by Fastify's `inject`.
  if (socket && typeof socket.setTimeout !== "function") return () => {};
  // On HTTP/2 the time is the stream's, and so is the event.
  const stream = http2Stream(response);
  const timed: ServerResponse | ServerHttp2Stream = stream ?? response;
  const timeoutMs = stream === undefined ? (socket?.timeout ?? 0) : 0;
  const end = () => breakOff(response);
  timed.setTimeout(UNTAKEN_MS, end);
  return () => {
    timed.off("timeout", end);
    timed.setTimeout(timeoutMs);
  };
}

/**
 * Ends it though its request goes on. HTTP/1.1 then ends the connection; a stream of HTTP/2 stays open until both sides have ended,
 * and a reset without an error behind the whole answer asks the sender to stop (RFC 9113, section 8.1).
 */
export function endEarly(response: ServerResponse): void {
  const stream = http2Stream(response);
  stream?.once("finish", () => stream.close(NO_ERROR));
  response.end();
}

/** The responses of node:http2 have it, and the types of node:http know nothing of them. */
export function http2Stream(response: ServerResponse): ServerHttp2Stream | undefined {
  return "stream" in response ? (response.stream as ServerHttp2Stream) : undefined;
}
