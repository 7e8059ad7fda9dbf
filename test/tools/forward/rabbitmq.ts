/** The publisher of docs/forwarding.md for RabbitMQ: confirmed, persistent, on a connection that comes back. */
import { type ChannelModel, type ConfirmChannel, connect } from "amqplib";
import type { ForwardedMessage, Publish } from "../../../src/tools/forward/index.ts";

export interface RabbitPublisher {
  readonly publish: Publish;
  close(): Promise<void>;
}

/** Publishes to `queue`, which it makes durable; one message's events stay in order with a single active consumer. */
export function rabbitPublisher(url: string, queue: string): RabbitPublisher {
  let opened: Promise<ConfirmChannel> | null = null;
  let connection: ChannelModel | null = null;

  const open = async (): Promise<ConfirmChannel> => {
    // What takes a connection and says nothing would be waited for without end.
    const model = await connect(url, { timeout: 10_000 });
    connection = model;
    // Fails what is not confirmed; the next message opens another connection and asserts the queue again.
    const giveUp = () => {
      if (connection === model) {
        opened = null;
        connection = null;
      }
      model.close().catch(() => {});
    };
    // "close" follows.
    model.on("error", () => {});
    try {
      const channel = await model.createConfirmChannel();
      // What no queue takes, as when it was deleted, RabbitMQ returns, and then confirms all the same.
      channel
        .on("error", () => {})
        .on("close", giveUp)
        .on("return", giveUp);
      await channel.assertQueue(queue, { durable: true, arguments: { "x-single-active-consumer": true } });
      return channel;
    } catch (error) {
      giveUp();
      throw error;
    }
  };
  const confirmed = async ({ id, key, body, headers }: ForwardedMessage) => {
    opened ??= open();
    const opening = opened;
    const channel = await opening.catch((error) => {
      if (opened === opening) opened = null;
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
