import type { Server } from "node:http";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/index.ts";
import { OK, outgoing, rawReceiver, receiver, transportWith, until } from "./transport-receiver.ts";

/** Real time: how long a connection lies idle is decided between real sockets. */
async function pass(ms: number): Promise<void> {
  const end = performance.now() + ms;
  await until(() => performance.now() >= end);
}

describe("a reset is the receiver's answer, and told (DLV-7)", () => {
  it.each([0, 20, 90, 300])("by a receiver that breaks its second request, %i ms after the first", async (gapMs) => {
    const { url, got } = await receiver((response) => (got.length === 2 ? response.destroy() : response.end()));
    const transport = transportWith();
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    await pass(gapMs);
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    expect(got).toHaveLength(3);
  });

  it("on a fresh connection", async () => {
    const { url, texts } = await rawReceiver((socket) => socket.destroy());
    expect(await transportWith().send(outgoing(url))).toMatchObject({ status: null, error: "reset" });
    expect(texts).toHaveLength(1);
  });
});

describe("a receiver's end of an idle connection costs no attempt", () => {
  it("after its default limit: the connection is ended long before", async () => {
    const { url, connections } = await receiver();
    const transport = transportWith();
    await transport.send(outgoing(url));
    const begun = performance.now();
    await until(() => connections[0]?.destroyed === true);
    expect(performance.now() - begun).toBeGreaterThan(50);
    expect(performance.now() - begun).toBeLessThan(3_000); // Node's own limit is 5 s.
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    expect(connections).toHaveLength(2);
  });

  it("after 1 ms", async () => {
    const { url, server, connections } = await receiver();
    (server as Server).keepAliveTimeout = 1;
    const transport = transportWith();
    for (let i = 0; i < 200; i++) {
      expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
      await pass((i % 20) / 8);
    }
    expect(connections).toHaveLength(200);
  });

  it("after 1 ms, unannounced", async () => {
    const { url, connections } = await rawReceiver((socket, text) => {
      if (!text.endsWith("}")) return;
      socket.write(OK);
      setTimeout(() => socket.end(), 1);
    });
    const transport = transportWith();
    for (let i = 0; i < 200; i++) {
      expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
      await pass((i % 20) / 8);
    }
    expect(connections).toHaveLength(200);
  });

  it("at once, with `connection: close`", async () => {
    const { url, connections } = await receiver((response) => response.writeHead(200, { connection: "close" }).end());
    const transport = transportWith();
    for (let i = 0; i < 20; i++) expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    expect(connections).toHaveLength(20);
  });

  it("by starting again on the same port between two requests", async () => {
    const { url, server, port, connections } = await receiver();
    const transport = transportWith();
    for (let i = 0; i < 50; i++) {
      expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of connections) socket.destroy();
      await closed;
      await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    }
    expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
  });
});

describe("a promise to keep a connection", () => {
  const promise = (value: string) => `HTTP/1.1 200 OK\r\nkeep-alive: ${value}\r\ncontent-length: 0\r\n\r\n`;

  /** Five requests; a machine that is busy for 100 ms may cost one of the connections that could serve several. */
  const connectionsFor = async (value: string, tookMs = 0) => {
    const clock = createFakeClock();
    const { url, connections } = await rawReceiver(async (socket, text) => {
      if (!text.endsWith("}")) return;
      await clock.advance(tookMs);
      socket.write(promise(value));
    });
    const transport = transportWith({ systemClock: clock });
    for (let i = 0; i < 5; i++) expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    return connections.length;
  };

  it.each(["timeout=2", "timeout=5, max=100", "max=100,Timeout=60"])("of %s lets requests share one", async (value) => {
    expect(await connectionsFor(value)).toBeLessThan(5);
  });

  it.each(["timeout=0", "max=100", "idletimeout=5", "soon"])("of %s is none", async (value) => {
    expect(await connectionsFor(value)).toBe(5);
  });

  it("may have begun when the request was sent", async () => {
    expect(await connectionsFor("timeout=2", 1_500)).toBeLessThan(5);
    expect(await connectionsFor("timeout=2", 1_501)).toBe(5);
  });
});
