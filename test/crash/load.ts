/** The sender: 16 deliveries under way at once over kept-alive connections, each sent until it is answered with 200; some are forged. */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import { eventIdentity, type KnownEvent } from "../../src/index.ts";
import { fixtures, lifecycle, seededRandom, shuffled, TEST_SECRETS } from "../../src/testing/index.ts";
import { billIdentity } from "../prove/history.ts";

const PARALLEL = 16;
const FORGERS_SECRET = "a-secret-that-nobody-configured-";

interface Delivery {
  readonly identity: string;
  readonly path: "/messages" | "/billing";
  readonly body: Buffer;
  readonly secret: string;
}

export class Load {
  /** Identities that were answered with 200. */
  readonly acknowledged = new Set<string>();
  readonly sent: string[] = [];
  readonly forged: string[] = [];
  /** Answers of 200, with those to repeats. */
  answered = 0;
  /** Attempts that a kill left without an answer. */
  unanswered = 0;
  /** Forged deliveries that were answered with 401. */
  refused = 0;
  /** Answers that are wrong: other than 200 to a signed delivery, or than 401 to a forged one. */
  readonly wrong: string[] = [];
  readonly #random;
  readonly #secret: string;
  readonly #port: () => Promise<number>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
  readonly #queue: Delivery[] = [];
  #messages = 0;
  #bills = 0;
  #enough = false;
  #awaited: { readonly answered: number; readonly resolve: () => void } | null = null;

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

  /** Resolves after `count` answers from now. */
  more(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#awaited = { answered: this.answered + count, resolve };
    });
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#queue.length === 0) {
        if (this.#enough) return;
        this.#refill();
      }
      const next = this.#queue.shift();
      if (next !== undefined) await this.#untilAnswered(next);
    }
  }

  /** Eight messages and eight bills at a time, their events mixed; some events a second time, and a message and a bill that nobody signed. */
  #refill(): void {
    const messages = Array.from({ length: 8 }, () => this.#message("msg")).flat();
    const deliveries = [
      ...messages.map((event) => deliveryOf(event, this.#secret)),
      ...Array.from({ length: 8 }, () => this.#bill("evt", TEST_SECRETS.stripe)),
    ];
    const forged = [
      ...this.#message("forged").map((event) => deliveryOf(event, FORGERS_SECRET)),
      this.#bill("forged", FORGERS_SECRET),
    ];
    for (const { identity } of deliveries) this.sent.push(identity);
    for (const { identity } of forged) this.forged.push(identity);
    const repeated = deliveries.filter(() => this.#random() < 0.1);
    this.#queue.push(...shuffled([...deliveries, ...repeated, ...forged], this.#random));
  }

  #message(prefix: string): KnownEvent[] {
    const messageId = `${prefix}_${String(++this.#messages).padStart(6, "0")}`;
    return lifecycle({ messageId, occurredAt: Date.now(), ending: this.#random() < 0.1 ? "failed" : "delivery" });
  }

  /** An event of another source, in the same inbox. */
  #bill(prefix: string, secret: string): Delivery {
    const id = `${prefix}_${String(++this.#bills).padStart(6, "0")}`;
    const event = fixtures.stripe({ id });
    const body = Buffer.from(JSON.stringify(event));
    return { identity: billIdentity(id, event.type), path: "/billing", body, secret };
  }

  async #untilAnswered(delivery: Delivery): Promise<void> {
    const isForged = delivery.secret === FORGERS_SECRET;
    for (;;) {
      const status = await this.#deliver(await this.#port(), delivery);
      if (status === 200) return this.#acknowledge(delivery.identity);
      if (status === 401 && isForged) {
        this.refused += 1;
        return;
      }
      if (status === 0) this.unanswered += 1;
      else this.wrong.push(`${status} to a ${isForged ? "forged" : "signed"} delivery`);
    }
  }

  #acknowledge(identity: string): void {
    this.acknowledged.add(identity);
    this.answered += 1;
    if (this.#awaited !== null && this.answered >= this.#awaited.answered) {
      this.#awaited.resolve();
      this.#awaited = null;
    }
  }

  /** The status, or 0 without an answer. */
  #deliver(port: number, { path, body, secret }: Delivery): Promise<number> {
    const now = Date.now();
    const time = String(path === "/billing" ? Math.floor(now / 1_000) : now);
    const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
    const signed =
      path === "/billing"
        ? { "stripe-signature": `t=${time},v1=${signature}` }
        : { "x-service-timestamp": time, "x-service-signature": signature };
    const headers = { "content-length": body.length, ...signed };
    return new Promise((resolve) => {
      const outgoing = request(
        { port, path, host: "127.0.0.1", method: "POST", agent: this.#agent, headers },
        (response) => {
          response.resume();
          // Only an answer whose end arrived counts as one.
          response.once("end", () => resolve(response.statusCode ?? 0));
          response.once("error", () => resolve(0));
        },
      );
      outgoing.once("error", () => resolve(0));
      outgoing.end(body);
    });
  }
}

function deliveryOf(event: KnownEvent, secret: string): Delivery {
  const body = Buffer.from(JSON.stringify(event));
  return { identity: eventIdentity(event, body), path: "/messages", body, secret };
}
