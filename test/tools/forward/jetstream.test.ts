/** Forwarding to a real JetStream: once by its id, in order, whatever becomes of acknowledgements and servers. */
import {
  AckPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { beforeEach, describe, expect, it } from "vitest";
import { passthrough } from "../../../src/tools/forward/index.ts";
import { type JetStreamPublisherOptions, jetstreamPublisher } from "../../../src/tools/forward/jetstream.ts";
import { fixtures, incomingOf, signedRequest, TEST_SECRET } from "../../../src/tools/testing/index.ts";
import { recordedLog } from "../../receiver/bench.ts";
import { startForwarding } from "./bench.ts";
import { FAULTLESS, faultsOf, type Held, heldOf, messages } from "./held.ts";
import { atEnd, needs, startProxy } from "./needs.ts";
import { at, NATS, uniqueName } from "./services.ts";

const DAY_NANOS = 86_400 * 1_000_000_000;

async function connected(url: string): Promise<NatsConnection> {
  const connection = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    waitOnFirstConnect: true,
    reconnectTimeWait: 20,
    reconnectJitter: 0,
  });
  atEnd(() => connection.close());
  return connection;
}

/** A stream of the test's own, removed with it. */
async function newStream(config: Partial<StreamConfig> = {}) {
  const manager = await jetstreamManager(await connected(NATS.url));
  const name = uniqueName("oncehook");
  await manager.streams.add({ name, subjects: [`${name}.>`], duplicate_window: DAY_NANOS, ...config });
  atEnd(() => manager.streams.delete(name));
  const held = async () => {
    const { state } = await manager.streams.info(name);
    const all: Held[] = [];
    for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq++) {
      const message = await manager.streams.getMessage(name, { seq });
      if (message !== null) all.push(heldOf(message.header.get("Nats-Msg-Id"), message.string()));
    }
    return all;
  };
  const consume = () => manager.consumers.add(name, { durable_name: "consumer", ack_policy: AckPolicy.Explicit });
  return { name, held, consume };
}

function publisherFor(connection: NatsConnection, stream: string, options: Partial<JetStreamPublisherOptions> = {}) {
  const subject = ({ key }: { key: string }) => `${stream}.${key}`;
  return jetstreamPublisher({ js: jetstream(connection, { timeout: 300 }), stream, subject, ...options });
}

describe("jetstreamPublisher() with a receiver", () => {
  beforeEach(needs(NATS));

  it("publishes each event once, in the order of its message, as it was received (RCV-6, RCV-7)", async () => {
    const { name, held } = await newStream();
    const connection = await connected(NATS.url);
    const { accept, settled } = await startForwarding(publisherFor(connection, name));
    const sent = [...messages(20), fixtures.inbound({ occurredAt: Date.now() })];
    await accept([...sent, ...sent]);
    await settled();
    expect(faultsOf(await held(), sent)).toEqual(FAULTLESS);
    const manager = await jetstreamManager(connection);
    const first = await manager.streams.getMessage(name, { seq: 1 });
    expect(first?.header.get("oncehook-sequence")).toMatch(/^[01]$/);
    expect(sent.map((event) => JSON.stringify(event))).toContain(first?.string());
  });
});

describe("jetstreamPublisher() with passthrough()", () => {
  beforeEach(needs(NATS));

  it("answers 200 by the acknowledgement and 503 without, and a retry adds nothing (RCV-3, RCV-4)", async () => {
    const { name, held } = await newStream();
    const proxy = await startProxy(NATS);
    const publisher = publisherFor(await connected(at(NATS, proxy.port)), name);
    const intake = passthrough({ secrets: TEST_SECRET, publisher, deadlineMs: 200, logger: recordedLog().logger });
    const send = async (event: object) => (await intake.handle(incomingOf(signedRequest(event)))).status;
    expect(await send(fixtures.queued())).toBe(200);
    proxy.hold();
    expect(await send(fixtures.sent())).toBe(503);
    proxy.cut();
    proxy.release();
    await expect.poll(() => send(fixtures.sent())).toBe(200);
    expect(await send(fixtures.queued())).toBe(200);
    expect((await held()).map(({ sequence }) => sequence)).toEqual([1, 2]);
  });
});

describe("jetstreamPublisher().check()", () => {
  beforeEach(needs(NATS));

  it("is content with a stream on disk that remembers ids for a day", async () => {
    const { name } = await newStream();
    expect(await publisherFor(await connected(NATS.url), name).check()).toEqual([]);
  });

  it.each([
    ["is kept in memory", { storage: StorageType.Memory }, /not_durable.*kept in memory/],
    ["forgets ids after 2 minutes", { duplicate_window: 120 * 1_000_000_000 }, /120000 ms.*--dupe-window 86400s/],
    ["does not acknowledge", { no_ack: true }, /does not acknowledge/],
    ["keeps nothing, as nobody consumes it", { retention: RetentionPolicy.Interest }, /not_durable.*no consumer/],
  ] satisfies [string, Partial<StreamConfig>, RegExp][])("refuses a stream that %s", async (_, config, message) => {
    const { name } = await newStream(config);
    const failure = await publisherFor(await connected(NATS.url), name)
      .check()
      .then(String, (error) => `${error.code} ${error.message}`);
    expect(failure).toMatch(message);
  });

  it("refuses a stream that does not exist", async () => {
    const publisher = publisherFor(await connected(NATS.url), uniqueName("absent"));
    await expect(publisher.check()).rejects.toThrow(/There is no stream "absent/);
  });

  it("asks for no longer a memory than it is told", async () => {
    const { name } = await newStream({ duplicate_window: 120 * 1_000_000_000 });
    expect(await publisherFor(await connected(NATS.url), name, { rememberIdsMs: 120_000 }).check()).toEqual([]);
  });

  it("takes no other stream's acknowledgement for the named one's", async () => {
    const [named, other] = [await newStream(), await newStream()];
    const publisher = publisherFor(await connected(NATS.url), named.name, { subject: `${other.name}.events` });
    const { accept, receiver } = await startForwarding(publisher);
    await accept([fixtures.queued({ occurredAt: Date.now() })]);
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(0);
    expect([await named.held(), await other.held()]).toEqual([[], []]);
  });

  it.each([
    ["is full", { max_msgs: 10 }, /--discard new the inbox/],
    ["has many of a subject", { max_msgs_per_subject: 10 }, /--discard new --discard-per-subject the inbox/],
    [
      "has many of a subject, although it refuses others when it is full",
      { max_msgs: 10, max_msgs_per_subject: 10, discard: DiscardPolicy.New },
      /--discard new --discard-per-subject the inbox/,
    ],
  ] satisfies [string, Partial<StreamConfig>, RegExp][])(
    "warns of a stream that drops what it acknowledged when it %s",
    async (_, config, message) => {
      const { name } = await newStream(config);
      expect(await publisherFor(await connected(NATS.url), name).check()).toEqual([expect.stringMatching(message)]);
    },
  );

  it("is content with a stream that refuses what it has no room for", async () => {
    const limits = { max_msgs: 10, max_msgs_per_subject: 10 };
    const { name } = await newStream({ ...limits, discard: DiscardPolicy.New, discard_new_per_subject: true });
    expect(await publisherFor(await connected(NATS.url), name).check()).toEqual([]);
  });

  it("warns of a stream that keeps messages only for the consumers it has", async () => {
    const { name, consume } = await newStream({ retention: RetentionPolicy.Interest });
    await consume();
    expect(await publisherFor(await connected(NATS.url), name).check()).toEqual([
      expect.stringMatching(/its consumers/),
    ]);
  });

  it("forwards nothing to a stream that forgets ids, until it is mended", async () => {
    const { name, held } = await newStream({ duplicate_window: 120 * 1_000_000_000 });
    const { accept, settled, receiver } = await startForwarding(publisherFor(await connected(NATS.url), name));
    await accept([fixtures.queued({ occurredAt: Date.now() })]);
    await expect.poll(async () => (await receiver.inbox.stats()).counters.retried).toBeGreaterThan(0);
    expect(await held()).toEqual([]);
    const manager = await jetstreamManager(await connected(NATS.url));
    await manager.streams.update(name, { duplicate_window: DAY_NANOS });
    await settled();
    expect(await held()).toHaveLength(1);
  });
});

describe("jetstreamPublisher() options", () => {
  const js = {
    publish: async () => {},
    jetstreamManager: async () => {},
  } as unknown as JetStreamPublisherOptions["js"];

  it.each([
    [{ js: {} }, /"js"/],
    [{ stream: "" }, /"stream"/],
    [{ subject: "a b" }, /"subject"/],
    [{ subject: "sms.*" }, /"subject"/],
    [{ subject: ".sms" }, /"subject"/],
    [{ subject: 1 }, /"subject"/],
    [{ rememberIdsMs: 10 }, /"rememberIdsMs"/],
    [{ streams: "SMS" }, /Did you mean "stream"/],
  ])("refuses %j", (wrong, message) => {
    const options = { js, stream: "SMS", subject: "sms.events", ...wrong } as unknown as JetStreamPublisherOptions;
    expect(() => jetstreamPublisher(options)).toThrow(message);
  });

  it("tells whoever publishes that the connection was never made", async () => {
    const publisher = jetstreamPublisher({ js: Promise.reject(new Error("no route")), stream: "SMS", subject: "sms" });
    await new Promise<void>((resolve) => setImmediate(resolve));
    await expect(publisher.check()).rejects.toThrow("no route");
  });

  it("refuses a subject that an event's id has broken", async () => {
    const publisher = jetstreamPublisher({ js, stream: "SMS", subject: () => "sms.a b" });
    const message = { id: "1", key: "2", headers: {}, body: Buffer.of() } as unknown as Parameters<
      typeof publisher.publish
    >[0];
    await expect(publisher.publish(message)).rejects.toThrow(/"subject"/);
  });
});
