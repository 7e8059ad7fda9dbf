/** Processes that are killed, and a server that is restarted, while deliveries come: what was acknowledged is kept and done once. */
import { setTimeout as sleep } from "node:timers/promises";
import { eventIdentity } from "../../src/index.ts";
import { fixtures, seededRandom, shuffled } from "../../src/testing/index.ts";
import { type Delivery, message, requestOf } from "../concurrency/load.ts";
import { Bills, lateBills } from "../prove/bills.ts";
import { type Breach, breachesOf } from "../prove/history.ts";
import { contentsOn } from "../prove/postgres-inbox.ts";
import { otherIdentity } from "../prove/sources.ts";
import { type PostgresFamily, type Verdict, withPostgresFamily } from "./concurrency-family.ts";
import type { PostgresServer } from "./server.ts";

const PROCESSES = 4;
const SENDERS = 16;
/** Messages whose events are mixed. */
const MIXED = 8;

export interface CrashTerms {
  readonly server: PostgresServer;
  readonly kills: number;
  readonly restarts: number;
  /** Objects of Stripe, each with a lane. */
  readonly lanes: number;
  readonly seed: number;
  readonly timeoutMs: number;
  say(line: string): void;
}

export interface CrashReport {
  readonly seed: number;
  readonly seconds: number;
  readonly kills: number;
  readonly restarts: number;
  readonly acknowledged: number;
  /** Deliveries without an answer, and those refused with 503, while something was down. */
  readonly unanswered: number;
  readonly refused: number;
  /** Other answers than 200 and 503. */
  readonly strange: readonly string[];
  /** Events that were handed out more than once. */
  readonly repeated: number;
  readonly late: ReturnType<typeof lateBills>;
  readonly breaches: readonly Breach[];
  /** From a restart of the server to the next acknowledgement, ms, by a process that was running before it. */
  readonly slowestReturnMs: number;
  readonly verdict: Verdict;
}

export async function surviveCrashes(terms: CrashTerms): Promise<CrashReport> {
  return withPostgresFamily(terms.server.url, async (family) => {
    const startedAt = performance.now();
    const load = new CrashLoad(family, terms);
    for (let place = 0; place < PROCESSES; place++) {
      // One of them lacks a source.
      await family.add({
        failures: 0.02,
        seed: terms.seed,
        sources: ["messages", "billing", "held", ...(place === 0 ? [] : (["code"] as const))],
      });
    }
    const sending = load.run();
    sending.catch(() => {}); // It is awaited below, after the crashes.
    const slowestReturnMs = await crashAll(terms, family, load);
    load.finish();
    await sending;
    await family.settled(terms.timeoutMs);
    await family.stop();
    const { seed, kills, restarts } = terms;
    const { sent, acknowledged, unanswered, refused, strange } = load;
    const { effects, stored } = await contentsOn(family);
    const breaches = breachesOf({
      ...{ sent, forged: [], acknowledged, replayed: family.replayed, effects, stored },
      ...{ moment: "ended", everyHandlerWrites: true },
    });
    return {
      ...{ seed, seconds: Math.round((performance.now() - startedAt) / 1000), kills, restarts },
      ...{ acknowledged: acknowledged.size, unanswered, refused, strange, slowestReturnMs },
      repeated: await family.number("select count(*) from {}.event where attempts > 1"),
      ...{ late: lateBills(effects), breaches },
      verdict: await family.verdict(),
    };
  });
}

async function crashAll(terms: CrashTerms, family: PostgresFamily, load: CrashLoad): Promise<number> {
  const { kills, restarts, server, seed, say } = terms;
  const random = seededRandom(seed);
  const blows = shuffled(
    [...Array.from({ length: kills }, () => "kill"), ...Array.from({ length: restarts }, () => "restart")],
    random,
  );
  let slowestReturnMs = 0;
  for (const [index, blow] of blows.entries()) {
    await sleep(50 + random() * 250);
    if (blow === "restart") {
      await server.restart();
      const upAt = performance.now();
      await load.nextAnswer();
      slowestReturnMs = Math.max(slowestReturnMs, Math.round(performance.now() - upAt));
    } else {
      const place = Math.floor(random() * PROCESSES);
      const child = family.children[place];
      await child?.kill();
      // In the place of the old one, where deliveries go from now on.
      family.children.splice(place, 1);
      await family.add({ failures: 0.02, seed, sources: child === undefined ? [] : family.sourcesOf(child) });
    }
    if ((index + 1) % 20 === 0) say(`${index + 1} of ${blows.length} blows, ${load.acknowledged.size} acknowledged`);
  }
  return slowestReturnMs;
}

interface Sent extends Omit<Delivery, "child"> {
  readonly identity: string;
}

/** Sends each event until it is acknowledged, to whichever process there is. */
class CrashLoad {
  /** Identities. */
  readonly sent: string[] = [];
  readonly acknowledged = new Set<string>();
  unanswered = 0;
  refused = 0;
  readonly strange: string[] = [];
  readonly #family: PostgresFamily;
  readonly #random: () => number;
  readonly #bills: Bills;
  readonly #queue: Sent[] = [];
  readonly #listeners: (() => void)[] = [];
  #messages = 0;
  #enough = false;

  constructor(family: PostgresFamily, { seed, lanes }: Pick<CrashTerms, "seed" | "lanes">) {
    this.#family = family;
    this.#random = seededRandom(seed + 1);
    this.#bills = new Bills(this.#random, lanes);
  }

  /** Until `finish` is called and everything begun is acknowledged. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: SENDERS }, () => this.#send()));
  }

  finish(): void {
    this.#enough = true;
  }

  nextAnswer(): Promise<void> {
    return new Promise((resolve) => this.#listeners.push(resolve));
  }

  async #send(): Promise<void> {
    for (;;) {
      if (this.#queue.length === 0 && this.#enough) return;
      if (this.#queue.length === 0) this.#refill();
      const event = this.#queue.shift();
      if (event !== undefined) await this.#untilAcknowledged(event);
    }
  }

  /** The events of some messages, as many pushes and those of as many objects of Stripe, mixed; some of them a second time. */
  #refill(): void {
    const events = Array.from({ length: MIXED }, () => [
      ...this.#messageAndPush(),
      ...this.#bills.next().map((bill) => ({ ...bill, copy: 0 })),
    ]).flat();
    this.sent.push(...events.map(({ identity }) => identity));
    const repeated = events.filter(() => this.#random() < 0.2).map((sent) => ({ ...sent, copy: 1 }));
    this.#queue.push(...shuffled([...events, ...repeated], this.#random));
  }

  #messageAndPush(): Sent[] {
    const messageId = `m-${++this.#messages}`;
    const push = fixtures.github({ id: messageId });
    return [
      ...message(messageId).map((event): Sent => {
        const identity = eventIdentity(event, Buffer.from(JSON.stringify(event)));
        return { source: "messages", event, copy: 0, identity };
      }),
      { source: "code", event: push, copy: 0, identity: otherIdentity("code", JSON.stringify(push)) },
    ];
  }

  async #untilAcknowledged(sent: Sent): Promise<void> {
    for (;;) {
      const children = this.#family.having(sent.source);
      const child = children[Math.floor(this.#random() * children.length)];
      const { status, outcome } = (await child?.pass(sent.source, requestOf(sent))) ?? { status: 0 };
      if (status === 200) {
        this.acknowledged.add(sent.identity);
        for (const resolve of this.#listeners.splice(0)) resolve();
        return;
      }
      if (status === 503) this.refused += 1;
      else if (status === 0) this.unanswered += 1;
      else this.strange.push(`${status} ${outcome}`);
      await sleep(5);
    }
  }
}
