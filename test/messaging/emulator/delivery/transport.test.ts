import { createServer as createSecureServer } from "node:https";
import { describe, expect, it, vi } from "vitest";
import { wordOf } from "../../../../src/messaging/emulator/delivery/transport.ts";
import { createFakeClock } from "../../../../src/tools/testing/index.ts";
import { watchedTimers } from "../../../support/watched-timers.ts";
import { selfSigned } from "../transport-certificate.ts";
import { OK, outgoing, rawReceiver, receiver, transportWith, until } from "../transport-receiver.ts";

describe("createTransport()", () => {
  it("sends method, path, headers and exact bytes, and tells the answer (DLV-11)", async () => {
    const { url, got } = await receiver((response) => {
      response.writeHead(201, { "x-answer": "yes", "set-cookie": ["a=1", "b=2"] }).end("thanks");
    });
    const body = Buffer.from([0xff, 0x00, 0x7b, 0xe2, 0x82]);
    const headers = { "content-type": "application/json; charset=utf-8", "X-Service-Timestamp": "17" };
    const outcome = await transportWith().send(outgoing(url, { method: "PUT", headers, body }));
    expect(outcome).toMatchObject({ status: 201, error: null, body: "thanks" });
    expect(outcome.headers).toMatchObject({ "x-answer": "yes", "set-cookie": "a=1, b=2" });
    expect(got).toHaveLength(1);
    expect(got[0]?.request).toMatchObject({ method: "PUT", url: "/hooks?a=1" });
    expect(got[0]?.request.headers).toMatchObject({
      "content-length": "5",
      "x-service-timestamp": "17",
      "content-type": headers["content-type"],
    });
    expect(got[0]?.request.rawHeaders).toContain("X-Service-Timestamp");
    expect(got[0]?.body.equals(body)).toBe(true);
  });

  it("keeps an answer's headers without its date, so that logs repeat whoever receives", async () => {
    const { url } = await receiver((response) => response.writeHead(200, { "x-answer": "yes" }).end());
    expect((await fetch(url)).headers.get("date")).not.toBeNull();
    const { headers } = await transportWith().send(outgoing(url));
    expect([headers["x-answer"], headers.date]).toEqual(["yes", undefined]);
  });

  it.each([301, 302, 303, 307, 308])("does not follow a %i (DLV-19)", async (status) => {
    const elsewhere = await receiver();
    const { url, got } = await receiver((response) => response.writeHead(status, { location: elsewhere.url }).end());
    const outcome = await transportWith().send(outgoing(url));
    expect(outcome).toMatchObject({ status, error: null, headers: { location: elsewhere.url } });
    expect(got).toHaveLength(1);
    expect(elsewhere.connections).toHaveLength(0);
  });

  it("asks no proxy, whatever the environment says", async () => {
    const proxy = await receiver();
    for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) vi.stubEnv(name, proxy.url);
    vi.stubEnv("NO_PROXY", "");
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    const { url, got } = await receiver();
    try {
      expect(await transportWith().send(outgoing(url))).toMatchObject({ status: 200 });
    } finally {
      vi.unstubAllEnvs();
    }
    expect([got.length, proxy.connections.length]).toEqual([1, 0]);
  });

  it("speaks TLS, and does not trust a certificate that nobody vouches for", async () => {
    const { key, cert } = selfSigned();
    const { port } = await receiver(undefined, "127.0.0.1", (handle) => createSecureServer({ key, cert }, handle));
    const transport = transportWith();
    const target = outgoing(`https://localhost:${port}/`);
    expect(await transport.send(target)).toMatchObject({ status: null, error: "failed" });
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    try {
      expect(await transport.send(target)).toMatchObject({ status: 200, error: null });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe("an answer's body", () => {
  it("is kept up to 16 KiB", async () => {
    for (const length of [16_384, 16_385, 200_000]) {
      const { url } = await receiver((response) => response.end("x".repeat(length)));
      const { status, body } = await transportWith().send(outgoing(url));
      expect([status, body.length]).toEqual([200, 16_384]);
    }
  });

  it("is not read without end: the answer counts, its connection is ended", async () => {
    const { url, connections } = await receiver((response) => {
      const more = () => {
        if (!response.destroyed) response.write("y".repeat(65_536), () => setImmediate(more));
      };
      more();
    });
    const outcome = await transportWith().send(outgoing(url));
    expect(outcome).toMatchObject({ status: 200, error: null, body: "y".repeat(16_384) });
    await until(() => connections[0]?.destroyed === true);
    expect(connections[0]?.bytesWritten).toBeLessThan(16_000_000);
  });

  it("loses the character that the limit cuts in two, and no other", async () => {
    const { url } = await receiver((response) => response.end(`${"x".repeat(16_383)}€ and more`));
    expect((await transportWith().send(outgoing(url))).body).toBe("x".repeat(16_383));
    const short = await receiver((response) => response.end(Buffer.from([0x61, 0xe2, 0x82])));
    expect((await transportWith().send(outgoing(short.url))).body).toBe("a\ufffd");
  });
});

describe("a request without an answer", () => {
  it("is reset when the receiver ends the connection (DLV-7)", async () => {
    const { url, got } = await receiver((response) => response.destroy());
    expect(await transportWith().send(outgoing(url))).toEqual({ status: null, error: "reset", headers: {}, body: "" });
    expect(got).toHaveLength(1);
  });

  it("is reset when the answer breaks off (DLV-7)", async () => {
    const { url } = await rawReceiver((socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf"));
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "reset", body: "" });
  });

  it("is refused where nobody listens (DLV-7)", async () => {
    const { url, server } = await receiver();
    await new Promise((resolve) => server.close(resolve));
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "refused" });
  });

  it("is unresolved where a name has no address (DLV-7)", async () => {
    const resolve = () => Promise.reject(Object.assign(new Error("no such name"), { code: "ENOTFOUND" }));
    expect(await transportWith({ resolve }).send(outgoing("http://receiver.test/"))).toMatchObject({
      error: "unresolved",
    });
    expect(await transportWith().send(outgoing("http://receiver.invalid/"))).toMatchObject({ error: "unresolved" });
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["a header without end", `HTTP/1.1 200 OK\r\nx: ${"x".repeat(100_000)}`],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"],
  ])("fails when the receiver speaks %s (DLV-7)", async (_, answer) => {
    const { url } = await rawReceiver((socket) => socket.write(answer));
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "failed" });
  });

  it("ends when the receiver switches protocols (DLV-7)", async () => {
    const answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    const { url } = await rawReceiver((socket) => socket.write(answer));
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
  });

  it("fails, without a request, for a header that none can have", async () => {
    const { url, connections } = await receiver();
    const headers = { "content-type": "text/\u0000plain\r\nx: y" };
    expect(await transportWith().send(outgoing(url, { headers }))).toMatchObject({ status: null, error: "failed" });
    expect(connections).toHaveLength(0);
  });
});

describe("an attempt's time (DLV-19)", () => {
  const atTheLimit = async (url: string, arrived: () => boolean, fields = {}, resolve?: () => Promise<never>) => {
    const clock = createFakeClock();
    const options = { systemClock: clock, attemptTimeoutMs: 10_000 };
    const transport = transportWith(resolve === undefined ? options : { ...options, resolve });
    const sent = transport.send(outgoing(url, fields));
    let ended = false;
    sent.finally(() => {
      ended = true;
    });
    await until(arrived);
    await clock.advance(9_999);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(await sent).toEqual({ status: null, error: "timeout", headers: {}, body: "" });
  };

  it("ends while the name is looked up", async () => {
    let asked = false;
    const resolve = () => {
      asked = true;
      return new Promise<never>(() => {});
    };
    await atTheLimit("http://receiver.test/", () => asked, {}, resolve);
  });

  it.each([
    ["without a byte of an answer", "", {}],
    [
      "within the answer's head, however often the receiver promises one",
      "HTTP/1.1 102 Processing\r\n\r\n".repeat(50),
      {},
    ],
    ["within the answer's body", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", {}],
    ["within a dribbled body", "", { dribbleMs: 60_000 }],
  ])("ends %s, and so does the connection", async (_, answer, fields) => {
    const { url, texts, connections } = await rawReceiver((socket) => socket.write(answer));
    await atTheLimit(url, () => texts[0]?.includes("\r\n\r\n{") === true, fields);
    await until(() => connections[0]?.destroyed === true);
  });

  it("leaves no timer behind", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    const { url } = await receiver();
    await transportWith({ systemClock: clock }).send(outgoing(url));
    expect(running()).toBe(0);
  });
});

describe("wordOf()", () => {
  it.each([
    ["EGRESS_BLOCKED", "blocked"],
    ["ECONNREFUSED", "refused"],
    ["ECONNRESET", "reset"],
    ["EPIPE", "reset"],
    ["ECONNABORTED", "reset"],
    ["ETIMEDOUT", "timeout"],
    ["ENOTFOUND", "unresolved"],
    ["ENODATA", "unresolved"],
    ["EAI_AGAIN", "unresolved"],
    ["EHOSTUNREACH", "failed"],
    [undefined, "failed"],
  ])("for %s is %s (DLV-7)", (code, word) => {
    expect(wordOf(Object.assign(new Error("of the connection"), code && { code }))).toBe(word);
  });
});

it("connections serve one request each, so that no receiver's end of an idle one costs an attempt", async () => {
  const { url, connections } = await rawReceiver((socket, text) => {
    if (!text.endsWith("}")) return;
    socket.write(OK);
    setTimeout(() => socket.end(), 1);
  });
  const transport = transportWith();
  for (let i = 0; i < 50; i++) expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
  expect(connections).toHaveLength(50);
});

describe("a dribbled body", () => {
  it("comes in ten pieces, whole only after its time", async () => {
    const { url, texts } = await rawReceiver((socket, text) => {
      if (text.endsWith("0123456789".repeat(10))) socket.write(OK);
    });
    const clock = createFakeClock();
    const body = Buffer.from("0123456789".repeat(10));
    const sent = transportWith({ systemClock: clock }).send(outgoing(url, { body, dribbleMs: 900 }));
    const arrived = () => texts[0]?.split("\r\n\r\n")[1]?.length ?? 0;
    for (let piece = 1; piece <= 10; piece++) {
      await until(() => arrived() === piece * 10);
      await clock.advance(99);
      expect(arrived()).toBe(piece * 10);
      await clock.advance(1);
    }
    expect(await sent).toMatchObject({ status: 200 });
    expect(texts[0]).toContain("content-length: 100\r\n");
  });

  it.each([0, 1, 9, 11, 101])("arrives whole with %i bytes", async (length) => {
    const { url, got } = await receiver();
    const body = Buffer.alloc(length, "x");
    expect(await transportWith().send(outgoing(url, { body, dribbleMs: 1 }))).toMatchObject({ status: 200 });
    expect(got[0]?.body.equals(body)).toBe(true);
  });

  it("ends when the receiver answers before it is whole, and so does the connection", async () => {
    const early = "HTTP/1.1 413 Too Slow\r\ncontent-length: 3\r\n\r\nno.";
    const { url, connections } = await rawReceiver((socket) => socket.write(early));
    const body = Buffer.alloc(100, "x");
    const sent = transportWith({ systemClock: createFakeClock() }).send(outgoing(url, { body, dribbleMs: 5_000 }));
    expect(await sent).toMatchObject({ status: 413, error: null, body: "no." });
    await until(() => connections[0]?.destroyed === true);
  });
});

describe("close()", () => {
  it("ends what is under way as failed, with its connection", async () => {
    const { url, texts, connections } = await rawReceiver(() => {});
    const transport = transportWith();
    const sent = [transport.send(outgoing(url)), transport.send(outgoing(url, { dribbleMs: 60_000 }))];
    await until(() => texts.filter((text) => text.includes("{")).length === 2);
    transport.close();
    for (const outcome of await Promise.all(sent)) expect(outcome).toMatchObject({ status: null, error: "failed" });
    await until(() => connections.every((socket) => socket.destroyed));
  });

  it("takes no more requests", async () => {
    const { url, connections } = await receiver();
    const transport = transportWith();
    await transport.send(outgoing(url));
    transport.close();
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "failed" });
    expect(connections).toHaveLength(1);
  });
});

/** A receiver that answers nobody until it is told to, and then the first `count` connections that wait. */
async function hanging() {
  const raw = await rawReceiver(() => {});
  let answered = 0;
  const requests = () => raw.texts.filter((text) => text.endsWith("}"));
  const answer = (count: number) => {
    for (const socket of raw.connections.slice(answered, answered + count)) socket.write(OK);
    answered += count;
  };
  return { ...raw, requests, answer };
}

const settled = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));

describe("a receiver that hangs", () => {
  it("has at most 32 requests under way, and holds up no other receiver", async () => {
    const slow = await hanging();
    const quick = await receiver();
    const transport = transportWith();
    const begun: number[] = [];
    const sent = Array.from({ length: 40 }, (_, i) =>
      transport.send(outgoing(slow.url), () => {
        begun.push(i);
        return outgoing(slow.url, { headers: { "x-number": String(i) } });
      }),
    );
    await until(() => slow.requests().length === 32);
    expect(await transport.send(outgoing(quick.url))).toMatchObject({ status: 200 });
    await settled();
    expect([slow.connections.length, begun.length]).toEqual([32, 32]);

    slow.answer(3);
    await until(() => slow.requests().length === 35);
    await settled();
    expect(slow.connections).toHaveLength(35);
    slow.answer(29);
    await until(() => slow.requests().length === 40);
    slow.answer(8);
    for (const outcome of await Promise.all(sent)) expect(outcome).toMatchObject({ status: 200 });
    expect(begun).toEqual(Array.from({ length: 40 }, (_, i) => i));
    expect(slow.texts.every((text) => text.split("{").length === 2)).toBe(true);
  });

  it("is one receiver whatever the path, and another at another port or by another name", async () => {
    const slow = await hanging();
    const transport = transportWith();
    const to = (path: string) => void transport.send(outgoing(new URL(path, slow.url).href));
    for (let i = 0; i < 33; i++) to(`/${i}?${i}`);
    await until(() => slow.requests().length === 32);
    to(`http://localhost:${slow.port}/`);
    await until(() => slow.requests().length === 33);
    expect(slow.requests()[32]).toContain(`host: localhost:${slow.port}`.replace("host", "Host"));
  });

  it("is refused at once where the guard allows no connection, however many wait", async () => {
    const slow = await hanging();
    const transport = transportWith();
    for (let i = 0; i < 40; i++) void transport.send(outgoing(slow.url));
    const url = slow.url.replace("http://", "http://user:pass@");
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "blocked" });
  });
});

describe("an attempt that waits for a place", () => {
  it("has all of its time from its own beginning (DLV-19)", async () => {
    const slow = await hanging();
    const clock = createFakeClock();
    const transport = transportWith({ systemClock: clock, attemptTimeoutMs: 10_000 });
    const ends: number[] = [];
    const sent = Array.from({ length: 33 }, async () => {
      const outcome = await transport.send(outgoing(slow.url));
      ends.push(clock.monotonic());
      return outcome;
    });
    await until(() => slow.requests().length === 32);
    await clock.advance(10_000);
    await until(() => slow.requests().length === 33);
    await clock.advance(9_999);
    expect(ends).toEqual(Array(32).fill(10_000));
    await clock.advance(1);
    for (const outcome of await Promise.all(sent)) expect(outcome).toMatchObject({ error: "timeout" });
    expect(ends).toEqual([...Array(32).fill(10_000), 20_000]);
  });

  it("ends as failed with close(), and is never sent", async () => {
    const slow = await hanging();
    const transport = transportWith();
    const begun: number[] = [];
    const sent = Array.from({ length: 40 }, (_, i) =>
      transport.send(outgoing(slow.url), () => {
        begun.push(i);
        return outgoing(slow.url);
      }),
    );
    await until(() => slow.requests().length === 32);
    transport.close();
    for (const outcome of await Promise.all(sent)) expect(outcome).toMatchObject({ status: null, error: "failed" });
    await settled();
    expect([slow.connections.length, begun.length]).toEqual([32, 32]);
  });

  it("is never sent when close() comes in the same moment", async () => {
    const { url, connections } = await receiver();
    const transport = transportWith();
    const sent = transport.send(outgoing(url));
    transport.close();
    expect(await sent).toMatchObject({ status: null, error: "failed" });
    await settled();
    expect(connections).toHaveLength(0);
  });

  it("finds a place again after each way to end, a request that none can have as well", async () => {
    const { url, got } = await receiver((response) => (got.length % 2 === 0 ? response.destroy() : response.end()));
    const transport = transportWith();
    const bad = outgoing(url, { headers: { "content-type": "text/\u0000plain\r\nx: y" } });
    await Promise.all(Array.from({ length: 40 }, () => transport.send(bad)));
    await Promise.all(Array.from({ length: 40 }, () => transport.send(outgoing(url))));
    expect(got).toHaveLength(40);
  });
});
