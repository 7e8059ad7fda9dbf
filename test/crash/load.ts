/** The crash test's sender: 16 deliveries under way at once over kept-alive connections, each sent until it is answered with 200. */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import { eventIdentity } from "../../src/index.ts";
import { lifecycle, seededRandom, shuffled } from "../../src/testing/index.ts";

const PARALLEL = 16;

export interface Expected {
  readonly identity: string;
  readonly body: Buffer;
}

export class Load {
  /** Identities that were answered with 200. */
  readonly acknowledged = new Set<string>();
  readonly expected: Expected[] = [];
  /** Attempts that a kill left without an answer. */
  unanswered = 0;
  /** Answers other than 200. */
  readonly refusals: number[] = [];
  readonly #random;
  readonly #secret: string;
  readonly #port: () => Promise<number>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
  readonly #queue: Expected[] = [];
  #messages = 0;
  #enough = false;

  constructor(seed: number, secret: string, port: () => Promise<number>) {
    this.#random = seededRandom(seed);
    this.#secret = secret;
    this.#port = port;
  }

  /** Sends until `finish` is called and everything begun is acknowledged. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: PARALLEL }, () => this.#send()));
    this.#agent.destroy();
  }

  finish(): void {
    this.#enough = true;
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#queue.length === 0) {
        if (this.#enough) return;
        this.#refill();
      }
      const next = this.#queue.shift();
      if (next !== undefined) await this.#untilAcknowledged(next);
    }
  }

  /** Eight messages at a time, their events mixed; some events a second time. */
  #refill(): void {
    const batch = Array.from({ length: 8 }, () => {
      const messageId = `msg_${String(++this.#messages).padStart(6, "0")}`;
      return lifecycle({ messageId, occurredAt: Date.now(), ending: this.#random() < 0.1 ? "failed" : "delivery" });
    }).flat();
    const events = batch.map((event) => {
      const body = Buffer.from(JSON.stringify(event));
      return { identity: eventIdentity(event, body), body };
    });
    this.expected.push(...events);
    const repeated = events.filter(() => this.#random() < 0.1);
    this.#queue.push(...shuffled([...events, ...repeated], this.#random));
  }

  async #untilAcknowledged({ identity, body }: Expected): Promise<void> {
    for (;;) {
      const status = await this.#deliver(await this.#port(), body);
      if (status === 200) {
        this.acknowledged.add(identity);
        return;
      }
      if (status === 0) this.unanswered += 1;
      else this.refusals.push(status);
    }
  }

  /** The status, or 0 without an answer. */
  #deliver(port: number, body: Buffer): Promise<number> {
    const timestamp = String(Date.now());
    const signature = createHmac("sha256", this.#secret).update(`${timestamp}.`).update(body).digest("hex");
    const headers = {
      "content-length": body.length,
      "x-service-timestamp": timestamp,
      "x-service-signature": signature,
    };
    return new Promise((resolve) => {
      const outgoing = request({ port, host: "127.0.0.1", method: "POST", agent: this.#agent, headers }, (response) => {
        response.resume();
        // Only an answer whose end arrived counts as one.
        response.once("end", () => resolve(response.statusCode ?? 0));
        response.once("error", () => resolve(0));
      });
      outgoing.once("error", () => resolve(0));
      outgoing.end(body);
    });
  }
}
