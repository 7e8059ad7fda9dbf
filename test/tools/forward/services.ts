/** The engines that the tests speak to: where they are, and whether they answer. */
import { connect, type Socket } from "node:net";

export interface Service {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly url: string;
}

export const NATS = service("NATS with JetStream", process.env.NATS_URL ?? "nats://127.0.0.1:4222", 4222);
export const REDIS = service("Redis", process.env.REDIS_URL ?? "redis://127.0.0.1:6379", 6379);
export const RABBITMQ = service("RabbitMQ", process.env.AMQP_URL ?? "amqp://guest:guest@127.0.0.1:5672", 5672);

function service(name: string, url: string, defaultPort: number): Service {
  const { hostname, port } = new URL(url);
  return { name, host: hostname, port: port === "" ? defaultPort : Number(port), url };
}

/** The service at another address, such as a proxy's. */
export function at({ url }: Service, port: number): string {
  const moved = new URL(url);
  moved.hostname = "127.0.0.1";
  moved.port = String(port);
  return moved.href;
}

/** Whether something listens there. */
export function answers({ host, port }: Service): Promise<boolean> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ host, port, timeout: 1_000 });
    const end = (result: boolean) => {
      socket.destroy();
      resolve(result);
    };
    socket.once("connect", () => end(true));
    socket.once("timeout", () => end(false));
    socket.once("error", () => end(false));
  });
}

let names = 0;

/** A name that no other test and no other process uses. */
export function uniqueName(prefix: string): string {
  return `${prefix}-${process.pid}-${Date.now().toString(36)}-${++names}`;
}
