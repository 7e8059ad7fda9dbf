/** One kept connection on which requests are written byte by byte, as no client of HTTP would write some of them. */
import { connect, type Socket } from "node:net";
import type { Case } from "./case.ts";
import type { Dice } from "./dice.ts";

const TIMEOUT_MS = 10_000;

export interface RawAnswer {
  readonly status: number;
  /** Empty in the answers that are node's own. */
  readonly body: string;
}

export class RawConnection {
  readonly #port: number;
  #socket: Socket | null = null;

  constructor(port: number) {
    this.#port = port;
  }

  /** What was answered; status 0 when the connection ended, or ten seconds did, without an answer. */
  async send(request: Case, dice: Dice): Promise<RawAnswer> {
    const socket = this.#socket ?? connect(this.#port, "127.0.0.1");
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.write(written(request, dice));
    const { status, body, isOpen } = await answerOn(socket);
    if (!isOpen) this.close();
    return { status, body };
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }
}

function answerOn(socket: Socket): Promise<RawAnswer & { isOpen: boolean }> {
  return new Promise((resolve) => {
    let text = "";
    const settle = (status: number, isOpen: boolean, body = "") => {
      for (const name of ["data", "close", "error"]) socket.removeAllListeners(name);
      socket.on("error", () => {});
      clearTimeout(timer);
      resolve({ status, body, isOpen });
    };
    const timer = setTimeout(() => settle(0, false), TIMEOUT_MS);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      if (head === -1) return;
      const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, head))?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      settle(statusOf(text), !/^connection: *close/im.test(text.slice(0, head)), text.slice(head + 4));
    });
    socket.on("close", () => settle(statusOf(text), false));
    socket.on("error", () => settle(statusOf(text), false));
  });
}

function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
}

function written({ headers, body }: Case, dice: Dice): Buffer {
  const isChunked = dice.isOneIn(4);
  const lines = Object.entries(headers).flatMap(([name, values]) => [values].flat().map((value) => line(name, value)));
  const framing = isChunked ? "transfer-encoding: chunked" : `content-length: ${body.length}`;
  const head = [Buffer.from(`POST / HTTP/1.1\r\nhost: x\r\n${framing}\r\n`), ...lines, Buffer.from("\r\n")];
  return Buffer.concat([...head, ...(isChunked ? chunks(body, dice) : [body])]);
}

function chunks(body: Buffer, dice: Dice): Buffer[] {
  const at = dice.below(body.length + 1);
  const parts = [body.subarray(0, at), body.subarray(at)].filter(({ length }) => length > 0);
  const framed = parts.flatMap((part) => [Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]);
  return [...framed, Buffer.from("0\r\n\r\n")];
}

function line(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from(`${name}: `), bytesOf(value), Buffer.from("\r\n")]);
}

/** As a client writes it that knows no better: in Latin-1 what fits, in UTF-8 what does not. */
function bytesOf(value: string): Buffer {
  return Buffer.from(value, [...value].every((char) => char <= "\xff") ? "latin1" : "utf8");
}

/** What a server makes of it: bytes as Latin-1, without the white space around them, and anything after a line break gone. */
export function asReceived({ headers, body }: Case): Pick<Case, "headers" | "body"> {
  const received = (value: string) =>
    bytesOf(value)
      .toString("latin1")
      .replace(/^[ \t]+|[ \t]+$/g, "");
  const values = Object.entries(headers).map(([name, value]) => [name, [value].flat().map(received)] as const);
  return { headers: Object.fromEntries(values), body };
}
