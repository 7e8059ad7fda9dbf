/** One kept connection of a sender: a request, its answer, the next request; plain sockets, since a sender is not what is measured. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export class Line {
  readonly #socket: Socket;
  #received = "";
  #settle: ((status: number) => void) | null = null;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Buffer) => this.#take(chunk.toString("latin1")));
    socket.on("error", () => {}).once("close", () => this.#answer(0));
  }

  static async open(port: number): Promise<Line> {
    const socket = connect(port, "127.0.0.1").setNoDelay(true);
    await once(socket, "connect");
    return new Line(socket);
  }

  /** The status of the answer, 0 when the connection is closed instead. */
  send(headers: Readonly<Record<string, string>>, body: Uint8Array): Promise<number> {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `POST /webhooks HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n${lines.join("")}\r\n`;
    return new Promise((resolve) => {
      if (this.#socket.destroyed) return resolve(0);
      this.#settle = resolve;
      this.#socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(text: string): void {
    this.#received += text;
    const head = this.#received.indexOf("\r\n\r\n");
    const length = Number(/^content-length: (\d+)/im.exec(this.#received)?.[1] ?? 0);
    if (head < 0 || this.#received.length < head + 4 + length) return;
    const status = Number(this.#received.slice(9, 12));
    this.#received = "";
    this.#answer(status);
  }

  #answer(status: number): void {
    this.#settle?.(status);
    this.#settle = null;
  }
}
