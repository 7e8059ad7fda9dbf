/** Both engines behind proxies, each with a place of its own that is removed at the end. */
import { AckPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Queue } from "bullmq";
import { bullmqPublisher, type ForwardedJob } from "../../../src/tools/forward/bullmq.ts";
import type { Publisher } from "../../../src/tools/forward/index.ts";
import { jetstreamPublisher } from "../../../src/tools/forward/jetstream.ts";
import { type Held, heldOf } from "./held.ts";
import { at, NATS, REDIS, uniqueName } from "./services.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export interface EngineBehindProxy {
  readonly proxy: TcpProxy;
  readonly publisher: Publisher;
  /** In the engine's order. */
  held(): Promise<Held[]>;
  close(): Promise<void>;
}

const PAGE = 1_000;

export async function openJetStream(): Promise<EngineBehindProxy> {
  const proxy = new TcpProxy(NATS);
  await proxy.up();
  const direct = await connect({ servers: NATS.url });
  const connection = await connect({
    servers: at(NATS, proxy.port),
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
    reconnectJitter: 0,
  });
  const manager = await jetstreamManager(direct);
  const stream = uniqueName("oncehook");
  await manager.streams.add({ name: stream, subjects: [`${stream}.>`], duplicate_window: 86_400 * 1_000_000_000 });
  return {
    proxy,
    publisher: jetstreamPublisher({
      js: jetstream(connection, { timeout: 400 }),
      stream,
      subject: ({ key }) => `${stream}.${key}`,
    }),
    async held() {
      const { state } = await manager.streams.info(stream);
      await manager.consumers.add(stream, { durable_name: "reader", ack_policy: AckPolicy.None });
      const reader = await jetstream(direct).consumers.get(stream, "reader");
      const all: Held[] = [];
      while (all.length < state.messages) {
        const page = await reader.fetch({ max_messages: Math.min(PAGE, state.messages - all.length), expires: 2_000 });
        for await (const message of page) all.push(heldOf(message.headers?.get("Nats-Msg-Id") ?? "", message.string()));
      }
      return all;
    },
    async close() {
      await manager.streams.delete(stream);
      await connection.close();
      await direct.close();
      await proxy.down();
    },
  };
}

export async function openBullmq(): Promise<EngineBehindProxy> {
  const proxy = new TcpProxy(REDIS);
  await proxy.up();
  const name = uniqueName("oncehook");
  const direct = new Queue<ForwardedJob>(name, { connection: { host: REDIS.host, port: REDIS.port } });
  const queue = new Queue<ForwardedJob>(name, {
    connection: { host: "127.0.0.1", port: proxy.port, maxRetriesPerRequest: 1, retryStrategy: () => 20 },
  });
  queue.on("error", () => {});
  return {
    proxy,
    publisher: bullmqPublisher({ queue }),
    async held() {
      const all: Held[] = [];
      const { waiting = 0 } = await direct.getJobCounts("waiting");
      for (let start = 0; start < waiting; start += PAGE) {
        const jobs = await direct.getJobs(["waiting"], start, start + PAGE - 1, true);
        all.push(...jobs.map(({ id = "", data }) => heldOf(id, data.body)));
      }
      return all;
    },
    async close() {
      await queue.close();
      await direct.obliterate({ force: true });
      await direct.close();
      await proxy.down();
    },
  };
}
