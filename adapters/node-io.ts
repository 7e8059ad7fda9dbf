/** Node's side of an adapter: the exact bytes of a request, and its answer, whatever the connection does. */
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
import { isExpressRequest, parsedBodyFix, wrongNodeArguments } from "./host-fixes.ts";
import type { Conversion } from "./options.ts";

// The one raw-body reader: the exact bytes of a Node request, or the reason why they cannot be had.

/** Where a capture hook or a raw parser may have kept the bytes; only a `Uint8Array` is believed. */
export interface KeptBody {
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

const TOO_LARGE: BodyResult = { ok: false, reason: "too_large" };
const TRUNCATED: BodyResult = { ok: false, reason: "truncated" };
const CUT: BodyResult = { ok: false, reason: "cut" };

/** `request` as the receiver takes it. */
export function convert(request: IncomingMessage & KeptBody): Conversion {
  return {
    method: request.method ?? "",
    headers: request.headers,
    readBody: (reading) => readBody(request, request, reading),
  };
}

/**
 * Reads the exact bytes of `stream`, unless `kept` still has them. Never rejects. A body that the application parsed is
 * never written out again: other bytes with the same meaning have another signature (RCV-1).
 */
export function readBody(stream: Readable, kept: KeptBody, reading: BodyReading): Promise<BodyResult> | BodyResult {
  if (kept.rawBody instanceof Uint8Array) return takeKept(kept.rawBody, reading);
  if (kept.body instanceof Uint8Array) return takeKept(kept.body, reading);
  // After an empty body was consumed `readableDidRead` is false; in the midst of one `readableEnded` is.
  if (stream.readableEnded || stream.readableDidRead) return alreadyParsed(kept);
  if (stream.destroyed) return TRUNCATED;
  return new Promise((resolve) => readStream(stream, reading, (result) => resolve(result ?? alreadyParsed(kept))));
}

function alreadyParsed(kept: KeptBody): BodyResult {
  return { ok: false, reason: "already_parsed", fix: parsedBodyFix(kept) };
}

/** Checks bytes that were read before the adapter saw the request: their reader may have cut them, or allowed more. */
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
  const count = (chunk: Uint8Array) => reading.received(chunk.length);
  // raw-body waits for ever on a stream that closes without an end, an error or an abort.
  const closed = () => done(TRUNCATED);
  stream.on("data", count);
  stream.on("close", closed);
  getRawBody(stream, { limit: reading.maxBytes, length: reading.declaredBytes }, (error, bytes) => {
    done(error ? (failure ?? failureOf(error)) : { ok: true, bytes });
  });
  reading.onCut(() => {
    if (settled) return;
    failure = CUT;
    // raw-body stops for nothing but an error of its stream; it then drops what it buffered and pauses the stream.
    stream.emit("error", new Error("The read of this body was cut."));
  });
}

/** Null when somebody else has read it. */
function failureOf(error: { readonly type?: string }): BodyResult | null {
  if (error.type === "entity.too.large") return TOO_LARGE;
  // Someone set an encoding on the stream: it gives text now, and the bytes are gone.
  if (error.type === "stream.encoding.set") return null;
  return TRUNCATED;
}

// Sends the answers of one mount, and reports those that could not be sent: once for each reason.

const TAKEN =
  "Something else answered a request before oncehook could, so the sender did not get oncehook's answer: an event that could not be " +
  "stored is lost if the sender was told 2xx. Return or await the promise that the handler returns, and send no other answer.";
const FAILED =
  "An answer could not be written, because something threw that wraps the response or changes its headers. The connection was closed, " +
  "and the service retries. `at` is where it threw.";
const TAKEN_EXPRESS =
  "In NestJS: return this.hook(request, response), with @Res() and no passthrough. In Express: call no response.send() or next() on this route.";
const TAKEN_NODE = "In Koa: await hook(ctx.req, ctx.res), and set ctx.respond = false.";

/** One per mount. None of its promises rejects. */
export class NodeAnswers {
  readonly #logger: Logger;
  readonly #reported = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Writes `answer`. Resolves when the response is written out or its connection has closed. */
  send(answer: WholeAnswer, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const failed = (error: unknown) => this.#letGo(error, response);
    return this.write(request, response, () => sendAnswer(answer, { request, response, failed }));
  }

  /** As `send`, with whatever `write` writes. */
  write(request: IncomingMessage, response: ServerResponse, write: () => void): Promise<void> {
    // What has answered instead may wait for this promise.
    return this.begin(request, response, write) ? untilOver(response) : Promise.resolve();
  }

  /** Lets `write` answer, unless something else has. What it throws is logged, and the connection let go of. */
  begin(request: IncomingMessage, response: ServerResponse, write: () => void): boolean {
    if (isAnswered(response)) {
      const fix = isExpressRequest(request) ? TAKEN_EXPRESS : TAKEN_NODE;
      this.#report({ code: "already_answered", status: response.statusCode }, `${TAKEN} ${fix}`);
      return false;
    }
    try {
      write();
    } catch (error) {
      this.#letGo(error, response);
    }
    return true;
  }

  /**
   * Answers 500 when a host's own objects came in place of Node's, and logs the fix. Null when they are Node's.
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

  /** Its message may hold anything, so only its kind and its place are logged. */
  #letGo(error: unknown, response: ServerResponse): void {
    const reason = `${error instanceof Error ? "an error" : typeof error}${foreignLabels(error)}`;
    this.#report({ code: "answer_failed", reason, ...placeOf(error) }, FAILED);
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
function placeOf(error: unknown): { readonly at?: string } {
  const stack = error instanceof Error ? String(error.stack) : "";
  const [, at] = /^ +at (?!.*\(?node:)(?:.* \()?([^()\n]+:\d+:\d+)\)?$/m.exec(stack) ?? [];
  return at === undefined ? {} : { at };
}

/** "close" never comes on a response that is only simulated, nor "finish" on one whose sender is gone. */
function untilOver(response: ServerResponse): Promise<void> {
  if (isGone(response) || response.writableFinished) return Promise.resolve();
  return new Promise((resolve) => {
    response.once("finish", resolve);
    response.once("close", resolve);
  });
}

// Writes an answer to a Node response, and ends the connection of a request whose body was not read.

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

interface Exchange {
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

// Whether a Node response can still be written, and how it is broken off: HTTP/1.1 and HTTP/2 differ in both.

/** RFC 9113, section 7. */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;
/** Milliseconds in which nothing of an answer is taken, after which its connection is closed: a server of Node waits for ever. */
const UNTAKEN_MS = 10_000;

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
function endEarly(response: ServerResponse): void {
  const stream = http2Stream(response);
  stream?.once("finish", () => stream.close(NO_ERROR));
  response.end();
}

/** The responses of node:http2 have it, and the types of node:http know nothing of them. */
function http2Stream(response: ServerResponse): ServerHttp2Stream | undefined {
  return "stream" in response ? (response.stream as ServerHttp2Stream) : undefined;
}
