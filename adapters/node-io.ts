/** Reads the exact bytes of a Node request, and writes an answer to a Node response (HTTP/1.1 and HTTP/2). */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Readable } from "node:stream";
import getRawBody from "raw-body";
import {
  answers,
  type BodyReading,
  type BodyResult,
  foreignLabels,
  type LogFields,
  type Logger,
  SetupError,
} from "../src/index.ts";
import type { Conversion } from "./mounting.ts";
import { isExpressRequest, parsedBodyFix, wrongNodeArguments } from "./mounting.ts";

/** Where a capture hook or a raw parser may have kept the bytes; only a `Uint8Array` counts. */
export interface KeptBody {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

const TOO_LARGE: BodyResult = { ok: false, reason: "too_large" };
const TRUNCATED: BodyResult = { ok: false, reason: "truncated" };
const CUT: BodyResult = { ok: false, reason: "cut" };

/** Converts a Node request to the form that the receiver takes. */
export function convert(request: IncomingMessage & KeptBody & { readonly originalUrl?: string }): Conversion {
  return {
    method: request.method ?? "",
    headers: request.headers,
    // Middleware of Express may rewrite `url`.
    url: request.originalUrl ?? request.url,
    readBody: (reading) => readNodeBody(request, request, reading),
  };
}

/**
 * Reads the exact bytes of `stream`, unless `kept` has them. Never rejects. A body that the application parsed is
 * never serialised again: other bytes with the same meaning have another signature (RCV-1).
 */
export function readNodeBody(stream: Readable, kept: KeptBody, reading: BodyReading): Promise<BodyResult> | BodyResult {
  if (kept.rawBody instanceof Uint8Array) return takeKept(kept.rawBody, reading);
  if (kept.body instanceof Uint8Array) return takeKept(kept.body, reading);
  // `readableDidRead` is false after an empty body was consumed; `readableEnded` is false in the middle of a body.
  if (stream.readableEnded || stream.readableDidRead) return alreadyParsed(kept);
  if (stream.destroyed) return TRUNCATED;
  return new Promise((resolve) => readStream(stream, reading, (result) => resolve(result ?? alreadyParsed(kept))));
}

function alreadyParsed(kept: KeptBody): BodyResult {
  return { ok: false, reason: "already_parsed", fix: parsedBodyFix(kept) };
}

/** Checks bytes that were read before the adapter saw the request: their reader may have cut them or allowed more. */
function takeKept(bytes: Uint8Array, reading: BodyReading): BodyResult {
  if (bytes.length > reading.maxBytes) return TOO_LARGE;
  if (reading.declaredBytes !== null && bytes.length !== reading.declaredBytes) return TRUNCATED;
  reading.received(bytes.length);
  return { ok: true, bytes };
}

function readStream(stream: Readable, reading: BodyReading, settle: (result: BodyResult | null) => void): void {
  let failure: BodyResult | undefined;
  let settled = false;
  const done = (result: BodyResult | null) => {
    settled = true;
    stream.removeListener("data", count);
    stream.removeListener("close", closed);
    settle(result);
  };
  const count = (chunk: Uint8Array) => {
    const turn = reading.received(chunk.length);
    if (turn === undefined) return;
    stream.pause();
    void turn.then(() => settled || stream.resume());
  };
  // raw-body waits forever for a stream that closes without an end, an error or an abort.
  const closed = () => done(TRUNCATED);
  stream.on("data", count);
  stream.on("close", closed);
  getRawBody(stream, { limit: reading.maxBytes, length: reading.declaredBytes }, (error, bytes) => {
    done(error ? (failure ?? failureOf(error)) : { ok: true, bytes });
  });
  reading.onCut(() => {
    if (settled) return;
    failure = CUT;
    // Only an error of the stream stops raw-body; it then drops its buffer and pauses the stream.
    stream.emit("error", new Error("The read of this body was cut."));
  });
}

/** Null when something else has read the body. */
function failureOf(error: { readonly type?: string }): BodyResult | null {
  if (error.type === "entity.too.large") return TOO_LARGE;
  // An encoding was set on the stream: it returns text now, and the bytes are lost.
  if (error.type === "stream.encoding.set") return null;
  return TRUNCATED;
}

const TAKEN =
  "Something else answered a request before oncehook could, so the sender did not get oncehook's answer: an event that could not be " +
  "stored is lost if the sender received 2xx. Return or await the promise that the handler returns, and send no other answer.";
const FAILED =
  "An answer could not be written, because code that wraps the response or changes its headers threw. The connection was closed, " +
  "and the service retries. `at` is where it threw.";
const TAKEN_EXPRESS =
  "In NestJS: return this.hook(request, response), with @Res() and no passthrough. In Express: call no response.send() or next() on this route.";
const TAKEN_NODE = "In Koa: await hook(ctx.req, ctx.res), and set ctx.respond = false.";

/** Sends the answers of one mount, and logs those that could not be sent, once for each reason. Its promises never reject. */
export class NodeAnswers {
  readonly #logger: Logger;
  readonly #reported = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Writes `answer`. Resolves when the response is written or its connection has closed. */
  send(answer: WholeAnswer, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const failed = (error: unknown) => this.#abandon(error, response);
    return this.write(request, response, () => sendAnswer(answer, request, response, failed));
  }

  /** As `send`, with a function that writes the answer. */
  write(request: IncomingMessage, response: ServerResponse, write: () => void): Promise<void> {
    // If something else has answered, it may itself wait for this promise.
    return this.begin(request, response, write) ? untilOver(response) : Promise.resolve();
  }

  /** Calls `write`, unless something else has answered. If it throws, logs the error and closes the connection. */
  begin(request: IncomingMessage, response: ServerResponse, write: () => void): boolean {
    if (isAnswered(response)) {
      const fix = isExpressRequest(request) ? TAKEN_EXPRESS : TAKEN_NODE;
      this.#report({ code: "already_answered", status: response.statusCode }, `${TAKEN} ${fix}`);
      return false;
    }
    try {
      write();
    } catch (error) {
      this.#abandon(error, response);
    }
    return true;
  }

  /**
   * Answers 500 and logs the fix when a host passes its own objects instead of Node's. Null when they are Node's.
   *
   * @throws SetupError `invalid_option` when nothing can be answered, so that the host reports it
   */
  refuseWrongArguments(owner: string, request: unknown, response: unknown): Promise<void> | null {
    const wrong = wrongNodeArguments(request, response);
    if (wrong === null) return null;
    const { fix, exchange } = wrong;
    const message = `${owner} needs Node's own request and response. ${fix}`;
    if (exchange === null) throw new SetupError("invalid_option", message);
    this.#report({ code: "wrong_arguments" }, `A request was answered with 500. ${message}`);
    return this.send(answers.unread(answers.MISCONFIGURED), exchange.request, exchange.response);
  }

  /** The error's message may contain anything, so only its kind and its place are logged. */
  #abandon(error: unknown, response: ServerResponse): void {
    const reason = `${error instanceof Error ? "an error" : typeof error}${foreignLabels(error)}`;
    this.#report({ code: "answer_failed", reason, ...firstFrame(error) }, FAILED);
    breakOff(response);
  }

  #report(fields: LogFields, message: string): void {
    const key = `${fields.code} ${fields.reason}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#logger.error(fields, message);
  }
}

/** The first frame that is not Node's own, `file:line:column`. */
function firstFrame(error: unknown): { readonly at?: string } {
  const stack = error instanceof Error ? String(error.stack) : "";
  const [, at] = /^ +at (?!.*\(?node:)(?:.* \()?([^()\n]+:\d+:\d+)\)?$/m.exec(stack) ?? [];
  return at === undefined ? {} : { at };
}

/** A simulated response never emits "close", and one whose sender is gone never emits "finish". */
function untilOver(response: ServerResponse): Promise<void> {
  if (isGone(response) || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    response.once("finish", resolve);
    response.once("close", resolve);
  });
}

/** An answer to send, such as an `Answer` of the receiver. */
export interface WholeAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  /** True when the request's body was not read to its end. */
  readonly close: boolean;
}

/** The most bytes to read of a body that is not used, so that the sender sees the answer and not a reset. */
const DRAIN_BYTES = 64 * 1024;
/** The least size a drained chunk counts for, so that a sender of single bytes cannot hold its connection for long. */
const DRAIN_CHUNK_BYTES = 1024;
/** Milliseconds without a byte after which an answered connection (on HTTP/2, here and below, its stream) is closed. */
const DRAIN_IDLE_MS = 1_000;

/**
 * Writes `answer`. Does nothing when the sender is gone. Throws what the response throws, because other code may have wrapped it.
 *
 * @param failed - called with an error of the response that comes after this has returned
 */
export function sendAnswer(
  answer: WholeAnswer,
  request: IncomingMessage,
  response: ServerResponse,
  failed: (error: unknown) => void,
): void {
  if (response.destroyed) return;
  if (answer.close) return sendAndClose(answer, request, response, failed);
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
  boundTaking(response);
}

/** Limits how long the sender may take to read the rest of an ended response. Restores the connection's time-out for the next request. */
export function boundTaking(response: ServerResponse): void {
  const stream = http2Stream(response);
  const again = () => boundTaking(response);
  if (!response.writableEnded) {
    // HTTP/2 does not report the end before all is read, so it is checked each time the time-out fires.
    if (stream !== undefined) stream.setTimeout(UNTAKEN_MS, again);
    else response.once("prefinish", again);
    return;
  }
  // A response that was read leaves no timer behind.
  if (isGone(response) || response.writableLength === 0) return;
  const restore = breakOffUntaken(response);
  // Runs before Node's own listener, which sets the keep-alive time-out or starts the next response. On HTTP/2 a response
  // finishes with its stream, which a sender can keep open after it has read everything.
  (stream ?? response).prependOnceListener("finish", restore);
}

/**
 * Writes the whole answer at once but ends it only after draining the body: Node closes the socket when a response ends, and a
 * socket closed with bytes unread resets the connection, often before the sender has read the answer.
 */
function sendAndClose(
  answer: WholeAnswer,
  request: IncomingMessage,
  response: ServerResponse,
  failed: (error: unknown) => void,
): void {
  // HTTP/2 has no such header: only the stream ends.
  const headers = request.httpVersionMajor > 1 ? answer.headers : { ...answer.headers, connection: "close" };
  response.writeHead(answer.status, headers);
  if (request.complete) {
    response.end(answer.body);
    return boundTaking(response);
  }
  response.write(answer.body);
  // Do not listen to `error` from here on: without a listener, Node ignores the error of a sender that is gone.
  let left = DRAIN_BYTES;
  const finish = () => {
    if (response.writableEnded) return;
    // Without the pause, the rest of the body would be read until the answer is read, and each byte would restart the time-out.
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

/** RFC 9113, section 7. */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
/** Milliseconds without progress in reading an answer after which its connection is closed. Node's server would wait forever. */
const UNTAKEN_MS = 10_000;

/** Whether an answer has begun. */
export function isAnswered(response: ServerResponse): boolean {
  return response.headersSent || response.writableEnded;
}

/** Whether the sender is gone, so that nobody reads the response. */
export function isGone(response: ServerResponse): boolean {
  return response.destroyed || http2Stream(response)?.destroyed === true;
}

/** Whether a closed response was sent to its end. On HTTP/2, `writableFinished` alone is also true after a reset. */
export function wasSent(response: ServerResponse): boolean {
  return response.writableEnded && response.writableFinished;
}

/** Ends the response so that its reader sees that it is incomplete. On HTTP/2, a destroyed response would look complete. */
export function breakOff(response: ServerResponse): void {
  const stream = http2Stream(response);
  if (stream === undefined) response.destroy();
  else stream.close(INTERNAL_ERROR);
}

/** Breaks the response off when its reader makes no progress in time. The returned function stops this and restores the time-out. */
export function breakOffUntaken(response: ServerResponse): () => void {
  const { socket } = response;
  // A simulated response, such as that of Fastify's `inject`.
  if (socket && typeof socket.setTimeout !== "function") return () => {};
  // On HTTP/2 the stream has the time-out and its event.
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
 * Ends the response although its request has not ended. HTTP/1.1 then closes the connection. An HTTP/2 stream stays open until both sides
 * have ended; a reset without an error after the whole answer asks the sender to stop (RFC 9113, section 8.1).
 */
function endEarly(response: ServerResponse): void {
  const stream = http2Stream(response);
  stream?.once("finish", () => stream.close(NO_ERROR));
  response.end();
}

/** Responses of node:http2 have a stream that the types of node:http do not declare. */
function http2Stream(response: ServerResponse): ServerHttp2Stream | undefined {
  return "stream" in response ? (response.stream as ServerHttp2Stream) : undefined;
}
