/** Answers on Node responses that something else has to do with too. */
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { setImmediate as nextRound } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { sendAnswer as send, type WholeAnswer } from "../../adapters/node-io.ts";
import { openConnection, requestBytes } from "../../src/testing/adapter-contract-wire.ts";
import { serve } from "./serving.ts";

const ANSWER = { status: 200, headers: { "content-length": "6" }, body: "second", close: false };
const REFUSAL = { ...ANSWER, status: 413, close: true };

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const sendAnswer = (answer: WholeAnswer, request: IncomingMessage, response: ServerResponse) =>
  send(answer, { request, response, failed: () => {} });

/** What a server has of requests that one connection sends at once. */
async function exchanges(...requests: readonly Buffer[]) {
  const begun: Exchange[] = [];
  const { port, close } = await serve((request, response) => void begun.push({ request, response }));
  const connection = await openConnection(port);
  onTestFinished(() => {
    connection.close();
    return close();
  });
  connection.send(Buffer.concat(requests));
  while (begun.length < requests.length) await nextRound();
  return { begun, connection };
}

async function exchange(sent: Buffer) {
  const { begun, connection } = await exchanges(sent);
  const [only] = begun;
  if (only === undefined) throw new Error("The server saw no request.");
  return { ...only, connection };
}

const GET = requestBytes({ method: "GET" });

describe("sendAnswer()", () => {
  it("does nothing for a sender who is gone: no log shall say that it was answered", async () => {
    const { request, response } = await exchange(GET);
    const closed = once(response, "close");
    response.destroy();
    await closed;
    sendAnswer(ANSWER, request, response);
    expect(response.headersSent).toBe(false);
  });

  it("answers a request whose turn on its connection has not come", async () => {
    const { begun, connection } = await exchanges(GET, GET);
    const [first, second] = begun;
    if (first === undefined || second === undefined) throw new Error("The server saw no two requests.");
    expect(() => sendAnswer(ANSWER, second.request, second.response)).not.toThrow();
    const answer = { ...ANSWER, headers: { "content-length": "5" }, body: "first" };
    sendAnswer(answer, first.request, first.response);
    expect([await connection.answer(), await connection.answer()]).toMatchObject([
      { body: "first" },
      { body: "second" },
    ]);
  });

  it.each([
    [65_535, false],
    [65_536, true],
  ])("of a body that nobody reads takes 64 KiB at most: with %d bytes it has ended: %s", async (bytes, hasEnded) => {
    const { request, response } = await exchange(requestBytes({ headers: [["Content-Length", "1000000"]] }));
    sendAnswer(REFUSAL, request, response);
    request.emit("data", Buffer.alloc(bytes));
    expect(response.writableEnded).toBe(hasEnded);
  });
});
