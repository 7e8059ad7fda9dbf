/** The sender: 16 deliveries under way at once over kept-alive connections, each sent until it is answered with 200; some are forged. */
import { Buffer } from "node:buffer";
import { createHmac } from "node:crypto";
import { Agent, request } from "node:http";
import { eventIdentity, type KnownEvent } from "../../../src/index.ts";
import { fixtures, lifecycle, seededRandom, shuffled, TEST_SECRET, TEST_SECRETS } from "../../../src/testing/index.ts";
import { type Bill, Bills } from "../bills.ts";
import { isOfStripe, otherIdentity, type SourceName } from "../sources.ts";

const PARALLEL = 16;
/** Objects of Stripe whose events come with each refill. */
const OBJECTS = 4;
const FORGERS_SECRET = "a-secret-that-nobody-configured-";

interface Delivery {
  readonly identity: string;
  readonly source: SourceName;
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
  readonly #bills: Bills;
  readonly #port: () => Promise<number>;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
  readonly #queue: Delivery[] = [];
  #messages = 0;
  #enough = false;
  #awaited: { readonly answered: number; readonly resolve: () => void } | null = null;

  constructor(seed: number, lanes: number, port: () => Promise<number>) {
    this.#random = seededRandom(seed);
    this.#bills = new Bills(this.#random, lanes);
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

  /** Eight messages and the events of four objects at a time, mixed; some events a second time, and a message and a bill that nobody signed. */
  #refill(): void {
    const messages = Array.from({ length: 8 }, () => this.#message("msg")).flat();
    const deliveries = [
      ...messages.map((event) => deliveryOf(event, TEST_SECRET)),
      ...Array.from({ length: OBJECTS }, () => this.#bills.next()).flatMap((bills) =>
        bills.map((bill) => billOf(bill, TEST_SECRETS.stripe)),
      ),
    ];
    const forged = [...this.#message("forged").map((event) => deliveryOf(event, FORGERS_SECRET)), this.#forgedBill()];
    for (const { identity } of deliveries) this.sent.push(identity);
    for (const { identity } of forged) this.forged.push(identity);
    const repeated = deliveries.filter(() => this.#random() < 0.1);
    this.#queue.push(...shuffled([...deliveries, ...repeated, ...forged], this.#random));
  }

  #message(prefix: string): KnownEvent[] {
    const messageId = `${prefix}_${String(++this.#messages).padStart(6, "0")}`;
    return lifecycle({ messageId, occurredAt: Date.now(), ending: this.#random() < 0.1 ? "failed" : "delivery" });
  }

  #forgedBill(): Delivery {
    const event = fixtures.stripe({ id: `forged_${this.#messages}`, data: { id: "sub_0" } });
    const identity = otherIdentity("billing", JSON.stringify(event));
    return billOf({ source: "billing", event, identity }, FORGERS_SECRET);
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
  #deliver(port: number, { source, body, secret }: Delivery): Promise<number> {
    const now = Date.now();
    const time = String(isOfStripe(source) ? Math.floor(now / 1_000) : now);
    const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
    const signed = isOfStripe(source)
      ? { "stripe-signature": `t=${time},v1=${signature}` }
      : { "x-service-timestamp": time, "x-service-signature": signature };
    const headers = { "content-length": body.length, ...signed };
    return new Promise((resolve) => {
      const outgoing = request(
        { port, path: `/${source}`, host: "127.0.0.1", method: "POST", agent: this.#agent, headers },
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
  return { identity: eventIdentity(event, body), source: "messages", body, secret };
}

function billOf({ source, event, identity }: Bill, secret: string): Delivery {
  return { identity, source, body: Buffer.from(JSON.stringify(event)), secret };
}
