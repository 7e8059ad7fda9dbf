/** An answer without end must not fill the memory: so many bytes are read of it, and no more. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../src/client/index.ts";
import { type Answerer, failureOf, startClient, startServer, startTokens } from "./support.ts";

const LONGEST = 32 * 1024 * 1024;
const MESSAGE = "numbers.list was answered with more than 32 MiB, which is not read.";

/** A body of so many bytes that is JSON. */
const bodyOf = (bytes: number) => `{"numbers":[]${" ".repeat(bytes - 14)}}`;

describe("an answer of more than 32 MiB", () => {
  it.each<[how: string, answer: Answerer]>([
    [
      "says so in its header",
      (_, response) => response.writeHead(200, { "content-length": LONGEST + 1 }).flushHeaders(),
    ],
    ["does not say so", (_, response) => response.end(bodyOf(LONGEST + 1)).flushHeaders()],
    ["never ends", (_, response) => pour(response)],
    ["is an error's", (_, response) => pour(response.writeHead(500))],
  ])("that %s is a ConnectionError, and not asked for again (CLI-5)", async (_, answer) => {
    let calls = 0;
    let ended = false;
    const { client } = await startServer((request, response) => {
      calls += 1;
      response.on("close", () => {
        ended = true;
      });
      answer(request, response);
    });
    const error = await failureOf(client.numbers.list(), ConnectionError);
    expect(error).toMatchObject({ message: MESSAGE, code: "connection_failed", attempts: 1 });
    expect(error.constructor).toBe(ConnectionError);
    expect(calls).toBe(1);
    while (!ended) await new Promise(setImmediate);
  });

  it("is one when its header speaks of what was compressed", async () => {
    const { client } = await startServer((_, response) => {
      const zipped = gzipSync(bodyOf(LONGEST + 1));
      response.writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length }).end(zipped);
    });
    expect((await failureOf(client.numbers.list(), ConnectionError)).message).toBe(MESSAGE);
  });

  it("of the token route is the same (CLI-4)", async () => {
    const { client, tokenRequests } = await startTokens((response) => pour(response));
    const error = await failureOf(client.whoami(), ConnectionError);
    expect(error).toMatchObject({
      message: "The token route was answered with more than 32 MiB, which is not read.",
      attempts: 0,
    });
    expect(tokenRequests()).toBe(1);
  });
});

describe("an answer of 32 MiB", () => {
  it.each([undefined, `${LONGEST}`])("is read, with a content-length of %s", async (length) => {
    const headers = length === undefined ? {} : { "content-length": length };
    const { client } = await startClient({ fetch: async (input) => answerFor(input, bodyOf(LONGEST), headers) });
    expect(await client.numbers.list()).toEqual([]);
  });
});

describe("an answer that is counted", () => {
  it("is read as any other: characters that are cut in two, a byte order mark, nothing at all", async () => {
    const bytes = Buffer.from('\ufeff{"numbers":[],"text":"é😀"}');
    const body = () =>
      new ReadableStream({
        start(controller) {
          for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
          controller.close();
        },
      });
    const { client } = await startClient({ fetch: async (input) => answerFor(input, body()) });
    const { data, response } = await client.whoami().withResponse();
    expect(data).toEqual({ numbers: [], text: "é😀" });
    expect(response.bodyUsed).toBe(true);
  });
});

function answerFor(input: unknown, body: string | ReadableStream, headers: Record<string, string> = {}): Response {
  if (String(input).endsWith("/token")) return Response.json({ access_token: "t" });
  return new Response(body, { headers });
}

/** Writes without end, as fast as it is read. */
function pour(response: Parameters<Answerer>[1]): void {
  const chunk = Buffer.alloc(1024 * 1024, " ");
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
}
