/** Streams to a Node response: over real HTTP, with what an iterator sees of them. */
import { once } from "node:events";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { setImmediate as nextRound } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { sendStream } from "../../adapters/node-inspector.ts";
import { openConnection, requestBytes } from "../../src/testing/adapter-contract-wire.ts";
import { serve } from "./serving.ts";

/** More than a response takes without asking its writer to wait. */
const LARGE = "x".repeat(64 * 1_024);

/** A response that is asked for, and who asked. */
async function asked() {
  const { server, port, close } = await serve(() => {});
  onTestFinished(close);
  const connection = await openConnection(port);
  const request = once(server, "request");
  connection.send(requestBytes({ method: "GET" }));
  const [, response] = (await request) as [unknown, ServerResponse];
  return { connection, response };
}

/** Whether it has settled, after as many rounds as what has nothing to wait for can need. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), someRounds().then(() => false)]);
}

async function someRounds(): Promise<void> {
  for (let round = 0; round < 20; round++) await nextRound();
}

/** Sends until all that lies between them is full. */
async function untilFull(response: ServerResponse) {
  let made = 0;
  let hasEnded = false;
  const chunks = async function* () {
    try {
      for (; ; made++) yield LARGE;
    } finally {
      hasEnded = true;
    }
  };
  const sent = sendStream(chunks(), response);
  for (let before = -1; before < made; ) {
    before = made;
    await someRounds();
  }
  expect(response.writableNeedDrain).toBe(true);
  return { sent, hasEnded: () => hasEnded };
}

describe("sendStream()", () => {
  it("goes on whenever more can be written, and leaves neither listeners nor a time-out behind", async () => {
    const { connection, response } = await asked();
    const listeners: unknown[][] = [];
    const chunks = async function* () {
      for (let count = 0; count < 5; count++) {
        const names = ["drain", "close", "timeout"];
        listeners.push([...names.map((name) => response.listenerCount(name)), response.socket?.timeout ?? 0]);
        yield LARGE;
      }
    };
    const sent = sendStream(chunks(), response);
    const { body } = await connection.answer();
    await sent;
    expect(body.length).toBe(5 * LARGE.length);
    expect(new Set(listeners.map(String)).size, listeners.join(" ")).toBe(1);
    expect(listeners[0]?.slice(2)).toEqual([0, 0]);
    connection.close();
  });

  it("goes on through a socket that knows no time-outs, as simulated ones", async () => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    let bytes = 0;
    const slow = new Writable({
      write(chunk: Uint8Array, _encoding, done) {
        bytes += chunk.length;
        setImmediate(done);
      },
    });
    response.assignSocket(slow as Socket);
    // A server does.
    slow.on("drain", () => response.emit("drain"));
    const chunks = async function* () {
      for (let count = 0; count < 5; count++) yield LARGE;
    };
    const finished = once(response, "finish");
    await sendStream(chunks(), response);
    await finished;
    expect(bytes).toBeGreaterThan(5 * LARGE.length);
  });

  it("is over when its reader goes while it waits to write more", async () => {
    const { connection, response } = await asked();
    connection.pause();
    const { sent } = await untilFull(response);
    const closed = once(response, "close");
    connection.abort();
    await closed;
    expect(await isSettled(sent)).toBe(true);
  });

  it("lets go of a reader who takes nothing for 10 s, and ends what it reads from", async () => {
    const { connection, response } = await asked();
    connection.pause();
    const { sent, hasEnded } = await untilFull(response);
    const { socket } = response;
    expect(socket?.timeout).toBe(10_000);
    const closed = once(response, "close");
    // Its time is up.
    socket?.emit("timeout");
    await closed;
    expect([await isSettled(sent), hasEnded(), socket?.destroyed]).toEqual([true, true, true]);
  });

  it("lets go of a reader who does not take what came before the end", async () => {
    const { connection, response } = await asked();
    connection.pause();
    response.write("x".repeat(16 * 1_024 * 1_024));
    await sendStream((async function* () {})(), response);
    const { socket } = response;
    expect(socket?.timeout).toBe(10_000);
    const closed = once(response, "close");
    socket?.emit("timeout");
    await closed;
    expect(socket?.destroyed).toBe(true);
  });

  it("writes nothing more once its reader is gone", async () => {
    const { connection, response } = await asked();
    let make = (_chunk: IteratorResult<string>) => {};
    const chunk = new Promise<IteratorResult<string>>((resolve) => {
      make = resolve;
    });
    const sent = sendStream({ [Symbol.asyncIterator]: () => ({ next: () => chunk }) }, response);
    const closed = once(response, "close");
    connection.abort();
    await closed;
    make({ done: false, value: "too late" });
    expect(await isSettled(sent)).toBe(true);
  });
});
