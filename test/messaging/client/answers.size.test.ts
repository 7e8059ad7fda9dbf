/** An answer without end must not fill the memory: so many bytes are read of it, and no more. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../../src/messaging/client/index.ts";
import { type Answerer, failureOf, startClient, startServer, startTokens } from "./support.ts";

const LONGEST = 32 * 1024 * 1024;

/** A body of so many bytes that is JSON. */
const bodyOf = (bytes: number) => `{"numbers":[]${" ".repeat(bytes - 14)}}`;

/** Writes without end, as fast as it is read. */
const pour: Answerer = (_, response) => {
  const chunk = Buffer.alloc(1024 * 1024, " ");
  const more = () => {
    while (!response.destroyed && response.write(chunk));
  };
  response.on("drain", more);
  more();
};

describe("an answer of more than 32 MiB", () => {
  it.each<[how: string, answer: Answerer]>([
    [
      "says so in its header",
      (_, response) => response.writeHead(200, { "content-length": LONGEST + 1 }).flushHeaders(),
    ],
    ["does not say so", (_, response) => response.end(bodyOf(LONGEST + 1)).flushHeaders()],
    ["never ends", pour],
    ["is an error's", (request, response) => pour(request, response.writeHead(500))],
    [
      "has a header that speaks of what was compressed",
      (_, response) => {
        const zipped = gzipSync(bodyOf(LONGEST + 1));
        response.writeHead(200, { "content-encoding": "gzip", "content-length": zipped.length }).end(zipped);
      },
    ],
  ])("that %s is a ConnectionError, and not asked for again (CLI-5)", async (_, answer) => {
    let ended = 0;
    const { client } = await startServer((request, response) => {
      response.on("close", () => {
        ended += 1;
      });
      answer(request, response);
    });
    const error = await failureOf(client.numbers.list(), ConnectionError);
    const message = "numbers.list was answered with more than 32 MiB, which is not read.";
    expect(error).toMatchObject({ message, code: "connection_failed", attempts: 1 });
    expect(error.constructor).toBe(ConnectionError);
    while (ended === 0) await new Promise(setImmediate);
    expect(ended).toBe(1);
  });

  it("of the token route is the same (CLI-4)", async () => {
    const { client, tokenRequests } = await startTokens(pour);
    const error = await failureOf(client.whoami(), ConnectionError);
    const message = "The token route was answered with more than 32 MiB, which is not read.";
    expect(error).toMatchObject({ message, attempts: 0 });
    expect(tokenRequests()).toBe(1);
  });
});

/** A client whose calls have such an answer. */
function answering(body: () => string | ReadableStream, headers: Record<string, string> = {}) {
  return startClient({
    fetch: async (input) =>
      String(input).endsWith("/token") ? Response.json({ access_token: "t" }) : new Response(body(), { headers }),
  });
}

describe("an answer that is read", () => {
  it.each([{}, { "content-length": `${LONGEST}` }])("may have 32 MiB, with the headers %j", async (headers) => {
    const { client } = await answering(() => bodyOf(LONGEST), headers);
    expect(await client.numbers.list()).toEqual([]);
  });

  it("is counted byte by byte: characters that are cut in two, a byte order mark, nothing at all", async () => {
    const bytes = Buffer.from('\ufeff{"numbers":[],"text":"é😀"}');
    const body = () => ReadableStream.from([...bytes].map((byte) => new Uint8Array([byte])));
    const { client } = await answering(body);
    const { data, response } = await client.whoami().withResponse();
    expect(data).toEqual({ numbers: [], text: "é😀" });
    expect(response.bodyUsed).toBe(true);
  });
});
