import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/index.ts";
import { clientSockets, OK, outgoing, rawReceiver, receiver, transportWith, until } from "./transport-receiver.ts";

describe("connections", () => {
  it("serve one request each, so that no receiver's end of an idle one costs an attempt", async () => {
    const { url, connections } = await rawReceiver((socket, text) => {
      if (!text.endsWith("}")) return;
      socket.write(OK);
      setTimeout(() => socket.end(), 1);
    });
    const transport = transportWith();
    for (let i = 0; i < 50; i++) expect(await transport.send(outgoing(url))).toMatchObject({ status: 200 });
    expect(connections).toHaveLength(50);
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

  it("takes no more requests", async () => {
    const { url, connections } = await receiver();
    const sockets = clientSockets();
    const transport = transportWith();
    await transport.send(outgoing(url));
    transport.close();
    expect(await transport.send(outgoing(url))).toMatchObject({ status: null, error: "failed" });
    expect([sockets.length, connections.length]).toEqual([1, 1]);
  });
});
