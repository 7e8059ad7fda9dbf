/** Writes an answer to a Node response, and ends the connection of a request whose body was not read. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { breakOffUntaken, endEarly, http2Stream, isGone, UNTAKEN_MS } from "./node-ending.ts";

/** What to send: an `Answer` of the receiver, for one. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** The body of the request was not read to its end. */
  readonly close: boolean;
}

/** Of a body that no one will use, at most this is read, so that the sender sees the answer and not a reset. */
const DRAIN_BYTES = 64 * 1024;
/** A drained chunk counts at least this, so that a sender of single bytes cannot hold its connection for long. */
const DRAIN_CHUNK_BYTES = 1024;
/** Milliseconds without a byte after which an answered connection is closed; on HTTP/2, here and below, its stream. */
const DRAIN_IDLE_MS = 1_000;

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Called with what the response threw when it was ended later, which is not thrown to anybody. */
  failed(error: unknown): void;
}

/** Writes `answer`. Does nothing for a sender who is gone. Throws what the response throws, which others may have wrapped. */
export function sendAnswer(answer: WholeAnswer, exchange: Exchange): void {
  const { response } = exchange;
  if (response.destroyed) return;
  if (answer.close) return sendAndClose(answer, exchange);
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
  boundTaking(response);
}

/** Gives what is not yet taken of `response` its time, from its end on. The connection's next request finds the time-out as it was. */
export function boundTaking(response: ServerResponse): void {
  const stream = http2Stream(response);
  const again = () => boundTaking(response);
  if (!response.writableEnded) {
    // HTTP/2 does not tell of an end before all is taken: whether there is one is asked whenever the time is up.
    if (stream !== undefined) stream.setTimeout(UNTAKEN_MS, again);
    else response.once("prefinish", again);
    return;
  }
  // One that was taken leaves no timer behind.
  if (isGone(response) || response.writableLength === 0) return;
  const leave = breakOffUntaken(response);
  // Before Node's own listener, which gives the connection its keep-alive time or the next response. On HTTP/2 a response
  // finishes with its stream, which a sender can keep open after it has taken all.
  (stream ?? response).prependOnceListener("finish", leave);
}

/**
 * Writes the whole answer at once but ends it only after the drain: Node closes the socket when a response ends, and a
 * socket closed with bytes unread resets the connection, often before the sender has read the answer.
 */
function sendAndClose(answer: WholeAnswer, { request, response, failed }: Exchange): void {
  // HTTP/2 has no such header: there only the stream ends.
  const headers = request.httpVersionMajor > 1 ? answer.headers : { ...answer.headers, connection: "close" };
  response.writeHead(answer.status, headers);
  if (request.complete) {
    response.end(answer.body);
    return boundTaking(response);
  }
  response.write(answer.body);
  // No `error` listeners from here on: Node keeps the error of a sender that is gone to itself where nobody listens.
  let left = DRAIN_BYTES;
  const finish = () => {
    if (response.writableEnded) return;
    // Else what still comes would be read until the answer is taken, and its time would begin again with each byte.
    request.pause();
    try {
      endEarly(response);
      boundTaking(response);
    } catch (error) {
      failed(error);
    }
  };
  request.on("data", (chunk: Uint8Array) => {
    left -= Math.max(chunk.length, DRAIN_CHUNK_BYTES);
    if (left <= 0) finish();
  });
  request.once("end", finish);
  response.setTimeout(DRAIN_IDLE_MS, finish);
  request.resume();
}
