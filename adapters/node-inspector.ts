/** A request of Node as the inspector takes it, and its answer on a Node response. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { InspectorAnswer, InspectorRequest, JsonReading } from "../src/inspector/index.ts";
import { endStream, jsonLeft, jsonOf, readingUpTo } from "./inspector-io.ts";
import {
  boundTaking,
  breakOff,
  breakOffUntaken,
  isAnswered,
  isGone,
  type KeptBody,
  type NodeAnswers,
  readBody,
  wasSent,
} from "./node-io.ts";

/** What a framework knows of one request. */
interface NodeExchange<Native> {
  /** Has what a parser before the inspector left. */
  readonly native: Native & KeptBody;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** As it was asked for, with what routers have taken off. */
  readonly url: string;
  /** Where the body comes from, if something stands in the request's place. */
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
 * HTTP/2 has another name for Host, and of several Node shows the first: all that were sent are where every reader of
 * headers looks for it, for a proxy may have gone by another one.
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
  const result = await readBody(stream, kept, readingUpTo(maxBytes));
  if (!result.ok && result.reason === "already_parsed") return jsonLeft(kept.body, maxBytes);
  return jsonOf(result);
}

/** Aborts when the response closes before it is complete. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (isGone(response)) gone.abort();
  else response.once("close", () => wasSent(response) || gone.abort());
  return gone.signal;
}

/** Whether the body is all there at once. */
export function isWhole(answer: InspectorAnswer): answer is InspectorAnswer & { readonly body: string | Uint8Array } {
  return typeof answer.body === "string" || answer.body instanceof Uint8Array;
}

/** Whether nothing of the request is still to come. What stands for a request without a connection does not know `complete`. */
export function isOver(request: IncomingMessage): boolean {
  return request.complete || request.readableEnded;
}

/** Sends the answer. Its promise is that of `NodeAnswers`. */
export function sendInspectorAnswer(
  answers: NodeAnswers,
  answer: InspectorAnswer,
  { request, response }: Pick<NodeExchange<unknown>, "request" | "response">,
): Promise<void> {
  // A body that nobody read would stand in the way of the next request on the connection.
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

/** Whether somebody reads on. */
function beginStream(
  { status, headers }: InspectorAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  if (isGone(response)) return false;
  response.writeHead(status, headers);
  // Before the first chunk: a page shows that it is connected.
  if (request.method === "HEAD") response.end();
  else response.flushHeaders();
  return request.method !== "HEAD";
}

// Writes a stream to a Node response, no faster than it is read.

/**
 * Writes chunk by chunk, and ends the stream when whoever asked is gone. Never rejects. A stream that fails breaks the
 * response off: nobody shall take what came of it for all of it.
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

/** Resolves when more can be written, or nothing any more: also because nothing was taken for too long. */
function drained(response: ServerResponse): Promise<void> {
  const leave = breakOffUntaken(response);
  return new Promise((resolve) => {
    const settle = () => {
      leave();
      response.off("drain", settle);
      response.off("close", settle);
      resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
  });
}
