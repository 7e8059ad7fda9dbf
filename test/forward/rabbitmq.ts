/** The publisher of docs/forwarding.md for RabbitMQ: confirmed, persistent, on a connection that comes back. */
import { type ChannelModel, type ConfirmChannel, connect } from "amqplib";
import type { ForwardedMessage, Publish } from "../../src/forward/index.ts";

export interface RabbitPublisher {
  readonly publish: Publish;
  close(): Promise<void>;
}

/** Publishes to `queue`, which it makes durable; one message's events stay in order with a single active consumer. */
export function rabbitPublisher(url: string, queue: string): RabbitPublisher {
  let opened: Promise<ConfirmChannel> | null = null;
  let connection: ChannelModel | null = null;

  const open = async (): Promise<ConfirmChannel> => {
    const model = await connect(url);
    connection = model;
    const forget = () => {
      if (connection === model) opened = null;
    };
    model.on("error", forget).on("close", forget);
    const channel = await model.createConfirmChannel();
    channel.on("error", forget).on("close", forget);
    await channel.assertQueue(queue, { durable: true, arguments: { "x-single-active-consumer": true } });
    return channel;
  };
  const confirmed = async ({ id, key, body, headers }: ForwardedMessage) => {
    opened ??= open();
    const channel = await opened.catch((error) => {
      opened = null;
      throw error;
    });
    const options = { persistent: true, messageId: id, headers: { ...headers, key }, mandatory: true };
    await new Promise<void>((resolve, reject) => {
      channel.sendToQueue(queue, Buffer.from(body), options, (error) => (error ? reject(error) : resolve()));
    });
  };
  return {
    publish: confirmed,
    async close() {
      await connection?.close().catch(() => {});
    },
  };
}
