import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/index.ts";
import { OK, outgoing, rawReceiver, receiver, requestsIn, transportWith, until } from "./transport-receiver.ts";

describe("connections", () => {
  it("serve one request after another", async () => {
    const { url, connections, got } = await receiver();
    const transport = transportWith();
    for (let i = 0; i < 50; i++) await transport.send(outgoing(url));
    expect([got.length, connections.length]).toEqual([50, 1]);
  });

  it("are as many as there are requests at once", async () => {
    const { url, connections } = await receiver();
    const transport = transportWith();
    await Promise.all(Array.from({ length: 20 }, () => transport.send(outgoing(url))));
    await Promise.all(Array.from({ length: 20 }, () => transport.send(outgoing(url))));
    expect(connections).toHaveLength(20);
  });

  it("are not used again when the receiver says so", async () => {
    const { url, connections } = await receiver((response) => response.writeHead(200, { connection: "close" }).end());
    const transport = transportWith();
    for (let i = 0; i < 3; i++) expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    expect(connections).toHaveLength(3);
  });

  it("survive a receiver that starts again between two requests", async () => {
    const { url, server, port, connections } = await receiver();
    const transport = transportWith();
    for (let i = 0; i < 20; i++) {
      expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of connections) socket.destroy();
      await closed;
      await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    }
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
  });
});

/** A receiver that answers each connection's first request and ends it, after `late`, at the second. */
const endsAtTheSecond = (late = "") =>
  rawReceiver((socket, text) => {
    const requests = requestsIn(text);
    if (requests === 1) socket.write(OK);
    if (requests === 2) socket.end(late);
  });

describe("a connection that the receiver ends while it is idle", () => {
  it("costs no attempt: the request goes out once more, on a fresh one", async () => {
    const { url, texts } = await endsAtTheSecond();
    const clock = createFakeClock();
    const transport = transportWith({ systemClock: clock });
    await Promise.all([1, 2, 3].map(() => transport.send(outgoing(url))));
    await clock.advance(100);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200, error: null });
    // Three connections were idle; after the first of them failed, the other two were not tried.
    expect(texts.map(requestsIn)).toEqual([1, 1, 2, 1]);
    // Nor is the fresh one kept: what is left idle could be stale at the next need.
    expect(texts[3]).toMatch(/connection: close/i);
  });

  it("costs one when the fresh one is ended as well: there is no third", async () => {
    let answers = 1;
    const { url, texts } = await rawReceiver((socket, text) => {
      if (requestsIn(text) === 0) return;
      if (answers-- > 0) socket.write(OK);
      else socket.destroy();
    });
    const clock = createFakeClock();
    const transport = transportWith({ systemClock: clock });
    await transport.send(outgoing(url));
    await clock.advance(100);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(texts.map(requestsIn)).toEqual([2, 1]);
  });
});

describe("a reset that is the receiver's answer (DLV-7)", () => {
  it("on a connection that was in use a moment ago is told, not repeated", async () => {
    const { url, texts } = await endsAtTheSecond();
    const clock = createFakeClock();
    const transport = transportWith({ systemClock: clock });
    await transport.send(outgoing(url));
    await clock.advance(99);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(texts.map(requestsIn)).toEqual([2]);
  });

  it("on an idle connection is told once a byte of an answer came", async () => {
    const { url, texts } = await endsAtTheSecond("HTTP/1.1 2");
    const clock = createFakeClock();
    const transport = transportWith({ systemClock: clock });
    await transport.send(outgoing(url));
    await clock.advance(1_000);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(texts.map(requestsIn)).toEqual([2]);
  });

  it("on a fresh connection is told", async () => {
    const { url, texts } = await rawReceiver((socket) => socket.destroy());
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(texts).toHaveLength(1);
  });
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

  it("ends with the attempt's time (DLV-19)", async () => {
    const { url, texts } = await rawReceiver(() => {});
    const clock = createFakeClock();
    const sent = transportWith({ systemClock: clock }).send(outgoing(url, { dribbleMs: 60_000 }));
    await until(() => texts[0]?.endsWith("\r\n\r\n{") === true);
    await clock.advance(10_000);
    expect(await sent).toMatchObject({ status: null, error: "timeout" });
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

  it("ends idle connections, and takes no more requests", async () => {
    const { url, connections } = await receiver();
    await transportWith().send(outgoing(url));
    const transport = transportWith();
    await transport.send(outgoing(url));
    transport.close();
    await until(() => connections[1]?.destroyed === true);
    // Another transport's connection, idle for longer, shows that it was not its own idle limit.
    expect(connections[0]?.destroyed).toBe(false);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "failed" });
    expect(connections).toHaveLength(2);
  });
});
