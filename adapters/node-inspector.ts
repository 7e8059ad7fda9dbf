/** Converts a Node request for the inspector, and writes the inspector's answer to a Node response. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { InspectorAnswer, InspectorRequest, JsonReading } from "../src/tools/inspector/index.ts";
import { endStream, jsonBody, jsonLeft, readingUpTo } from "./inspector-io.ts";
import {
  boundTaking,
  breakOff,
  breakOffUntaken,
  isAnswered,
  isGone,
  type KeptBody,
  type NodeAnswers,
  readNodeBody,
  wasSent,
} from "./node-io.ts";

/** A request in a framework. */
interface NodeExchange<Native> {
  /** Has the body that an earlier parser left. */
  readonly native: Native & KeptBody;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** The original URL, including what routers have removed. */
  readonly url: string;
  /** The source of the body, if another stream replaces the request. */
  readonly stream?: Readable;
}

export function toInspectorRequest<Native>(exchange: NodeExchange<Native>): InspectorRequest<Native> {
  const { native, request, response, url, stream = request } = exchange;
  return {
    method: request.method ?? "",
    url,
    headers: headersOf(request),
    native,
    readJson: (maxBytes) => readJson(stream, native, maxBytes),
    signal: goneSignal(response),
  };
}

/**
 * HTTP/2 has another name for Host, and Node shows only the first of several. This joins all that were sent, as for other
 * headers, because a proxy may have used another one.
 */
function headersOf({ headers, rawHeaders }: IncomingMessage): IncomingHttpHeaders {
  const sent = new Set(rawHeaders.filter((_, index) => index % 2 === 1 && isHost(rawHeaders[index - 1])));
  const { host = [...sent][0] } = headers;
  return { ...headers, host: sent.size > 1 ? [...sent].join(", ") : host };
}

function isHost(name = ""): boolean {
  return ["host", ":authority"].includes(name.toLowerCase());
}

async function readJson(stream: Readable, kept: KeptBody, maxBytes: number): Promise<JsonReading> {
  const result = await readNodeBody(stream, kept, readingUpTo(maxBytes));
  if (!result.ok && result.reason === "already_parsed") return jsonLeft(kept.body, maxBytes);
  return jsonBody(result);
}

/** Aborts when the response closes before it is complete. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (isGone(response)) gone.abort();
  else response.once("close", () => wasSent(response) || gone.abort());
  return gone.signal;
}

/** Whether the answer's body is complete and not a stream. */
export function isWhole(answer: InspectorAnswer): answer is InspectorAnswer & { readonly body: string | Uint8Array } {
  return typeof answer.body === "string" || answer.body instanceof Uint8Array;
}

/** Whether the request was received to its end. A simulated request does not set `complete`. */
export function isOver(request: IncomingMessage): boolean {
  return request.complete || request.readableEnded;
}

/** Sends the answer. Settles as `NodeAnswers.send()` does. */
export function sendInspectorAnswer(
  answers: NodeAnswers,
  answer: InspectorAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // An unread body would block the next request on the connection.
  if (isWhole(answer)) return answers.send({ ...answer, close: !isOver(request) }, request, response);
  const { body } = answer as InspectorAnswer & { readonly body: AsyncIterable<string> };
  const unread = () => endStream(body[Symbol.asyncIterator]());
  if (isAnswered(response)) unread();
  return answers.write(request, response, () => {
    try {
      if (beginStream(answer, request, response)) void sendStream(body, response);
      else unread();
    } catch (error) {
      unread();
      throw error;
    }
  });
}

/** Writes the head of a streamed answer. Returns false when nobody will read the stream. */
function beginStream(
  { status, headers }: InspectorAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  if (isGone(response)) return false;
  response.writeHead(status, headers);
  // Sent before the first chunk, so that the page shows that it is connected.
  if (request.method === "HEAD") response.end();
  else response.flushHeaders();
  return request.method !== "HEAD";
}

/**
 * Writes a stream no faster than it is read, and ends it when the reader is gone. Never rejects. A stream that fails breaks the
 * response off, so that the reader does not take the part for the whole.
 */
export async function sendStream(chunks: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  const iterator = chunks[Symbol.asyncIterator]();
  response.once("close", () => endStream(iterator));
  try {
    for (;;) {
      const { done, value } = await iterator.next();
      if (isGone(response)) return;
      if (done) {
        response.end();
        boundTaking(response);
        return;
      }
      if (!response.write(value)) await drained(response);
    }
  } catch {
    breakOff(response);
  }
}

/** Resolves when more can be written, or when the response has closed, also because its reader made no progress. */
function drained(response: ServerResponse): Promise<void> {
  const restore = breakOffUntaken(response);
  return new Promise((resolve) => {
    const settle = () => {
      restore();
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
  });
}
