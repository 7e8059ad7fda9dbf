/** A sender that takes no answers. */
import { once } from "node:events";
import type { Server } from "node:http";
import { connect, type Socket } from "node:net";
import { setImmediate as nextRound } from "node:timers/promises";
import { requestBytes } from "../contracts/adapter-bench.ts";
import { signedEvent } from "./receivers.ts";

export interface Untaken {
  /** The server's end of the connection, with answers that wait to be taken. */
  readonly socket: Socket;
  /** Takes them from now on. */
  take(): void;
  close(): void;
}

/** Goes on sending deliveries whose signature has the right form alone, until some answers wait at the server. */
export async function leaveUntaken(server: Server, port: number): Promise<Untaken> {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const sender = connect({ host: "127.0.0.1", port });
  const [socket] = await accepted;
  const forged = { ...signedEvent().headers, "x-service-signature": "ab".repeat(32) };
  const request = requestBytes({ headers: Object.entries(forged), body: Buffer.from("{}") });
  const many = Buffer.concat(Array.from({ length: 1_000 }, () => request));
  while (socket.writableLength === 0) {
    sender.write(many);
    await nextRound();
  }
  return { socket, take: () => void sender.resume(), close: () => void sender.destroy() };
}
