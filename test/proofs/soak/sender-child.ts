/** The process that sends: lifecycles of many messages mixed, some deliveries twice, one in a hundred poisonous, flaky, or signed by nobody. */
import { setTimeout as sleep } from "node:timers/promises";
import { eventIdentity, type KnownEvent } from "../../../src/index.ts";
import { lifecycle, seededRandom, shuffled, signedRequest, TEST_SECRET } from "../../../src/testing/index.ts";
import { answering } from "../asked.ts";
import { Line } from "./line.ts";
import type { Orders, Sent } from "./subject.ts";

const LINES = 64;
const TICK_MS = 5;
/** Messages whose events are mixed. */
const TOGETHER = 100;
const REPEATED = 0.05;
const FORGERS_SECRET = "a-secret-that-nobody-configured-";
/** In this order among the messages that are mixed; all others are ordinary. */
const SORTS = ["poison", "flaky", "forged"];

interface Delivery {
  readonly identity: string;
  readonly body: Uint8Array;
  readonly isForged: boolean;
}

const random = seededRandom(20_251_122);
let lines: readonly Line[] = [];

async function send({ port, perSecond, count, aheadMs, day }: Orders): Promise<Sent> {
  if (lines.length === 0) lines = await Promise.all(Array.from({ length: LINES }, () => Line.open(port)));
  const account = new Account();
  const queue = new Queue(day, aheadMs);
  const startedAt = performance.now();
  const due = () => (perSecond === null ? count : ((performance.now() - startedAt) * perSecond) / 1_000);
  let begun = 0;
  await Promise.all(
    lines.map(async (line) => {
      while (begun < count || queue.isMixed) {
        if (begun < count && begun >= due()) {
          await sleep(TICK_MS);
          continue;
        }
        begun += 1;
        const delivery = queue.next();
        account.begin(delivery);
        const secret = delivery.isForged ? FORGERS_SECRET : TEST_SECRET;
        const { headers } = signedRequest(delivery.body, { secret, timestamp: Date.now() + aheadMs });
        account.end(delivery, await line.send(headers, delivery.body));
      }
    }),
  );
  return account.report(performance.now() - startedAt);
}

class Queue {
  readonly #day: number;
  readonly #aheadMs: number;
  #deliveries: Delivery[] = [];
  #messages = 0;

  constructor(day: number, aheadMs: number) {
    this.#day = day;
    this.#aheadMs = aheadMs;
  }

  /** Some messages are begun and not complete: without the rest those that came would wait for it. */
  get isMixed(): boolean {
    return this.#deliveries.length > 0;
  }

  next(): Delivery {
    const next = this.#deliveries.pop();
    if (next !== undefined) return next;
    const fresh = Array.from({ length: TOGETHER }, (_, index) => this.#message(SORTS[index] ?? "msg")).flat();
    const repeated = fresh.filter(() => random() < REPEATED);
    this.#deliveries = shuffled([...fresh, ...repeated], random);
    return this.next();
  }

  #message(sort: string): Delivery[] {
    const messageId = `${sort}_${this.#day}_${++this.#messages}`;
    const ending = random() < 0.1 ? "failed" : "delivery";
    const events = lifecycle({ messageId, occurredAt: Date.now() + this.#aheadMs, ending });
    return events.map((event) => deliveryOf(event, sort === "forged"));
  }
}

class Account {
  readonly #sent = new Set<string>();
  readonly #forged = new Set<string>();
  readonly #acknowledged = new Set<string>();
  readonly #wrong: string[] = [];
  #refused = 0;
  #answered = 0;

  begin({ identity, isForged }: Delivery): void {
    (isForged ? this.#forged : this.#sent).add(identity);
  }

  end({ identity, isForged }: Delivery, status: number): void {
    if (status !== 0) this.#answered += 1;
    if (status === 200) this.#acknowledged.add(identity);
    if (isForged && status === 401) this.#refused += 1;
    else if (isForged || status !== 200) this.#wrong.push(`${status} to a ${isForged ? "forged" : "signed"} delivery`);
  }

  report(tookMs: number): Sent {
    return {
      sent: [...this.#sent],
      forged: [...this.#forged],
      acknowledged: [...this.#acknowledged],
      refused: this.#refused,
      wrong: this.#wrong,
      answered: this.#answered,
      tookMs,
    };
  }
}

function deliveryOf(event: KnownEvent, isForged: boolean): Delivery {
  const body = Buffer.from(JSON.stringify(event));
  return { identity: eventIdentity(event, body), body, isForged };
}

answering({ send }, () => {
  for (const line of lines) line.close();
});
