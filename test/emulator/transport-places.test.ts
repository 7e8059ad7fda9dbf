import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../src/testing/index.ts";
import { OK, outgoing, rawReceiver, receiver, transportWith, until } from "./transport-receiver.ts";

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
