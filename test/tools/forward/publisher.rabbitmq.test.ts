/** Forwarding with a publisher of one's own to a real RabbitMQ, which keeps order but knows no id again. */
import { readFileSync } from "node:fs";
import { connect } from "amqplib";
import { beforeEach, describe, expect, it } from "vitest";
import { fixtures } from "../../../src/tools/testing/index.ts";
import { startForwarding } from "./bench.ts";
import { FAULTLESS, faultsOf, type Held, heldOf, messages } from "./held.ts";
import { atEnd, needs, startProxy, startProxyDown } from "./needs.ts";
import { rabbitPublisher } from "./rabbitmq.ts";
import { at, RABBITMQ, uniqueName } from "./services.ts";

/** A queue of the test's own, removed with it, and what is in it. */
async function newQueue(
  type = "classic",
): Promise<{ name: string; held(): Promise<Held[]>; remove(): Promise<unknown> }> {
  const connection = await connect(RABBITMQ.url);
  atEnd(() => connection.close());
  const channel = await connection.createChannel();
  const name = uniqueName("oncehook");
  await channel.assertQueue(name, {
    durable: true,
    arguments: { "x-single-active-consumer": true, "x-queue-type": type },
  });
  const remove = () => channel.deleteQueue(name);
  atEnd(remove);
  const all: Held[] = [];
  const held = async () => {
    for (let message = await channel.get(name); message !== false; message = await channel.get(name)) {
      all.push(heldOf(message.properties.messageId as string, message.content.toString()));
      channel.ack(message);
    }
    return all;
  };
  return { name, held, remove };
}

/** As a consumer does that deduplicates: the first of each id. */
const byId = (held: readonly Held[]) =>
  held.filter(({ id }, index) => held.findIndex((one) => one.id === id) === index);

function publisherTo(url: string, queue: string) {
  const publisher = rabbitPublisher(url, queue);
  atEnd(() => publisher.close());
  return publisher.publish;
}

describe("docs/forwarding.md", () => {
  it("shows the publisher that is tested here", () => {
    const source = readFileSync("test/tools/forward/rabbitmq.ts", "utf8");
    const shown = source
      .slice(source.indexOf("\n") + 1)
      .replace("../../../src/tools/forward/index.ts", "oncehook/forward");
    expect(shown).toContain("createConfirmChannel");
    expect(readFileSync("docs/forwarding.md", "utf8")).toContain(shown);
  });
});

describe("forward() to RabbitMQ", () => {
  beforeEach(needs(RABBITMQ));

  it("publishes each event once, in the order of its message (RCV-6, RCV-7)", async () => {
    const { name, held } = await newQueue();
    const { accept, settled } = await startForwarding(publisherTo(RABBITMQ.url, name));
    const sent = [...messages(6), fixtures.inbound({ occurredAt: Date.now() })];
    await accept([...sent, ...sent]);
    await settled();
    expect(faultsOf(await held(), sent)).toEqual(FAULTLESS);
  });

  it("repeats what was not confirmed, by an id that consumers know again", async () => {
    const { name, held } = await newQueue();
    const proxy = await startProxy(RABBITMQ);
    const { accept, settled, receiver } = await startForwarding(publisherTo(at(RABBITMQ, proxy.port), name));
    await accept([fixtures.inbound({ occurredAt: Date.now() })]);
    await settled();
    proxy.hold();
    const sent = messages(3);
    await accept(sent);
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(0);
    proxy.cut();
    proxy.release();
    await settled();
    const all = (await held()).slice(1);
    expect(all.length).toBeGreaterThan(sent.length);
    expect(faultsOf(byId(all), sent)).toEqual(FAULTLESS);
  });

  it("loses nothing when the engine is down at the start and in the middle, and goes on by itself", async () => {
    const { name, held } = await newQueue();
    const proxy = await startProxyDown(RABBITMQ);
    const { accept, settled, receiver } = await startForwarding(publisherTo(at(RABBITMQ, proxy.port), name));
    const [before, after] = [messages(3, "before"), messages(3, "after")];
    await accept(before);
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(0);
    await proxy.up();
    await settled();
    await proxy.down();
    await accept(after);
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(1);
    await proxy.up();
    await settled();
    expect(faultsOf(byId(await held()), [...before, ...after])).toEqual(FAULTLESS);
  });

  it("loses nothing when its queue is deleted under it, and makes it again", async () => {
    const { name, held, remove } = await newQueue();
    const { accept, settled, receiver } = await startForwarding(publisherTo(RABBITMQ.url, name));
    await accept(messages(3, "before"));
    await settled();
    await remove();
    const after = messages(3, "after");
    await accept(after);
    await settled();
    expect((await receiver.inbox.stats()).counters.retried).toBeGreaterThan(0);
    expect(faultsOf(byId(await held()), after)).toEqual(FAULTLESS);
  });

  it("keeps no connection open that it failed to use", async () => {
    const { name } = await newQueue("quorum");
    const proxy = await startProxy(RABBITMQ);
    const { accept, receiver } = await startForwarding(publisherTo(at(RABBITMQ, proxy.port), name));
    await accept(messages(1));
    // The publisher's arguments are not the queue's: RabbitMQ closes the channel, and leaves the connection.
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(2);
    await receiver.stop();
    await expect.poll(() => proxy.joined).toBe(0);
  });
});
