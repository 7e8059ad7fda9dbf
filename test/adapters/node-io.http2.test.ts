/** How an answer ends on HTTP/2, where one connection carries many: whatever is refused or not taken, its stream ends alone. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type ClientHttp2Stream, connect, createServer, type ServerHttp2Stream, type SessionOptions } from "node:http2";
import { setImmediate as nextRound } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { sendStream } from "../../adapters/node-inspector.ts";
import { boundTaking, sendAnswer } from "../../adapters/node-io.ts";
import { listenOnLoopback } from "../support/loopback.ts";

const BODY = '{"error":"payload_too_large"}';
const REFUSAL = { status: 413, headers: { "content-type": "application/json" }, body: BODY, close: true };
/** RFC 9113, section 7. */
const NO_ERROR = 0;
const INTERNAL_ERROR = 2;

interface Exchange {
  /** The sender's end of the stream. */
  readonly sender: ClientHttp2Stream;
  /** The server's end of it; its time-out is known to Node alone. */
  readonly stream: ServerHttp2Stream & { readonly timeout?: number };
  readonly response: ServerResponse;
}

/** Opens a stream whose request does not end by itself; `answer` is what the server does with it. */
async function exchange(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  settings: SessionOptions["settings"] = {},
): Promise<Exchange> {
  const server = createServer();
  const session = connect(`http://127.0.0.1:${await listenOnLoopback(server)}`, { settings });
  onTestFinished(() => {
    session.destroy();
    server.close();
  });
  const asked = once(server, "request");
  const sender = session.request({ ":method": "POST", ":path": "/" }, { endStream: false });
  sender.on("error", () => {});
  const [request, response] = await asked;
  answer(request, response);
  return { sender, stream: response.stream, response };
}

/** What was sent to it. An iterator would take a stream for cut off whose sender was asked to stop. */
async function answerTo(sender: ClientHttp2Stream): Promise<string> {
  let text = "";
  sender.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  await once(sender, "end");
  return text;
}

/** Whatever error it closes with. */
function closeOf(stream: ClientHttp2Stream | ServerHttp2Stream): Promise<void> {
  return new Promise((resolve) => stream.once("close", resolve));
}

const refuse = (request: IncomingMessage, response: ServerResponse) => sendAnswer(REFUSAL, request, response, () => {});

describe("sendAnswer() on HTTP/2, to a request whose body is not read", () => {
  it("ends the stream of a sender that is silent, behind the whole answer", async () => {
    const { sender } = await exchange(refuse);
    const closed = closeOf(sender);
    expect(await answerTo(sender)).toBe(BODY);
    await closed;
    expect(sender.rstCode).toBe(NO_ERROR);
  });

  it("reads no more than its limit of one that goes on and on", async () => {
    const { sender, stream } = await exchange(refuse);
    const closed = closeOf(stream);
    const answer = answerTo(sender);
    const chunk = Buffer.alloc(16_384);
    let sent = 0;
    for (; !stream.destroyed && sent < 4_000_000; sent += chunk.length) {
      const taken = new Promise((resolve) => sender.write(chunk, resolve));
      await Promise.race([taken, closed]);
    }
    // The limit, and what a sender may send ahead on a stream (RFC 9113, section 6.9.2).
    expect(sent).toBeLessThan(200_000);
    expect(await answer).toBe(BODY);
    await closed;
    expect([sender.rstCode, stream.rstCode]).toEqual([NO_ERROR, NO_ERROR]);
  });

  it("reads nothing more while its answer is not taken, and then lets go", async () => {
    const { sender, stream } = await exchange(refuse, { initialWindowSize: 0 });
    const closed = closeOf(sender);
    stream.emit("timeout");
    expect(stream.timeout).toBe(10_000);
    expect(stream.isPaused()).toBe(true);
    stream.emit("timeout");
    await closed;
    expect(sender.rstCode).toBe(INTERNAL_ERROR);
  });

  it("leaves the stream of a sender that comes to its end to itself", async () => {
    const { sender, stream } = await exchange(refuse);
    const closed = closeOf(stream);
    sender.end("12345");
    expect(await answerTo(sender)).toBe(BODY);
    await closed;
    expect([stream.rstCode, stream.aborted]).toEqual([NO_ERROR, false]);
  });
});

describe("boundTaking() on HTTP/2", () => {
  const answerLater = (_request: IncomingMessage, response: ServerResponse) => boundTaking(response);

  it("lets go of an answer that is not taken, however late it was given", async () => {
    const { sender, stream, response } = await exchange(answerLater, { initialWindowSize: 0 });
    const closed = closeOf(sender);
    // Its time is up while there is no answer yet: that is the application's.
    stream.emit("timeout");
    response.end(BODY);
    await once(sender, "response");
    stream.emit("timeout");
    expect([stream.timeout, stream.destroyed]).toEqual([10_000, false]);
    stream.emit("timeout");
    await closed;
    expect(sender.rstCode).toBe(INTERNAL_ERROR);
  });

  it("breaks off none that was taken before its time was up, though the sender has not come to its end", async () => {
    const { sender, stream, response } = await exchange((request, answered) => {
      request.resume();
      answerLater(request, answered);
    });
    response.end(BODY);
    expect(await answerTo(sender)).toBe(BODY);
    while (!stream.writableFinished) await nextRound();
    for (let count = 0; count < 2; count++) stream.emit("timeout");
    expect(stream.closed).toBe(false);
    const closed = closeOf(sender);
    sender.end();
    await closed;
    expect(sender.rstCode).toBe(NO_ERROR);
  });

  it("breaks off none that was taken, though the sender has not come to its end", async () => {
    const { sender, stream, response } = await exchange((request) => request.resume());
    response.end(BODY);
    boundTaking(response);
    expect(await answerTo(sender)).toBe(BODY);
    while (!stream.writableFinished) await nextRound();
    expect(stream.timeout).toBe(0);
    const closed = closeOf(sender);
    sender.end();
    await closed;
    expect(sender.rstCode).toBe(NO_ERROR);
  });
});

describe("sendStream() on HTTP/2", () => {
  it("lets go of a stream of which nothing is taken, and of it alone", async () => {
    let sent: Promise<void> | undefined;
    const chunks = async function* () {
      for (;;) yield BODY.repeat(1_000);
    };
    const { sender, stream } = await exchange(
      (_request, answered) => {
        sent = sendStream(chunks(), answered);
      },
      { initialWindowSize: 0 },
    );
    while (!stream.writableNeedDrain) await nextRound();
    expect(stream.timeout).toBe(10_000);
    const { session } = stream;
    const closed = closeOf(sender);
    stream.emit("timeout");
    await closed;
    await sent;
    expect([sender.rstCode, session?.destroyed]).toEqual([INTERNAL_ERROR, false]);
  });
});
