/** A TCP proxy before an engine that can hold back its answers, cut its connections, or be down. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Service } from "./services.ts";

export class TcpProxy {
  readonly #service: Service;
  readonly #pairs = new Set<{ readonly client: Socket; readonly upstream: Socket }>();
  readonly #server = createServer((client) => this.#join(client));
  #holding = false;
  #isDown = true;
  port = 0;

  constructor(service: Service) {
    this.#service = service;
  }

  /** Connections through it that are open. */
  get joined(): number {
    return this.#pairs.size;
  }

  async up(): Promise<void> {
    if (!this.#isDown) return;
    this.#isDown = false;
    this.#holding = false;
    this.#server.listen(this.port, "127.0.0.1");
    await once(this.#server, "listening");
    this.port = (this.#server.address() as AddressInfo).port;
  }

  /** As when the engine's machine loses its power. */
  async down(): Promise<void> {
    if (this.#isDown) return;
    this.#isDown = true;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.cut();
    await closed;
  }

  /** From here on the engine gets everything, and nobody hears of it. */
  hold(): void {
    this.#holding = true;
    for (const { upstream } of this.#pairs) upstream.pause();
  }

  /** What was held is heard after all. */
  release(): void {
    this.#holding = false;
    for (const { upstream } of this.#pairs) upstream.resume();
  }

  /** Ends all connections; what was held on them is never heard. */
  cut(): void {
    for (const { client, upstream } of this.#pairs) {
      client.destroy();
      upstream.destroy();
    }
    this.#pairs.clear();
  }

  #join(client: Socket): void {
    const upstream = connect(this.#service.port, this.#service.host);
    const pair = { client, upstream };
    this.#pairs.add(pair);
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => client.write(chunk));
    if (this.#holding) upstream.pause();
    const end = () => {
      client.destroy();
      upstream.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  }
}
