/** Streams to a Node response: over real HTTP, with what an iterator sees of them. */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { setImmediate as nextRound } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { sendStream } from "../../adapters/node-stream.ts";
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

describe("sendStream()", () => {
  it("goes on whenever more can be written, and leaves no listeners behind", async () => {
    const { connection, response } = await asked();
    const listeners: number[][] = [];
    const chunks = async function* () {
      for (let count = 0; count < 5; count++) {
        listeners.push(["drain", "close"].map((name) => response.listenerCount(name)));
        yield LARGE;
      }
    };
    const sent = sendStream(chunks(), response);
    const { body } = await connection.answer();
    await sent;
    expect(body.length).toBe(5 * LARGE.length);
    expect(new Set(listeners.map(String)).size, listeners.join(" ")).toBe(1);
    connection.close();
  });

  it("is over when its reader goes while it waits to write more", async () => {
    const { connection, response } = await asked();
    connection.pause();
    let made = 0;
    const chunks = async function* () {
      for (; ; made++) yield LARGE;
    };
    const sent = sendStream(chunks(), response);
    // Until all that lies between them is full.
    for (let before = -1; before < made; ) {
      before = made;
      await someRounds();
    }
    expect(response.writableNeedDrain).toBe(true);
    const closed = once(response, "close");
    connection.abort();
    await closed;
    expect(await isSettled(sent)).toBe(true);
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
