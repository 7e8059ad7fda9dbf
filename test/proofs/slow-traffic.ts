/** Who is not to suffer: signed deliveries at a steady pace, most of them small, some of many pieces that come one after the other. */
import { Agent } from "node:http";
import { fixtures } from "../../src/tools/testing/index.ts";
import { p99 } from "../support/statistics.ts";
import { type Delivery, deliveryOf, message, post, requestOf, Sender } from "./sender.ts";
import { TENANT } from "./slow-besieged.ts";

/** Kept, as the service keeps them; a new one waits its turn behind those of the attackers. */
const CONNECTIONS = 8;
/** Deliveries that wait for an answer or for a connection. */
const MOST_UNDER_WAY = 1_000;
const EVERY_MS = 20;
/** One in so many messages is long and comes over a slow network. */
const LONG_ONE_IN = 10;
const LONG_BYTES = 16 * 1024;
const IN_PIECES = { count: 8, everyMs: 40 };

export class Traffic {
  readonly sender: Sender;
  /** From the last byte of a delivery to the end of its answer, ms. */
  readonly waits: number[] = [];
  /** Its own ends of the connections, by which the server tells them from others. */
  readonly ports = new Set<number>();
  readonly #port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  readonly #run: Promise<void>;

  /** Begins at once. */
  constructor(port: number) {
    this.#port = port;
    let messages = 0;
    this.sender = new Sender({
      ...{ parallel: MOST_UNDER_WAY, everyMs: EVERY_MS, againAfterMs: null },
      next() {
        const number = messages++;
        const messageId = `msg-${number}`;
        return number % LONG_ONE_IN === 0
          ? [longDelivery(messageId)]
          : message(messageId).map((event) => deliveryOf(event));
      },
      deliver: (delivery) => this.#deliver(delivery),
    });
    this.#run = this.sender.run();
  }

  /** Resolves when the last message is sent whole and everything is answered. */
  async finish(): Promise<void> {
    this.sender.finish();
    await this.#run;
    this.#agent.destroy();
  }

  get p99Ms(): number {
    return p99(this.waits);
  }

  async #deliver(delivery: Delivery) {
    const request = requestOf(delivery);
    let sentAt = Number.NaN;
    const target = { port: this.#port, path: `/webhooks/${TENANT}`, agent: this.#agent, insists: true } as const;
    const answered = await post(
      {
        ...target,
        ...(request.body.length > LONG_BYTES && { pieces: IN_PIECES }),
        connected: (port) => this.ports.add(port),
        isSent: () => {
          sentAt = performance.now();
        },
      },
      request,
    );
    if (answered.status !== 0) this.waits.push(performance.now() - sentAt);
    return answered;
  }
}

function longDelivery(messageId: string): Delivery {
  return deliveryOf(fixtures.inbound({ messageId, occurredAt: Date.now(), data: { body: "x".repeat(LONG_BYTES) } }));
}
