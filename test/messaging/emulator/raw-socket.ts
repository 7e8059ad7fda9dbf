/** Bytes over a socket, for what no HTTP client would send. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import type { Emulator, EmulatorOptions } from "../../../src/messaging/emulator/index.ts";
import { parsed, start } from "./support.ts";

/** An emulator on a port of its own, closed with the test. */
export const listen = (options: EmulatorOptions = {}): Promise<Emulator> => start({ port: 0, ...options });

export async function connectTo(emulator: Emulator): Promise<Socket> {
  const { hostname, port } = new URL(emulator.url);
  const socket = connect({ host: hostname, port: Number(port) });
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

export interface RawAnswer {
  /** 0 when the connection ended without an answer. */
  readonly status: number;
  readonly head: string;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers whose shape it is about to check
  readonly body: any;
}

/** Sends bytes and reads until the emulator ends the connection. */
export async function raw(emulator: Emulator, bytes: string | Uint8Array): Promise<RawAnswer> {
  const socket = await connectTo(emulator);
  const answer = readAll(socket);
  socket.write(bytes);
  return answer;
}

/** All that comes until the connection ends, as one answer. */
export async function readAll(socket: Socket): Promise<RawAnswer> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {}); // A close follows.
  await new Promise((resolve) => socket.once("end", resolve).once("close", resolve));
  const all = Buffer.concat(chunks).toString("utf8");
  const gap = all.indexOf("\r\n\r\n");
  const head = gap === -1 ? all : all.slice(0, gap);
  const text = gap === -1 ? "" : all.slice(gap + 4);
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), head, text, body: parsed(text) };
}
