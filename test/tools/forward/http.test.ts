/** Events posted to an application: what is sent, what its answers mean, and how little of them is believed. */
import type { ServerResponse } from "node:http";
import { createServer } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { OncehookError, PermanentError, RetryAfter } from "../../../src/index.ts";
import { type ForwardedMessage, forward, httpPublisher } from "../../../src/tools/forward/index.ts";
import { type Circumstances, messageOf } from "../../../src/tools/forward/publisher.ts";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { idleTurns, sqliteBench } from "../../receiver/bench.ts";
import { opensslHmac } from "../../sources/messaging/openssl.ts";
import { listenOnLoopback } from "../../support/loopback.ts";
import { answerWith, startApplication } from "./http-application.ts";

const SECRET = "a-forwarding-secret-of-32-bytes-";
const BODY = ` ${JSON.stringify(fixtures.queued({ data: { note: "ü \\u00fc" } }))}\n`;

function message(circumstances: Partial<Circumstances> = {}): ForwardedMessage {
  const usual = { traceparent: null, attempt: 1, replay: false, late: false, missing: null };
  const { signal } = new AbortController();
  return messageOf(fixtures.queued(), Buffer.from(BODY), { signal, ...usual, ...circumstances });
}

/** What a publication to `url` rejects with; undefined when it does not. */
async function failureOf(url: string, given = message()): Promise<unknown> {
  try {
    await httpPublisher({ url, secret: SECRET }).publish(given);
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("httpPublisher()", () => {
  it("posts the exact bytes with identity, key and circumstances, signed so that openssl agrees (RCV-1)", async () => {
    const { url, got } = await startApplication();
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const given = message({ attempt: 3, late: true, missing: { from: 2, to: 3 }, traceparent });
    await httpPublisher({ url, secret: SECRET }).publish(given);
    const [posted] = got;
    expect([posted?.method, posted?.path]).toEqual(["POST", "/events?from=oncehook"]);
    expect(posted?.body.toString()).toBe(BODY);
    expect(posted?.headers).toMatchObject({
      "content-type": "application/json",
      "content-length": `${Buffer.byteLength(BODY)}`,
      "oncehook-id": given.id,
      "oncehook-key": given.key,
      "oncehook-event-type": "message.queued",
      "oncehook-source": "service",
      "oncehook-lane": "msg_000001",
      "oncehook-sequence": "1",
      "oncehook-attempt": "3",
      "oncehook-late": "true",
      "oncehook-missing": "2-3",
      traceparent,
    });
    const timestamp = String(posted?.headers["oncehook-timestamp"]);
    expect(Math.abs(Date.now() - Number(timestamp))).toBeLessThan(10_000);
    expect(posted?.headers["oncehook-signature"]).toBe(opensslHmac(SECRET, timestamp, BODY).toString("hex"));
  });

  it.each([200, 201, 202, 204, 299])("takes %i for handled", async (status) => {
    const { url } = await startApplication(answerWith(status));
    expect(await failureOf(url)).toBeUndefined();
  });

  it.each([400, 401, 403, 404, 410, 413, 422, 499])("takes %i for permanent", async (status) => {
    const { url } = await startApplication(answerWith(status, { "retry-after": "1" }));
    const error = await failureOf(url);
    expect(error).toBeInstanceOf(PermanentError);
    expect(String(error)).toContain(`${status}`);
  });

  it.each([301, 302, 304, 307, 308, 408, 409, 425, 429, 500, 501, 502, 503, 504])("tries %i again", async (status) => {
    const { url, got } = await startApplication(answerWith(status, { location: "/elsewhere" }));
    const error = await failureOf(url);
    expect(error).toBeInstanceOf(OncehookError);
    expect(error).toMatchObject({ code: "target_refused", fields: { status } });
    // A redirect is not followed.
    expect(got).toHaveLength(1);
  });

  it.each([
    ["120", 120_000, 120_000],
    ["86400", 3_600_000, 3_600_000],
    ["99999999999999999999", 3_600_000, 3_600_000],
    // The inbox's own wait after a second attempt: five seconds, or down to half of it.
    ["0", 2_500, 5_000],
    ["1", 2_500, 5_000],
    [new Date(Date.now() - 60_000).toUTCString(), 2_500, 5_000],
    [new Date(Date.now() + 600_000).toUTCString(), 590_000, 600_000],
  ])("heeds Retry-After: %s, an hour at most and never below the inbox's own wait", async (text, least, most) => {
    const { url } = await startApplication(answerWith(503, { "retry-after": text }));
    const error = await failureOf(url, message({ attempt: 2 }));
    expect(error).toBeInstanceOf(RetryAfter);
    expect((error as RetryAfter).ms).toBeGreaterThanOrEqual(least);
    expect((error as RetryAfter).ms).toBeLessThanOrEqual(most);
  });

  it("takes a Retry-After that is neither seconds nor a date for none", async () => {
    const { url } = await startApplication(answerWith(503, { "retry-after": "soon" }));
    expect(await failureOf(url)).toMatchObject({ code: "target_refused" });
  });

  it("keeps its connection, also behind an answer with a body", async () => {
    const { url, connections } = await startApplication((response) => response.end("handled".repeat(100)));
    const publisher = httpPublisher({ url, secret: SECRET });
    for (let round = 0; round < 3; round++) {
      await publisher.publish(message());
      // The connection is given back when the answer's body has ended, a moment after its head.
      await idleTurns();
    }
    expect(connections).toHaveLength(1);
  });

  it("cuts an answer that does not end: its status has said all", async () => {
    const { url, connections } = await startApplication((response) => {
      response.writeHead(200);
      const write = () =>
        void (response.write(Buffer.alloc(64 * 1024)) ? setImmediate(write) : response.once("drain", write));
      write();
    });
    expect(await failureOf(url)).toBeUndefined();
    await expect.poll(() => connections[0]?.destroyed).toBe(true);
  });

  it("tries once more at once what met the end of an idle connection", async () => {
    const { url, got, connections } = await startApplication((response, { headers }) => {
      // The second request on the first connection meets its end, as if the application had just closed it.
      if (connections.length === 1 && headers["oncehook-attempt"] === "2") connections[0]?.resetAndDestroy();
      else response.writeHead(204).end();
    });
    const publisher = httpPublisher({ url, secret: SECRET });
    await publisher.publish(message());
    await publisher.publish(message({ attempt: 2 }));
    expect(got.map(({ headers }) => headers["oncehook-attempt"])).toEqual(["1", "2", "2"]);
    expect(connections).toHaveLength(2);
  });

  it("tries once more only, however many connections it has kept", async () => {
    const held: ServerResponse[] = [];
    const { url, got, connections } = await startApplication((response, { headers }) => {
      if (headers["oncehook-attempt"] === "2") return void response.socket?.resetAndDestroy();
      held.push(response);
      if (held.length === 3) for (const one of held) one.writeHead(204).end();
    });
    const publisher = httpPublisher({ url, secret: SECRET });
    await Promise.all([1, 2, 3].map(() => publisher.publish(message())));
    await idleTurns();
    await expect(publisher.publish(message({ attempt: 2 }))).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(got.filter(({ headers }) => headers["oncehook-attempt"] === "2")).toHaveLength(2);
    expect(connections).toHaveLength(4);
  });

  it("does not repeat by itself what was cut on a new connection", async () => {
    const { url, got, connections } = await startApplication(() => connections[0]?.resetAndDestroy());
    expect(await failureOf(url)).toMatchObject({ code: "ECONNRESET" });
    expect(got).toHaveLength(1);
  });

  it.each(["HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", "SSH-2.0-x\r\n\r\n", ""])(
    "fails on the answer %j",
    async (text) => {
      const server = createServer((socket) => void socket.once("data", () => socket.end(text)));
      onTestFinished(() => void server.close());
      const port = await listenOnLoopback(server);
      expect(await failureOf(`http://127.0.0.1:${port}/`)).toBeInstanceOf(Error);
    },
  );

  it("gives the request up when nobody waits any more", async () => {
    const abort = new AbortController();
    const { url, connections } = await startApplication(() => abort.abort());
    expect(await failureOf(url, message({ signal: abort.signal }))).toMatchObject({ name: "AbortError" });
    await expect.poll(() => connections[0]?.destroyed).toBe(true);
  });

  it.each([
    ["no URL", { url: "events", secret: SECRET }, /"url" must be an http/],
    ["another scheme", { url: "ftp://127.0.0.1/", secret: SECRET }, /"url" must be an http/],
    ["a password", { url: "http://user:hunter2hunter2@127.0.0.1/", secret: SECRET }, /"url" must hold no user name/],
    ["a user name", { url: new URL("http://hunter2hunter2@127.0.0.1/"), secret: SECRET }, /must hold no user name/],
    ["no secret", { url: "http://127.0.0.1/", secret: "" }, /"secret" is an empty text/],
    ["a short secret", { url: "http://127.0.0.1/", secret: "hunter2" }, /at least 16/],
    ["an unknown option", { url: "http://127.0.0.1/", secret: SECRET, timeout: 1 }, /no option "timeout"/],
  ])("refuses %s, and shows none of it", (_case, options, message) => {
    const refused = () => httpPublisher(options);
    expect(refused).toThrow(message);
    expect(refused).not.toThrow("hunter2");
  });
});

describe("forward(httpPublisher())", () => {
  it("completes what was answered 2xx, and makes a dead letter of a permanent refusal", async () => {
    const { url } = await startApplication((response, { headers }) => {
      response.writeHead(headers["oncehook-sequence"] === "1" ? 422 : 200).end();
    });
    const { receiver, deliver } = sqliteBench();
    receiver.onAny(forward(httpPublisher({ url, secret: SECRET })));
    for (const event of [fixtures.queued(), fixtures.sent()]) await deliver(JSON.stringify(event));
    await receiver.drain();
    const lane = await receiver.inbox.lane({
      source: "service",
      tenant: "apc_1",
      name: "msg_000001",
      order: "sequence",
    });
    const ends = lane?.events.map(({ state, errorCode, error }) => [state, errorCode, error]);
    expect(ends).toEqual([
      ["dead", "permanent_failure", "The application answered 422."],
      ["done", null, null],
    ]);
  });
});
