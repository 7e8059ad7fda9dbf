/** The event stream of the control API. */
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { silentLogger } from "../../../../src/internal/logger.ts";
import { createEmulator, type Emulator } from "../../../../src/messaging/emulator/index.ts";
import type { TriggerInput } from "../../../../src/messaging/emulator/service.ts";
import { createFakeClock } from "../../../../src/tools/testing/fake-clock.ts";
import { watchedTimers } from "../../../support/watched-timers.ts";
import { send, start, startCatcher, tokenOf } from "../support.ts";

interface Told {
  readonly id: string | undefined;
  readonly event: string | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads fields of entries whose shape it is about to check
  readonly data: any;
}

/** The blocks of a stream, as they come. */
async function* blocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let text = "";
  for await (const chunk of chunks) {
    text += Buffer.from(chunk).toString("utf8");
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      yield text.slice(0, end);
      text = text.slice(end + 2);
    }
  }
}

function read(block: string): Told {
  const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
  return { id: field("id"), event: field("event"), data: JSON.parse(field("data") ?? "null") };
}

async function openStream(emulator: Emulator): Promise<{ next(): Promise<string> }> {
  const response = await emulator.handle(new Request(`${emulator.url}/_emulator/stream`));
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  expect(response.headers.get("cache-control")).toBe("no-store");
  const all = blocks(response.body as unknown as AsyncIterable<Uint8Array>);
  return { next: async () => String((await all.next()).value) };
}

function large(length: number): TriggerInput {
  const names = { apiClientId: "ac_main", numberId: "num_000001", messageId: "msg_1" };
  return { kind: "delivery", eventType: "message.large", ...names, sequence: 1, data: { text: "x".repeat(length) } };
}

describe("GET /_emulator/stream", () => {
  it("tells all that happens, in its order, with running numbers and without secrets", async () => {
    const catcher = await startCatcher();
    catcher.answer = (_, response) =>
      response.writeHead(200, { "set-cookie": "sid=5ecret" }).end('{"access_token":"5ecret"}');
    const emulator = await start({
      lifecycle: "manual",
      deliveryUrl: catcher.url,
      webhookSecret: "webhook-5ecret",
      unspecified: { resolveTarget: "event", retrySignature: "frozen" },
    });
    const token = await tokenOf(emulator);
    const stream = await openStream(emulator);
    expect(await stream.next()).toBe(": 1 so far");
    await send(emulator, token);
    await emulator.clock.idle();
    emulator.control.reset();
    const texts: string[] = [];
    for (let i = 0; i < 5; i++) texts.push(await stream.next());
    const entries = texts.map(read);
    const told = entries.map(({ id, event }) => `${id} ${event}`);
    expect(told).toEqual(["2 event", "3 delivery", "4 request", "5 delivery", "6 reset"]);
    expect(entries[0]?.data.event).toMatchObject({ eventType: "message.queued", messageId: "msg_a8244c_000001" });
    expect(entries[2]?.data.request).toMatchObject({ path: "/api/core/messages/send", status: 202 });
    expect(entries[3]?.data.delivery).toMatchObject({ state: "delivered", target: { url: catcher.url, signed: true } });
    expect(texts.join()).not.toMatch(new RegExp(`5ecret|${token}`));
  });

  it("says every 15 s of the real clock that it is still there", async () => {
    const systemClock = createFakeClock();
    const emulator = await start({ systemClock });
    const stream = await openStream(emulator);
    await stream.next();
    await systemClock.advance(14_999);
    await tokenOf(emulator);
    expect(read(await stream.next()).event).toBe("request");
    await systemClock.advance(1);
    expect(await stream.next()).toBe(": still here");
    await systemClock.advance(15_000);
    expect(await stream.next()).toBe(": still here");
  });

  it("ends a reader that leaves more than 16 MiB unread, says so, and goes on for the others", async () => {
    const emulator = await start();
    const slow = await emulator.handle(new Request(`${emulator.url}/_emulator/stream`));
    const quick = await openStream(emulator);
    await quick.next();
    for (let i = 0; i < 20; i++) {
      emulator.control.trigger(large(1_000_000));
      expect([read(await quick.next()).event, read(await quick.next()).event]).toEqual(["event", "delivery"]);
    }
    const text = await slow.text();
    expect(text.endsWith("event: dropped\ndata: {}\n\n")).toBe(true);
    expect(text.length).toBeGreaterThan(16 * 1_048_576);
    expect(text.length).toBeLessThan(17 * 1_048_576);
    await tokenOf(emulator);
    expect(read(await quick.next()).id).toBe("41");
  });

  it("brings a single entry that is larger than that, before it ends", async () => {
    const emulator = await start();
    const stream = await openStream(emulator);
    await stream.next();
    emulator.control.trigger(large(20_000_000));
    expect(JSON.parse(read(await stream.next()).data.event.body).data.text).toHaveLength(20_000_000);
    expect(read(await stream.next()).event).toBe("dropped");
  });

  it("stays open over a socket while nothing happens, and ends with the emulator", async () => {
    const emulator = await createEmulator({ logger: silentLogger });
    onTestFinished(() => emulator.close());
    const response = await new Promise<IncomingMessage>((resolve) => get(`${emulator.url}/_emulator/stream`, resolve));
    response.on("error", () => {});
    const all = blocks(response);
    expect((await all.next()).value).toBe(": 0 so far");
    await tokenOf(emulator);
    expect(read(String((await all.next()).value)).id).toBe("1");
    const closed = new Promise((resolve) => response.once("close", resolve));
    await emulator.close();
    await closed;
  });

  it("of a program ends with the emulator as well", async () => {
    const emulator = await start();
    const { body } = await emulator.handle(new Request(`${emulator.url}/_emulator/stream`));
    await emulator.close();
    expect(await new Response(body).text()).toBe(": 0 so far\n\n");
  });

  it("is forgotten when its reader goes: nothing is made for nobody", async () => {
    const { clock, running } = watchedTimers(createFakeClock());
    const emulator = await start({ port: 0, systemClock: clock });
    const before = running();
    const socket = connect(Number(new URL(emulator.url).port), "127.0.0.1");
    socket.write("GET /_emulator/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await once(socket, "data");
    expect(running()).toBe(before + 1);
    socket.destroy();
    await expect.poll(running).toBe(before);
  });
});
