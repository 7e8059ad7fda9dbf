/** One POST to an application, and the head of its answer; nothing of the answer's body is kept. */
import { type ClientRequest, type IncomingMessage, Agent as PlainAgent, request as plainRequest } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { systemClock } from "../internal/clock.ts";

export interface Post {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/** What is looked at of an answer. */
export interface AnswerHead {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

/** Of an answer's body this much is read, for so long, so that its connection can serve again; then the connection is cut. */
const DRAIN_BYTES = 64 * 1024;
const DRAIN_MS = 1_000;

/** Makes the function that posts to `url` over connections that are kept. It follows no redirect and uses no proxy. */
export function poster(url: URL): (post: Post) => Promise<AnswerHead> {
  // Agents of our own: the global ones follow proxy variables where Node is told so.
  const options = { keepAlive: true, scheduling: "lifo" } as const;
  const isSecure = url.protocol === "https:";
  const agent = isSecure ? new SecureAgent(options) : new PlainAgent(options);
  const open = ({ headers, body, signal }: Post, through: PlainAgent | false) => {
    const sent = {
      method: "POST",
      headers: { ...headers, "content-length": `${body.length}` },
      agent: through,
      signal,
    };
    return isSecure ? secureRequest(url, sent) : plainRequest(url, sent);
  };
  return async (post) => {
    const request = open(post, agent);
    try {
      return await exchange(request, post.body);
    } catch (error) {
      if (!request.reusedSocket || !isCut(error)) throw error;
      // The application ended an idle connection while the request was on its way. Whether it saw the request is unknown, as with any
      // failure; a new connection settles it, and no other kept one is tried: the event may be what ends them.
      return exchange(open(post, false), post.body);
    }
  };
}

function exchange(request: ClientRequest, body: Uint8Array): Promise<AnswerHead> {
  return new Promise((resolve, reject) => {
    let answered = false;
    request.on("error", reject);
    // For what ends without an error, such as an answer that switches protocols.
    request.on("close", () => {
      if (!answered) reject(new Error("The application ended the connection without an answer."));
    });
    request.on("response", (response) => {
      const { statusCode = 0, headers } = response;
      answered = true;
      drain(response, request);
      resolve({ status: statusCode, retryAfter: headers["retry-after"] });
    });
    request.end(body);
  });
}

function drain(response: IncomingMessage, request: ClientRequest): void {
  let left = DRAIN_BYTES;
  const cut = () => request.destroy();
  const limit = systemClock.setTimeout(cut, DRAIN_MS);
  response.on("data", (chunk: Uint8Array) => {
    left -= chunk.length;
    if (left < 0) cut();
  });
  // The status has said all: how the body ends changes nothing.
  response.on("error", () => {});
  response.on("close", () => limit.cancel());
}

function isCut(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");
}
